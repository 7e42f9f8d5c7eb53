"""Instances and labels that one encoder maps to the same space."""
