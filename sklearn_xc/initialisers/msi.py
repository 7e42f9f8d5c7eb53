"""Mean-separating initialisation: the smallest vector that separates the means.

Of all w with ``<w, pbar> = s`` and mean score t on the negatives, the one of minimal norm lies in
the span of pbar, the mean of the positives, and xbar, the mean of all instances::

    w = u pbar + v xbar
    u = (s <x,x> - tau <p,x>) / det,   v = (tau <p,p> - s <p,x>) / det
    tau = t + (s - t) |P| / n,         det = <p,p> <x,x> - <p,x>^2

Source: section 4 of Schultheis and Babbar (2022), eqs. 21-24, solved without the division by
``<xbar, pbar>`` that can vanish. Differs in that xbar is the mean (the paper prints the sum), and
in that a system that is singular to rounding (a label on every instance, on none, or pbar parallel
to xbar) is solved in the least-squares sense with minimal norm.
"""

import numpy as np

from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem, dot

#: Mean score s of the positives. That of the negatives belongs to the loss.
POSITIVE_SCORE = 1.0


def prepare(problem: OneVsAllProblem, sums: InstanceSums) -> tuple[np.ndarray, float, float]:
    """Return xbar, its squared norm and the sum of the row weights."""
    mean = sums.total / sums.weight
    return mean, dot(mean, mean), sums.weight


def start(
    prepared: tuple[np.ndarray, float, float],
    problem: OneVsAllProblem,
    label: int,
    positive_sum: np.ndarray,
) -> np.ndarray:
    """Return the mean-separating vector of `label`."""
    xbar, xx, total = prepared
    rows = problem.positives(label)
    positive_weight = float(problem.weight[rows].sum(dtype=np.float64))
    s, t = POSITIVE_SCORE, problem.loss.MSI_NEGATIVE_SCORE
    if positive_weight == 0.0:
        return (t / xx) * xbar if xx > 0.0 else np.zeros_like(xbar)
    pbar = positive_sum / positive_weight
    pp, px = dot(pbar, pbar), dot(pbar, xbar)
    tau = t + (s - t) * positive_weight / total
    det = pp * xx - px * px
    if det > 1e-10 * pp * xx:
        u = (s * xx - tau * px) / det
        v = (tau * pp - s * px) / det
    else:
        gram = np.array([[pp, px], [px, xx]])
        u, v = np.linalg.lstsq(gram, np.array([s, tau]), rcond=1e-10)[0]
    return u * pbar + v * xbar
