"""What the decomposition runs: gradients of a loss over sets of labels."""
