"""Maps from scores to probabilities: one for the best label of an instance, one for the others."""

import itertools

import numpy as np
from sklearn.linear_model import LogisticRegression

from sklearn_xc._state.schema import Array, Choice, Estimator, Holds, Number, Record, declares
from sklearn_xc._training.bounded_logistic import fit_bounded_logistic
from sklearn_xc.ensemble.held_out import ScoredPairs
from sklearn_xc.metrics.frequency_groups import group_of

#: Scores are clipped here, so that squares do not overflow.
_HUGE = 1e15
_MOST_STEPS = 1000
#: Least distance of probabilities from 0 and 1, resolved by float32.
LEAST = 1e-6
#: Quantiles of the relevant pairs at which a spline bends, and the penalty on bending.
_BENDS = (0.25, 0.5, 0.75)
_PULL = 3.0
METHODS = ("spline", "sigmoid")


@declares(
    edges=Array("int64", None),
    method=Choice(*METHODS),
    maps=Record("RankMap", lists=True, n=2, groups=lambda found: len(found.edges) + 2),
)
class PairMap:
    """Probabilities of pairs; the best label of an instance has a map of its own.

    A logistic regression reads the score, the logarithm of the rank, the lead, and the logarithm of
    the label's frequency; each group of labels also has an intercept and a slope of the score,
    which the penalty shrinks towards those shared by all. The lead of the best label is its
    distance from the second, that of any other its distance from the best (at most 0). That is
    "sigmoid". With "spline" its log-odds are bent at three places, into a non-decreasing line.

    Parameters
    ----------
    edges : ndarray of int64 of shape (n_groups - 1,)
        Of groups of labels, as of ``frequency_edges``.
    method : {"spline", "sigmoid"}
    """

    def __init__(self, edges: np.ndarray, method: str) -> None:
        self.edges, self.method = edges, method
        self.maps: list[RankMap] = []

    def fit(self, pairs: ScoredPairs, n_ranks: int) -> "PairMap":
        """Learn from the first labels of each instance, `n_ranks` of them."""
        table = np.full((pairs.n, int(pairs.ranks.max(initial=-1)) + 1), np.nan)
        table[pairs.rows, pairs.ranks] = pairs.scores
        lead = np.nan_to_num(leads(table)[pairs.rows, pairs.ranks])
        self.maps = []
        for which in (pairs.ranks == 0, (pairs.ranks > 0) & (pairs.ranks < n_ranks)):
            features = self._features(
                pairs.scores[which], pairs.ranks[which], lead[which], pairs.frequency[which]
            )
            fitted = RankMap(self.method)
            self.maps.append(fitted.fit(features, pairs.relevant[which], pairs.weight[which]))
        return self

    def probabilities(self, scores: np.ndarray, frequency: np.ndarray) -> np.ndarray:
        """Return the probabilities of the best labels of each instance.

        Parameters
        ----------
        scores : ndarray of float of shape (n, k)
            Best first.
        frequency : ndarray of int of shape (n, k)
            Training instances of the labels.

        Returns
        -------
        ndarray of float64 of shape (n, k)
            From ``LEAST`` to ``1 - LEAST``.
        """
        lead = leads(scores)
        k = scores.shape[1]
        ranks = np.broadcast_to(np.arange(k), scores.shape)
        parts = []
        for own, columns in zip(self.maps, (slice(0, 1), slice(1, k)), strict=True):
            part = [a[:, columns] for a in (scores, ranks, lead, frequency)]
            found = own.probabilities(self._features(*(a.ravel() for a in part)))
            parts.append(found.reshape(part[0].shape))
        return np.concatenate(parts, axis=1)

    def _features(
        self, scores: np.ndarray, ranks: np.ndarray, lead: np.ndarray, frequency: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores, lead = (np.clip(a.astype(np.float64), -_HUGE, _HUGE) for a in (scores, lead))
        plain = np.column_stack([scores, np.log1p(ranks), lead, np.log1p(frequency)])
        return plain, group_of(frequency, self.edges)


def _is_constant(found: "RankMap") -> bool:
    return getattr(found, "constant", None) is not None


@declares(
    method=Choice(*METHODS),
    constant=Number(optional=True),
    mean=Array("float64", 4, optional=_is_constant),
    scale=Array("float64", 4, optional=_is_constant),
    n_groups=Number("int", least=1, below="groups", optional=_is_constant),
    logistic=Estimator(optional=_is_constant, features=lambda found: 4 + 2 * found.n_groups),
    spline=Record("Spline", optional=lambda found: _is_constant(found) or found.method != "spline"),
)
class RankMap:
    """A logistic regression, and a spline of its log-odds."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.constant: float | None = None

    def fit(
        self, features: tuple[np.ndarray, np.ndarray], relevant: np.ndarray, weight: np.ndarray
    ) -> "RankMap":
        """Learn from pairs: their features and groups, whether they are relevant, and weights."""
        plain, groups = features
        if not relevant.any() or relevant.all():
            self.constant = float((weight @ relevant + 0.5) / (weight.sum() + 1.0))
            return self
        self.mean = np.average(plain, axis=0, weights=weight)
        self.scale = np.sqrt(np.average((plain - self.mean) ** 2, axis=0, weights=weight))
        self.scale[self.scale == 0.0] = 1.0
        self.n_groups = int(groups.max()) + 1
        # The weights' sum is that of rows, so that a weight of two is a repeated row.
        self.logistic = LogisticRegression(max_iter=_MOST_STEPS)
        design = self._design(plain, groups)
        self.logistic.fit(design, relevant, sample_weight=weight)
        if self.method == "spline":
            z = self.logistic.decision_function(design)
            self.spline = Spline().fit(z, relevant, weight)
        return self

    def probabilities(self, features: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the probabilities of pairs with such features and groups, float64."""
        plain, groups = features
        if self.constant is not None:
            return np.full(len(plain), self.constant)
        if not len(plain):
            return np.empty(0)
        z = self.logistic.decision_function(self._design(plain, groups))
        z = self.spline.bent(z) if self.method == "spline" else z
        return (0.5 * (1.0 + np.tanh(0.5 * z))).clip(LEAST, 1.0 - LEAST)

    def _design(self, plain: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the features, and those of its group for each pair."""
        shared = (plain - self.mean) / self.scale
        own = (groups[:, None] == np.arange(self.n_groups)).astype(np.float64)
        return np.concatenate([shared, own, own * shared[:, :1]], axis=1)


@declares(
    bends=Array("float64", None, ascending=True),
    slopes=Array("float64", lambda spline: len(spline.bends) + 2),
    _has_bends=Holds("at least one bend"),
)
class Spline:
    """Log-odds as a non-decreasing line of four pieces.

    It bends at the quartiles of the relevant pairs, and is penalised for its distance from the
    identity: with few pairs it is nearly that.
    """

    @property
    def _has_bends(self) -> bool:
        return len(self.bends) > 0

    def fit(self, z: np.ndarray, relevant: np.ndarray, weight: np.ndarray) -> "Spline":
        """Minimise the log-loss of pairs, some relevant, with a penalty on each slope's distance.

        Parameters
        ----------
        z : ndarray of float64 of shape (n,)
            Log-odds.
        relevant : ndarray of bool of shape (n,)
            Whether the instance has the label.
        weight : ndarray of float64 of shape (n,)
            A weight of two is a repeated pair.
        """
        order = np.argsort(z[relevant], kind="stable")
        total = np.cumsum(weight[relevant][order])
        at = np.searchsorted(total, total[-1] * np.array(_BENDS))
        self.bends = np.unique(z[relevant][order][at])
        pieces = self._pieces(z)
        n_pieces = pieces.shape[1] - 1
        self.slopes, *_ = fit_bounded_logistic(
            pieces,
            weight * relevant,
            weight,
            np.append(np.ones(n_pieces), 0.0),
            pull=np.append(np.full(n_pieces, _PULL), 0.0),
            lower=np.append(np.zeros(n_pieces), -np.inf),
        )
        return self

    def bent(self, z: np.ndarray) -> np.ndarray:
        """Return the log-odds for those of the logistic regression."""
        return self._pieces(z) @ self.slopes

    def _pieces(self, z: np.ndarray) -> np.ndarray:
        """Return the parts of z below, between and above the bends, which sum to z, and ones."""
        parts = [np.minimum(z, self.bends[0])]
        for begin, end in itertools.pairwise(self.bends):
            parts.append(np.clip(z - begin, 0.0, end - begin))
        parts.append(np.maximum(z - self.bends[-1], 0.0))
        return np.column_stack([*parts, np.ones(len(z))])


def leads(scores: np.ndarray) -> np.ndarray:
    """Return the lead of the first score over the second, and of others over the first (< 0)."""
    lead = scores - scores[:, :1]
    if scores.shape[1] > 1:
        lead[:, 0] = scores[:, 0] - scores[:, 1]
    return lead
