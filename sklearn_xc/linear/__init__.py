"""Linear classifiers with one weight vector per label."""

from sklearn_xc.linear.merging import merge, plan_label_ranges
from sklearn_xc.linear.ova import OvALinearXC
from sklearn_xc.linear.ova_cv import OvALinearXCCV

__all__ = ["OvALinearXC", "OvALinearXCCV", "merge", "plan_label_ranges"]
