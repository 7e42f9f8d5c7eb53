"""Random mini-batches of which the instances with the largest losses count."""

from numbers import Real

import numpy as np

from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.embedding.samplers.in_batch import InBatchSampler


class OrderedSgdSampler(InBatchSampler):
    """Ordered SGD: only the instances of a random mini-batch with the largest losses count.

    Parameters
    ----------
    share : float, default=0.5
        The share of the instances of a mini-batch that count; their number is rounded, and at
        least one.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch; see `InBatchSampler`.

    Notes
    -----
    Source: Algorithm 1 of [1]_, with q = ``share * batch_size``; the same share applies to a
    shorter last mini-batch.

    References
    ----------
    .. [1] K. Kawaguchi and H. Lu. Ordered SGD: a new stochastic optimization framework for
       empirical risk minimization. AISTATS 2020.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import OrderedSgdSampler
    >>> clf = NGAMEEmbeddingXC(sampler=OrderedSgdSampler(share=0.25))

    The larger half of four losses counts:

    >>> import numpy as np
    >>> OrderedSgdSampler().select(np.array([0.3, 0.9, 0.1, 0.5]))
    array([False,  True, False,  True])
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **InBatchSampler._parameter_constraints,
        "share": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(self, share: float = 0.5, batch_size: int | str = "auto") -> None:
        self.share = share
        self.batch_size = batch_size

    def select(self, losses: np.ndarray) -> np.ndarray:
        """Return which instances have the largest losses; ties go to the first."""
        q = min(max(1, round(self.share * len(losses))), len(losses))
        counts = np.zeros(len(losses), bool)
        counts[np.argsort(-losses, kind="stable")[:q]] = True
        return counts
