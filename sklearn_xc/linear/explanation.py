"""Which features made a score."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Explanation:
    """A linear score as a sum over features.

    Attributes
    ----------
    label : object
        The label explained.
    score : float
        The sum of all contributions and the intercept.
    intercept : float
        The part that no feature explains.
    features : ndarray of shape (m,)
        Names, or column numbers where no names are known, largest contribution first.
    values, weights, contributions : ndarray of float of shape (m,)
        Value of the feature in the instance, weight of the label for it, and their product.
    """

    label: Any
    score: float
    intercept: float
    features: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    contributions: np.ndarray

    def __str__(self) -> str:
        lines = [f"{self.label}: score {self.score:+.3f}"]
        lines += [
            f"  {contribution:+.3f}  {feature}"
            for feature, contribution in zip(self.features, self.contributions, strict=True)
        ]
        lines.append(f"  {self.intercept:+.3f}  (intercept)")
        return "\n".join(lines)
