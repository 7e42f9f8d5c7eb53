"""Linear classifiers with one weight vector per label."""

from sklearn_xc.one_vs_all.ova import OvALinearXC
from sklearn_xc.one_vs_all.ova_cv import OvALinearXCCV

__all__ = ["OvALinearXC", "OvALinearXCCV"]
