"""The softmax of the best scores, over a temperature that held-out rows are most likely with."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from sklearn_xc._declared_state import Number, declares
from sklearn_xc._scored_pairs import ScoredPairs

#: Temperatures that are tried, beside the spread of the scores.
_RANGE = (1e-3, 1e3)


@declares(temperature=Number())
class TemperatureMap:
    """Probabilities of classes: the softmax of scores over a temperature.

    Attributes
    ----------
    temperature : float
    """

    def fit(self, pairs: ScoredPairs, n_ranks: int) -> "TemperatureMap":
        """Minimise the log-loss of the rows whose class is among the first `n_ranks`."""
        table = np.full((pairs.n, n_ranks), -np.inf)
        kept = pairs.ranks < n_ranks
        table[pairs.rows[kept], pairs.ranks[kept]] = pairs.scores[kept]
        hit = kept & pairs.relevant
        rows, ranks, weight = pairs.rows[hit], pairs.ranks[hit], pairs.weight[hit]
        scores = table[rows]
        finite = scores[np.isfinite(scores)]
        spread = float(finite.std()) if finite.size else 0.0
        if not rows.size or spread == 0.0:
            self.temperature = 1.0
            return self

        def loss(log_temperature: float) -> float:
            logs = log_softmax(scores / np.exp(log_temperature), axis=1)
            return float(-weight @ logs[np.arange(len(rows)), ranks])

        bounds = tuple(np.log(np.array(_RANGE) * spread))
        found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        self.temperature = float(np.exp(found.x))
        return self

    def chances(self, scores: np.ndarray, frequency: np.ndarray) -> np.ndarray:
        """Return the probabilities of the best classes of each instance, as if no other were."""
        return softmax(scores.astype(np.float64) / self.temperature, axis=1)
