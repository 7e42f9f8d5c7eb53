"""Classes drawn uniformly without repetition, from a counter: step t of a key is always the same.

The numbers are those of SplitMix64 [1]_, which is a function of its counter, so that a draw depends
on the seed, the epoch and the step, and never on a thread or on what was drawn before.

References
----------
.. [1] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
   OOPSLA 2014.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
#: More than the draws of a step, for `draw_classes_besides`.
_DRAWS_PER_STEP = 2**24
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


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
def random_below(key, counter, bound):
    """Return the counter's number in [0, bound), for a bound below 2**32."""
    bits = mix(key + np.uint64(counter) * _GOLDEN)
    return np.int64(((bits >> _32) * np.uint64(bound)) >> _32)


@inlined
def draw_classes(key, step, n_classes, out):
    """Draw classes from ``range(n_classes)``, all sets of their number equally likely.

    Parameters
    ----------
    key : uint64
        Of the epoch.
    step : int
        Counts the draws of the epoch.
    n_classes : int
        At least the length of `out`.
    out : ndarray of int64 of shape (m,)
        Overwritten with distinct classes. Takes O(m^2) comparisons.

    Notes
    -----
    Source: Floyd's algorithm [1]_.

    References
    ----------
    .. [1] J. Bentley and B. Floyd, "A sample of brilliance", Communications of the ACM 30, 1987.
    """
    m = out.shape[0]
    first = n_classes - m
    for j in range(m):
        drawn = random_below(key, step * m + j, first + j + 1)
        for b in range(j):
            if out[b] == drawn:
                drawn = first + j
        out[j] = drawn


@inlined
def draw_other_classes(key, step, n_classes, target, out):
    """Draw distinct classes other than `target`; see ``draw_classes``."""
    draw_classes(key, step, n_classes - 1, out)
    for j in range(out.shape[0]):
        out[j] += out[j] >= target


@inlined
def draw_classes_besides(key, step, n_classes, target, taken, out):
    """Draw distinct classes that are neither `target` nor in `taken`; they must suffice.

    Sets of classes are equally likely: each class is drawn until it is a new one.
    """
    counter = step * _DRAWS_PER_STEP
    for j in range(out.shape[0]):
        is_new = False
        while not is_new:
            drawn = random_below(key, counter, n_classes)
            counter += 1
            is_new = drawn != target
            for b in range(taken.shape[0]):
                is_new &= taken[b] != drawn
            for b in range(j):
                is_new &= out[b] != drawn
        out[j] = drawn


@kernel
def draw_each(key, n_classes, targets, out):
    """Draw distinct classes other than ``targets[t]`` at step t, for each row t of `out`."""
    for t in range(np.uint64(targets.shape[0])):
        draw_other_classes(key, t, n_classes, targets[t], out[t])
