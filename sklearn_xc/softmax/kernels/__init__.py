"""What the softmax estimators run: passes over pairs of an instance and a class."""
