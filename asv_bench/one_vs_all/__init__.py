"""Experiments with OvALinearXC and OvALinearXCCV."""
