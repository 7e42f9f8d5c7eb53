"""What one-vs-all training runs: Newton's method for the labels of a block in lock step."""
