"""Experiments with DecompMIPSClassifier."""
