"""Scores of instances, and the best of them."""
