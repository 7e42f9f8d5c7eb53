"""Linear classifiers with one weight vector per label."""

from sklearn_xc.linear.ova import OvALinearXC
from sklearn_xc.linear.ova_cv import OvALinearXCCV

__all__ = ["OvALinearXC", "OvALinearXCCV"]
