"""Numba kernels of the search trees: flat arrays in, flat arrays out."""
