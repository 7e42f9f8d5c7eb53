"""Experiments with thresholds, probabilities, hierarchies, and Annif."""
