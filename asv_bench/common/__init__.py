"""Data sets, measures, reports and figures, for all experiments."""
