"""Experiments with NGAMEEmbeddingXC."""
