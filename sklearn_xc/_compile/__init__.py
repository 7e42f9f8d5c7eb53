"""Compilation of loops, the cache of compiled code, and messages about both."""
