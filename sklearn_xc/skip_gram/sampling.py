"""Which contexts stand for those that a search has not found."""

import numpy as np

from sklearn_xc.skip_gram.collapsed_softmax import Others

#: The share of the draws that follows how frequent contexts are; the others are even.
_BY_FREQUENCY = 0.5


class ContextSampler:
    """Draws contexts, each with a chance of its own, and at most once.

    A context that is drawn with chance r stands for 1 / r contexts, which keeps the sum over all of
    them right on average [1]_. Half of the draws are by frequency, which the softmax follows where
    nothing else is known of a word, and half are even, so that rare contexts are met as well. They
    are drawn at equal distances on the line of their chances [2]_.

    Parameters
    ----------
    frequencies : ndarray of float64 of shape (n_contexts,)
        Not negative, with a positive sum.
    n_drawn : int
        How many are drawn, on average.

    References
    ----------
    .. [1] S. Mussmann, D. Levy and S. Ermon, "Fast amortized inference and learning in log-linear
       models with randomly perturbed nearest neighbor search", UAI 2017.
    .. [2] W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical
       Statistics 20, 1949.
    """

    def __init__(self, frequencies: np.ndarray, n_drawn: int) -> None:
        self.chances = _chances(frequencies, n_drawn)
        self._line = np.cumsum(self.chances)

    def draw(self, rng: np.random.Generator) -> Others:
        """Return the contexts that the next mini-batch takes."""
        points = np.arange(rng.random(), self._line[-1], 1.0)
        drawn = np.searchsorted(self._line, points, side="right").astype(np.int32)
        drawn = np.unique(np.minimum(drawn, len(self._line) - 1))
        return Others(drawn, self.chances[drawn])


def _chances(frequencies: np.ndarray, n_drawn: int) -> np.ndarray:
    """Return with what chance each context is drawn; they sum to `n_drawn`, or are all 1."""
    n = len(frequencies)
    if n_drawn >= n:
        return np.ones(n)
    shares = _BY_FREQUENCY * frequencies / frequencies.sum() + (1 - _BY_FREQUENCY) / n
    chances = n_drawn * shares
    # Those above 1 are always drawn, and what they do not need goes to the others.
    while (is_sure := chances >= 1.0).sum() < n_drawn:
        rest = ~is_sure
        wanted = (n_drawn - is_sure.sum()) * shares[rest] / shares[rest].sum()
        changed = bool((wanted >= 1.0).any())
        chances[is_sure], chances[rest] = 1.0, wanted
        if not changed:
            break
    return np.minimum(chances, 1.0)
