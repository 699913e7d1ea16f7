"""Numba functions only: flat arrays in, flat arrays out."""
