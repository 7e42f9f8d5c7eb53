"""How good a model's labels are, from texts and true labels that come in pieces."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import f1_score

from sklearn_xc.command_line.cells import as_text
from sklearn_xc.metrics import (
    ndcg_at_k,
    precision_at_k,
    propensity,
    psp_at_k,
    recall_at_k,
)

KS = (1, 3, 5)
#: Bounds of the groups of labels by their training rows, the upper one left out.
_GROUPS = (0, 1, 2, 5, 10, 50, 100, 1000, np.inf)


class Answers:
    """The best labels of rows, beside the true ones.

    Names that training has not seen get columns after all others: they can be missed, not found.

    Parameters
    ----------
    model : TextClassifierXC
        Fitted on names.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._places = {as_text(name): at for at, name in enumerate(model.classes_.tolist())}
        self._n_known = len(self._places)
        self._best: list[np.ndarray] = []
        self._true: list[np.ndarray] = []
        self._counts: list[int] = []
        self._named: list[np.ndarray] = []
        self._n_named: list[int] = []

    def add(self, texts: list[str], labels: list[list[str]]) -> None:
        """Have the model label some rows, whose true labels are given."""
        self._best.append(self._model.predict_topk(texts, max(KS))[0])
        places = self._places
        self._true.append(
            np.array([places.setdefault(n, len(places)) for names in labels for n in names], int)
        )
        self._counts += map(len, labels)
        answers = [one if isinstance(one, list) else [one] for one in self._model.predict(texts)]
        self._named.append(np.array([places[as_text(n)] for names in answers for n in names], int))
        self._n_named += map(len, answers)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return len(self._counts)

    def metrics(self) -> dict[str, float]:
        """Return "P@1", "R@1", "nDCG@1", "PSP@1", ..., "micro-F1" and "macro-F1", each in [0, 1].

        The latter is the mean over labels that are true, or predicted, for some row.
        """
        Y, best = self._indicator(), np.concatenate(self._best)
        columns = {
            "P": precision_at_k(Y, best, KS),
            "R": recall_at_k(Y, best, KS),
            "nDCG": ndcg_at_k(Y, best, KS),
        }
        if self._model.n_samples_fit_ >= 3:
            weights = propensity(self._model.label_counts_, self._model.n_samples_fit_)
            # A name that no ranking can have found adds to neither sum.
            columns["PSP"] = psp_at_k(Y[:, : self._n_known], best, KS, propensities=weights)
        else:
            columns["PSP"] = np.full(len(KS), np.nan)
        found = {
            f"{name}@{k}": float(value)
            for name, values in columns.items()
            for k, value in zip(KS, values, strict=True)
        }
        named = self._matrix(self._named, self._n_named)
        return found | {
            "micro-F1": float(f1_score(Y, named, average="micro", zero_division=0)),
            "macro-F1": float(f1_score(Y, named, average="macro", zero_division=np.nan)),
        }

    def by_frequency(self) -> list[dict[str, Any]]:
        """Return what is found of labels with so many training rows.

        Returns
        -------
        list of dict
            ``training_rows`` as text, "not learnt" for names that training did not see or left
            out; ``labels`` that occur, their ``occurrences``, and the
            share ``found`` that is among the five best.
        """
        Y, best = self._indicator(), np.concatenate(self._best)
        n = Y.shape[1]
        counts = np.zeros(n, int)
        counts[: self._n_known] = self._model.label_counts_
        rows = np.repeat(np.arange(len(best)), best.shape[1])
        is_label = best.ravel() >= 0
        answered = sp.csr_array(
            (np.ones(int(is_label.sum()), np.int8), (rows[is_label], best.ravel()[is_label])),
            shape=Y.shape,
        )
        hits = np.asarray(Y.multiply(answered).sum(axis=0)).ravel()
        occurs = np.asarray(Y.sum(axis=0)).ravel()
        found = []
        for low, high in pairwise(_GROUPS):
            group = (counts >= low) & (counts < high) & (occurs > 0)
            if group.any():
                total = int(occurs[group].sum())
                found.append(
                    {
                        "training_rows": _as_range(low, high),
                        "labels": int(group.sum()),
                        "occurrences": total,
                        "found": float(hits[group].sum() / total),
                    }
                )
        return found

    def _indicator(self) -> sp.csr_array:
        return self._matrix(self._true, self._counts)

    def _matrix(self, parts: list[np.ndarray], counts: list[int]) -> sp.csr_array:
        columns = np.concatenate(parts)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        Y = sp.csr_array(
            (np.ones(len(columns), np.int64), columns, indptr),
            shape=(len(counts), len(self._places)),
        )
        Y.sort_indices()
        return Y


def _as_range(low: float, high: float) -> str:
    if low == 0:
        return "not learnt"
    if high == np.inf:
        return f"{low:,} or more"
    return f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
