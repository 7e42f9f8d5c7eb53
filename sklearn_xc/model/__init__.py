"""Fitted parameters: how they are kept, and how they score."""
