"""Instances of which one model has the best label right and the other has it wrong, explained."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._explanation import Explanation
from sklearn_xc._explanation_inside import explain_inside
from sklearn_xc._out_of_fold import as_rows
from sklearn_xc._sklearn import safe_indexing
from sklearn_xc._topk import unwrap
from sklearn_xc.inspection.comparison.common_labels import CommonLabels
from sklearn_xc.weights.label_weights import arrangements_dropped

#: Features of an instance without a text that are shown.
_N_FEATURES = 12
#: Features that an explanation lists.
_N_EXPLAINED = 6


@dataclass(frozen=True)
class Answer:
    """A label that a model names.

    Attributes
    ----------
    label : object
    score : float
    is_true : bool
    """

    label: Any
    score: float
    is_true: bool


@dataclass(frozen=True)
class Case:
    """An instance of which one model alone has the best label right.

    Attributes
    ----------
    row : int
        Of the instance in X.
    instance : str
        Its text, or the features with the largest values.
    truth : list
        Its true labels.
    right : {0, 1}
        Which model has it right.
    answers : tuple of two list of Answer
        The best labels of each model.
    wrong_label, right_label : object
        The best label of the model that is wrong, and that of the other.
    explanations : list of (str, Explanation)
        By the model that is wrong: why its own label, and what of the right one.
    notes : list of str
        Why there is no explanation, where there is none.
    """

    row: int
    instance: str
    truth: list
    right: int
    answers: tuple[list[Answer], list[Answer]]
    wrong_label: Any
    right_label: Any
    explanations: list[tuple[str, Explanation]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Instances:
    """Where instances come from, and what shows them.

    Attributes
    ----------
    X : object of n instances
    texts : sequence of n texts or None
    feature_names : array-like or None
    """

    X: Any
    texts: Any
    feature_names: Any

    def one(self, row: int) -> Any:
        """Return one instance as models take a batch of it."""
        return safe_indexing(as_rows(self.X), [row])

    def show(self, row: int) -> str:
        """Return an instance as a text."""
        if self.texts is not None:
            (text,) = safe_indexing(self.texts, [row])
            return str(text)
        one = self.one(row)
        if hasattr(one, "columns"):
            shown = list(zip(one.columns, np.asarray(one)[0].tolist(), strict=True))
            return ", ".join(f"{name} = {value}" for name, value in shown[:_N_FEATURES])
        if not sp.issparse(one) and (isinstance(one, list) or np.ndim(one) == 1):
            return str(next(iter(one)))
        names, values = _largest(one)
        if self.feature_names is not None and len(names):
            names = np.asarray(self.feature_names)[names]
        kept = [f"{name} ({value:.3g})" for name, value in zip(names, values, strict=True)]
        return ", ".join(kept) or "(no features)"


def sample_cases(
    labels: CommonLabels, models: tuple[Any, Any], instances: Instances,
    ranked: tuple[Any, Any], hit: tuple[np.ndarray, np.ndarray], n: int, rng: np.random.Generator,
) -> list[Case]:  # fmt: skip
    """Return up to n instances that the second model gains, and as many that it loses.

    Parameters
    ----------
    labels : CommonLabels
    models : tuple of two classifiers
    instances : Instances
    ranked : tuple of two (labels, scores)
        Each of shape (n_samples, k).
    hit : tuple of two ndarray of bool of shape (n_samples, k)
    n : int
    rng : Generator
    """
    first = [each[:, 0] for each in hit]
    cases = []
    for right in (1, 0):
        rows = np.flatnonzero(first[right] & ~first[1 - right])
        drawn = np.sort(rng.permutation(rows)[:n])
        with arrangements_dropped():  # one model explains, as one model ranked
            cases += [
                _case(labels, models, instances, ranked, hit, int(row), right) for row in drawn
            ]
    return cases


def _case(
    labels: CommonLabels, models: tuple[Any, Any], instances: Instances,
    ranked: tuple[Any, Any], hit: tuple[np.ndarray, np.ndarray], row: int, right: int,
) -> Case:  # fmt: skip
    names, true = labels.names, labels.true
    span = slice(*np.searchsorted(true.rows, [row, row + 1]))
    answers = tuple(
        [
            Answer(names[label], float(score), bool(is_true))
            for label, score, is_true in zip(places[row], scores[row], hits[row], strict=True)
            if label >= 0
        ]
        for (places, scores), hits in zip(ranked, hit, strict=True)
    )
    wrong = 1 - right
    right_label = answers[right][0].label
    wrong_label = answers[wrong][0].label if answers[wrong] else None
    case = Case(
        row, instances.show(row), [names[label] for label in true.columns[span]], right,
        (answers[0], answers[1]), wrong_label, right_label,
    )  # fmt: skip
    place = int(ranked[right][0][row, 0])
    for what, label, at in (
        ("its wrong label", wrong_label, int(ranked[wrong][0][row, 0])),
        ("the right label", right_label, place),
    ):
        for made in _explained(labels, models, wrong, instances, row, label, at):
            if isinstance(made, Explanation):
                case.explanations.append((what, made))
            elif made not in case.notes:
                case.notes.append(made)
    return case


def _explained(
    labels: CommonLabels, models: tuple[Any, Any], which: int, instances: Instances, row: int,
    label: Any, place: int,
) -> Iterator[Explanation | str]:  # fmt: skip
    """Yield the explanation of a label by a model, or why there is none."""
    model = models[which]
    classifier, _ = unwrap(model, None)
    who = type(classifier).__name__
    if place < 0:
        return
    if not hasattr(classifier, "explain"):
        yield f"{who} does not explain its scores."
        return
    own = np.flatnonzero(labels.places[which] == place)
    if not len(own):
        yield f"{label!r} is not among the labels of {who}."
        return
    one = instances.one(row)
    x = one[0] if isinstance(one, list) else one.iloc[0] if _is_series(one) else one
    x = x[0] if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "OUT" else x
    own_name = np.asarray(classifier.classes_)[own[0]]
    own_name = own_name.item() if isinstance(own_name, np.generic) else own_name
    names = None if hasattr(classifier, "encode_targets") else instances.feature_names
    try:
        made = explain_inside(model, x, own_name, feature_names=names, n_features=_N_EXPLAINED)
    except ValueError as error:  # such as a label without a training instance
        yield f"{who} does not explain {label!r}: {error}"
        return
    yield Explanation(**{**vars(made), "label": label})


def _is_series(one: Any) -> bool:
    return hasattr(one, "iloc") and not hasattr(one, "columns")


def _largest(one: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns with the largest values of one row, and these."""
    if sp.issparse(one):
        row = sp.csr_array(one)
        columns, values = row.indices, row.data
    else:
        values = np.asarray(one)[0]
        columns = np.flatnonzero(values)
        values = values[columns]
    order = np.argsort(-np.abs(values), kind="stable")[:_N_FEATURES]
    return columns[order], values[order]
