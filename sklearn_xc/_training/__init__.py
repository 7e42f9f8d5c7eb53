"""What estimators share to train: mini-batches, and mixtures of boosted trees for pairs."""
