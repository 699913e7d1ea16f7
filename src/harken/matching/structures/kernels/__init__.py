"""The arrays of these structures, and the loops over them."""
