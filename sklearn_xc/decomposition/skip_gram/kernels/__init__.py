"""Loops of the skip-gram model."""
