"""Extreme classification data: files, generators and a real data set."""

from sklearn_xc._labels.features import LabelFeatures
from sklearn_xc.datasets.generators import make_hierarchical_classes, make_xc_classification
from sklearn_xc.datasets.tate import load_tate_subjects
from sklearn_xc.datasets.xmc import dump_xmc_file, load_xmc_file

__all__ = [
    "LabelFeatures",
    "dump_xmc_file",
    "load_tate_subjects",
    "load_xmc_file",
    "make_hierarchical_classes",
    "make_xc_classification",
]
