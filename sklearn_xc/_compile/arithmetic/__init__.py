"""Functions and sums of numbers."""
