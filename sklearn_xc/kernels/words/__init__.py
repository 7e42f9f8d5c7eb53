"""Kernels that count which words occur near each other."""
