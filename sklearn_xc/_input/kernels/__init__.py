"""Compiled functions over sparse rows."""
