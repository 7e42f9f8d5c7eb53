"""Which classes the steps of an epoch sample, and how often each of them is moved."""

import numpy as np

from sklearn_xc.kernels.softmax.negatives import ClassSampler, class_shares

#: Of "frequency": what part of the draws is spread evenly over the classes.
_EVEN_PART = 0.2


def choose_sampler(
    counts: np.ndarray,
    sampling: str,
    n_negatives: int,
    n_hard: int,
    seed: tuple[int, int],
    *,
    with_target: bool = False,
) -> tuple[ClassSampler, int]:
    """Return the sampler of an epoch, and how many classes a step draws.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        How often each class is met.
    sampling : {"uniform", "frequency"}
        "frequency" draws a class as often as it is met, except for a part that is spread evenly.
        That is where the normaliser is, in the mean, so that the terms of the classes drawn vary
        less [1]_.
    n_negatives, n_hard : int
        Classes of a step, sampled and hard. Where they could be all, all are drawn.
    seed : tuple of int
        Of the order of the classes on the line.
    with_target : bool
        Whether a step may draw its own target.

    References
    ----------
    .. [1] Y. Bengio and J.-S. Senecal, "Adaptive importance sampling to accelerate training of a
       neural probabilistic language model", IEEE Transactions on Neural Networks 19, 2008.
    """
    n_classes = len(counts)
    most = n_classes if with_target else n_classes - 1
    m = n_negatives if n_negatives + n_hard < most else most
    shares = np.full(n_classes, 1.0 / n_classes)
    if sampling == "frequency" and m < most:
        shares = _EVEN_PART * shares + (1.0 - _EVEN_PART) * counts / counts.sum()
    order = np.random.default_rng((*seed, 1)).permutation(n_classes)
    return ClassSampler.of(shares, order), m


def expected_touches(
    counts: np.ndarray,
    classes: np.ndarray,
    visits: np.ndarray,
    hard: np.ndarray,
    sampler: ClassSampler,
    m: int,
) -> np.ndarray:
    """Return how many visits of an epoch move each class, in the mean.

    A visit moves the target, the hard negatives and the classes drawn.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Visits to pairs of each class, of the whole likelihood.
    classes, visits : ndarray of shape (n,)
        Class of each pair at hand and its visits; all pairs, or a part of them.
    hard : ndarray of int32 of shape (n, h)
        Hard negatives of the pairs, which are counted for the whole.
    sampler : ClassSampler
        Of the rest, of which
    m : int
        are drawn.

    Returns
    -------
    ndarray of float64 of shape (n_classes,)
        Expected visits.
    """
    shares, n_classes = class_shares(sampler), len(counts)
    # Steps with each class as the target, and how often they draw another one: m times its share.
    others = 1.0 - shares
    drawn = m * shares * ((counts / others).sum() - counts / others)
    for k in np.flatnonzero(m * shares > others.min()):  # it can be certain; few are
        chances = np.minimum(1.0, m * shares[k] / others)
        drawn[k] = counts @ chances - counts[k] * chances[k]
    # Hard negatives are there in any case.
    chances = np.minimum(1.0, m * shares[hard] / others[classes][:, None])
    by_search = np.bincount(
        hard.ravel(), ((1.0 - chances) * visits[:, None]).ravel(), minlength=n_classes
    )
    return counts + drawn + by_search * (counts.sum() / visits.sum())
