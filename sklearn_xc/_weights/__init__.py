"""Fitted weights: how they are kept, and how they score."""
