"""Fitted weights: their layouts and their scores."""
