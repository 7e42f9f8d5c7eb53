"""Experiments with word vectors, DecompMIPSSkipGram, and the counts that they are made of."""
