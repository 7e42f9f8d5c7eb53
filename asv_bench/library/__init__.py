"""Experiments with what all estimators share."""
