"""What a stack runs: the trees that score pairs."""
