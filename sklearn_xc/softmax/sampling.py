"""The classes that the steps of an epoch sample, and how often an epoch moves each class."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import ClassSampler, class_shares
from sklearn_xc.softmax.problem import SoftmaxProblem

#: Of "frequency": the part of the draws that is spread evenly over the classes.
_EVEN_PART = 0.2


def choose_sampler(
    counts: np.ndarray,
    sampling: str,
    n_negatives: int,
    n_hard: int,
    seed: tuple[int, int],
) -> tuple[ClassSampler, int]:
    """Return the sampler of an epoch, and how many classes a step draws.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Visits to pairs of each class.
    sampling : {"uniform", "frequency"}
        "frequency" draws classes in proportion to `counts`, except for a part that is spread
        evenly. Frequent classes hold most of the normaliser, so its estimate varies less [1]_.
    n_negatives, n_hard : int
        Sampled and hard classes of a step. If they could be all classes, all are drawn.
    seed : tuple of int
        Of the order of the classes on the line.

    References
    ----------
    .. [1] Y. Bengio and J.-S. Senecal, "Adaptive importance sampling to accelerate training of a
       neural probabilistic language model", IEEE Transactions on Neural Networks 19, 2008.
    """
    n_classes = len(counts)
    most = n_classes - 1
    m = n_negatives if n_negatives + n_hard < most else most
    shares = np.full(n_classes, 1.0 / n_classes)
    if sampling == "frequency" and m < most:
        shares = _EVEN_PART * shares + (1.0 - _EVEN_PART) * counts / counts.sum()
    order = np.random.default_rng((*seed, 1)).permutation(n_classes)
    return ClassSampler.of(shares, order), m


def expected_touches(
    problem: SoftmaxProblem, hard: np.ndarray, sampler: ClassSampler, m: int
) -> np.ndarray:
    """Return the expected number of visits of an epoch that move each class, float64 (n_classes,).

    A visit moves its target, its hard negatives (`hard`, int32 of shape (n, h)), and the m classes
    that it draws.
    """
    counts = problem.counts
    classes = problem.classes
    shares = class_shares(sampler)
    # Steps with each class as the target, and how often they draw another one: m times its share.
    others = 1.0 - shares
    drawn = m * shares * ((counts / others).sum() - counts / others)
    for k in np.flatnonzero(m * shares > others.min()):  # it can be certain; few are
        probabilities = np.minimum(1.0, m * shares[k] / others)
        drawn[k] = counts @ probabilities - counts[k] * probabilities[k]
    # Hard negatives are moved in any case.
    probabilities = np.minimum(1.0, m * shares[hard] / others[classes][:, None])
    added = ((1.0 - probabilities) * problem.visits[:, None]).ravel()
    return counts + drawn + np.bincount(hard.ravel(), added, minlength=problem.n_classes)
