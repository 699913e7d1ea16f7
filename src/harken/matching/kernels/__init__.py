"""What all loops share: the layout of their arrays, and the truth of a predicate."""
