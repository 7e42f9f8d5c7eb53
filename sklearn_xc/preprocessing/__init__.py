"""From names of labels to the columns of a sparse indicator, and back."""

from sklearn_xc.preprocessing.label_binarizer import LabelBinarizerXC

__all__ = ["LabelBinarizerXC"]
