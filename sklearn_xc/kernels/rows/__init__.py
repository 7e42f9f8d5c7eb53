"""Rows of X, in CSR and dense: reading, ordering, comparing and summing them."""
