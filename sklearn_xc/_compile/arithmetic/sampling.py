"""Classes drawn with given probabilities, from a counter: step t of a key is always the same.

A step draws m points at equal distances, from a random start, on a line on which each class has its
share, in an order that is shuffled for each epoch: systematic sampling [1]_. A class of share q is
met m q times in the mean, whatever the others, and never twice unless m q > 1. With equal shares,
the draws are distinct.

The random numbers are those of SplitMix64 [2]_, a function of its counter, so that a draw depends
on the seed, the epoch and the step, and never on a thread or on what was drawn before.

References
----------
.. [1] W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics
   20, 1949.
.. [2] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
   OOPSLA 2014.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.jit import inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _12, _ONE = (np.uint64(bits) for bits in (30, 27, 31, 12, 1))


class ClassSampler(NamedTuple):
    """Shares of the classes, in their order on the line from 0 to 1.

    Attributes
    ----------
    classes : ndarray of int32 of shape (n_classes,)
        The class at each place.
    place : ndarray of int32 of shape (n_classes,)
        The place of each class.
    start : ndarray of float64 of shape (n_classes + 1,)
        Where each place starts, and 1.
    guide : ndarray of int32 of shape (n_classes + 1,)
        The place that each of n_classes equal parts of the line starts in.
    """

    classes: np.ndarray
    place: np.ndarray
    start: np.ndarray
    guide: np.ndarray

    @classmethod
    def of(cls, shares: np.ndarray, classes: np.ndarray) -> "ClassSampler":
        """Return the sampler of positive shares, up to a factor, for an order of the classes."""
        n_classes = len(shares)
        start = np.concatenate([[0.0], np.cumsum(shares[classes])])
        start /= start[-1]
        place = np.empty(n_classes, np.int32)
        place[classes] = np.arange(n_classes)
        parts = np.arange(n_classes + 1) / n_classes
        guide = np.minimum(np.searchsorted(start, parts, side="right") - 1, n_classes - 1)
        arrays = classes.astype(np.int32), place, start, guide.astype(np.int32)
        for array in arrays:
            array.flags.writeable = False
        return cls(*arrays)


@inlined
def mix(z):
    """Return 64 well-mixed bits of a uint64."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


def mix_key(seed, epoch):
    """Return the key of an epoch, a uint64, from two whole numbers."""
    with np.errstate(over="ignore"):
        return mix(mix(np.uint64(seed)) + np.uint64(epoch) * _GOLDEN)


@inlined
def random_unit(key, counter):
    """Return the counter's number between 0 and 1, both excluded."""
    bits = mix(key + (np.uint64(counter) + _ONE) * _GOLDEN)
    return (np.float64(bits >> _12) + 0.5) * 2.0**-52


@inlined
def place_of(sampler, point):
    """Return the place that a point of the line is in."""
    n_classes = sampler.classes.shape[0]
    at = np.int64(sampler.guide[min(np.int64(point * n_classes), n_classes)])
    while at > 0 and sampler.start[at] > point:  # rounding may have led past it
        at -= 1
    while at < n_classes - 1 and sampler.start[at + 1] <= point:
        at += 1
    return at


@inlined
def draw_negatives(sampler, key, step, target, m, drawn, alpha, n_taken):
    """Draw classes other than `target` and those taken; return how many are in `drawn` then.

    Each is drawn with probability ``min(1, m share)``, of the line without the target.

    Parameters
    ----------
    sampler : ClassSampler
        The shares.
    key : uint64
        Of the epoch.
    step : int
        Counts the draws of the epoch.
    target : int
        -1 for none.
    m : int
        Points on the line: as many classes at most.
    drawn : ndarray of int64 of shape (>= n_taken + m,)
        Its leading `n_taken` classes are left, and drawn no second time; distinct others follow.
    alpha : ndarray of float64 of shape (>= n_taken + m,)
        Factors follow: the sum of ``alpha f`` over the classes drawn is, in the mean, the sum of f
        over all that may be drawn.
    n_taken : int
    """
    start = sampler.start
    gap = 2.0
    gap_end = 2.0
    own = np.int64(-1)
    if target >= 0:
        own = np.int64(sampler.place[target])
        gap, gap_end = start[own], start[own + 1]
    left = 1.0 - (gap_end - gap)
    first = random_unit(key, step)
    n = n_taken
    previous = np.int64(-1)
    for j in range(m):
        point = (first + j) / m * left
        if point >= gap:
            point = max(point + (gap_end - gap), gap_end)
        at = place_of(sampler, point)
        if at == own:  # the target is the last, and rounding led to the end
            at -= 1
        k = np.int64(sampler.classes[at])
        factor = left / (m * (start[at + 1] - start[at]))
        if at == previous:
            if n > n_taken and drawn[n - 1] == k:
                alpha[n - 1] += factor
            continue
        previous = at
        is_taken = False
        for b in range(n_taken):
            is_taken |= drawn[b] == k
        if not is_taken:
            drawn[n], alpha[n] = k, factor
            n += 1
    return n


def class_shares(sampler):
    """Return the share of each class on the line, float64 of shape (n_classes,)."""
    return np.diff(sampler.start)[sampler.place]
