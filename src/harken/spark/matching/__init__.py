"""A DataFrame of events and an index go in, matches come out: `batch` plans it, `tasks` is what workers run."""
