"""Kernels of the store in memory: flat arrays in, flat arrays out."""
