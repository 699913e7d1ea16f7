"""What events look like: one pass over them, on workers, gives the statistics that indexes are arranged by."""
