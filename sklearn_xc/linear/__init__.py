"""Linear classifiers with one weight vector per label."""

from sklearn_xc.linear.explanation import Explanation
from sklearn_xc.linear.ova import OvALinearXC

__all__ = ["Explanation", "OvALinearXC"]
