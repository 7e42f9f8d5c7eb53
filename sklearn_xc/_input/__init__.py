"""Validation of X, y and other input."""
