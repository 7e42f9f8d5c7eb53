"""Kernels of maximum inner product search."""
