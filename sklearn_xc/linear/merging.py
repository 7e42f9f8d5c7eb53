"""Models of some of the labels each, put together."""

import itertools
import os
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._arguments import check_count
from sklearn_xc._checks import check_targets
from sklearn_xc._label_names import check_label_names
from sklearn_xc._load import load
from sklearn_xc._out_of_fold import n_rows
from sklearn_xc._saved import check_edits, read_all
from sklearn_xc.linear.label_sets import joined
from sklearn_xc.linear.ova import OvALinearXC
from sklearn_xc.linear.slices import require_one_whole
from sklearn_xc.linear.training import POSITIVES_COST
from sklearn_xc.solvers.pruning import sum_up, together
from sklearn_xc.storage.checkpoints import identity_of
from sklearn_xc.weights.label_weights import CompactLabelWeights

#: Parameters that slices may have of their own.
_OWN = {"label_range", "max_memory"}


def plan_label_ranges(X: Any, y: Any, n: int) -> list[tuple[int, int]]:
    """Return `n` ranges of labels that take about the same time to train, one for each machine.

    Each range is a `label_range` of :class:`OvALinearXC`; :func:`merge` combines the resulting
    models.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Instances; only their number is read.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        One class per instance, or a binary indicator.
    n : int
        Number of ranges, at most the number of labels.

    Returns
    -------
    list of (int, int)
        Where each range begins and ends; together they cover all labels, in order.

    Raises
    ------
    ValueError
        If `n` is not a positive integer, or if `y` has two classes or is not a valid y for
        :class:`OvALinearXC`.

    Examples
    --------
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.linear import plan_label_ranges
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> plan_label_ranges(X, Y, 3)
    [(0, 16), (16, 32), (32, 50)]
    """
    who = "plan_label_ranges"
    n = check_count(n, f"{who}: n")
    targets = check_targets(OvALinearXC(), y, n_rows(X, who))
    n_labels, counts = len(targets.classes), np.diff(targets.indptr)
    if n_labels != len(counts):
        raise ValueError(f"{who}: y must have more than two classes, which are one problem.")
    # Labels with the same instances are solved once, but may be in several ranges.
    costs = np.cumsum(1.0 + POSITIVES_COST * counts)
    smallest = 3 if targets.kind == "classes" else 1
    n = max(1, min(n, n_labels // smallest))
    wanted = costs[-1] * np.arange(1, n) / n
    ends = np.searchsorted(costs, wanted) + 1
    for i in range(1, n):  # none is empty
        least = (0 if i == 1 else ends[i - 2]) + smallest
        ends[i - 1] = min(max(ends[i - 1], least), n_labels - smallest * (n - i))
    edges = [0, *ends.tolist(), n_labels]
    return list(itertools.pairwise(edges))


def merge(models: Sequence[Any]) -> OvALinearXC:
    """Return one model made of models that were each fitted to some labels, by `label_range`.

    The result is the model of a single fit with `label_range` None: every number that follows from
    the data has the same bits, however the labels were cut. Only the times in ``fit_report_``
    differ.

    Parameters
    ----------
    models : sequence of OvALinearXC, str or PathLike
        Fitted models, or the folders where they were saved, in any order. All must have been given
        the same X, y, weights and parameters (those that do not change the model may differ:
        `n_jobs`, `numa`, `max_memory`, `top_k`, `label_names`, `verbose`, `checkpoint_dir`).

    Returns
    -------
    OvALinearXC
        With the parameters of the first model, except that `label_range` is None. If these include
        a `max_memory`, weights that do not fit go to a file.

    Raises
    ------
    ValueError
        For gaps, overlaps, and different data or parameters, which the message names; for models
        that are compact (make the merged one compact instead) or that were fitted to all labels.
    TypeError
        For anything else than such a model.
    SavedModelError, OSError
        As in :func:`sklearn_xc.load`.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.linear import merge, plan_label_ranges
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> parts = [OvALinearXC(label_range=r).fit(X, Y) for r in plan_label_ranges(X, Y, 3)]
    >>> merge(parts).coef_.shape
    (50, 300)
    """
    who = "merge"
    if isinstance(models, str | os.PathLike) or not isinstance(models, Sequence) or not len(models):
        raise ValueError(
            f"{who}: models must be a list of fitted models or folders. Got {models!r}."
        )
    parts = [_opened(model, number, who) for number, model in enumerate(models)]
    _require_same_parameters(parts, who)
    order = require_one_whole(
        [part._slice for part in parts], [len(part.classes_) for part in parts], who
    )
    parameters = parts[0].get_params(deep=False)
    parts = [parts[i] for i in order]
    whole = OvALinearXC(**{**parameters, "label_range": None})
    for name, value in vars(parts[0]).items():  # in the order of fit, by which they are saved
        if name not in parameters and name != "_slice":
            setattr(whole, name, value)
    whole.__dict__.update(joined(parts, whole._allowed_bytes()))
    _require_names(whole, who)
    whole._unseen_labels = whole._find_unseen()
    sample = together(part._slice.sample for part in parts)
    whole._pruning_cost = None if sample is None else sum_up(sample)
    whole._weights.unseen = whole._unseen_labels
    check_edits(whole)
    return whole


def _opened(model: Any, number: int, who: str) -> OvALinearXC:
    """Return a model that knows where it belongs."""
    if isinstance(model, str | os.PathLike):
        model = load(model)
    if type(model) is not OvALinearXC:
        raise TypeError(
            f"{who}: models[{number}] must be an OvALinearXC, or the folder of one. Got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    read_all(model)
    if getattr(model, "_slice", None) is None:
        raise ValueError(
            f"{who}: models[{number}] must be fitted with label_range. It has all labels of its y."
        )
    if isinstance(model._weights, CompactLabelWeights):
        raise ValueError(
            f"{who}: models[{number}] is compact. Merge whole weights, then compact()."
        )
    return model


def _require_names(whole: OvALinearXC, who: str) -> None:
    """Raise ValueError unless labels have names of one kind, each its own; classes must rise."""
    if whole._targets_kind != "classes":
        check_label_names(whole.classes_, None, f"{who}: the names of the labels of all models")
    elif not (whole.classes_[1:] > whole.classes_[:-1]).all():
        raise ValueError(f"{who}: classes were renamed: they must rise from model to model.")


def _require_same_parameters(parts: list[OvALinearXC], who: str) -> None:
    """Raise ValueError unless slices were fitted with the same parameters, by name."""
    first, *others = (identity_of(part, {})["parameters"] for part in parts)
    for number, other in enumerate(others, 1):
        for name in sorted(first.keys() - _OWN):
            own, mine = (getattr(parts[i], name) for i in (0, number))
            is_plain = all(isinstance(one, Number | dict) for one in (own, mine))
            if first[name] != other[name] and not (is_plain and own == mine):
                raise ValueError(
                    f"{who}: all models must have the same parameters. {name} of models[0] is "
                    f"{own!r}, that of models[{number}] is {mine!r}."
                )
