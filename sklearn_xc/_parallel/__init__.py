"""Parallel work: threads and engines, memory limits, interruption and progress of fits."""
