"""How attribute structures and buckets lie in memory, and the loops over them."""
