"""Extreme classification data: files, generators and a real data set."""

from sklearn_xc.datasets.xmc_format import dump_xmc_file, load_xmc_file, load_xmc_files

__all__ = ["dump_xmc_file", "load_xmc_file", "load_xmc_files"]
