"""Checks of what a fitted model says: scores, the best labels, probabilities, ``score``."""

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

from checks.comparing import (
    METHODS,
    answers,
    asks,
    dense,
    difference,
    expect,
    unfitted,
)
from checks.problems import awkward, easy, made


def check_predict_topk(name, estimator):
    """Check shape, dtype, order and padding (-1, -inf) of ``predict_topk``."""
    X, Y = made()
    for y in (Y, Y.toarray()):
        model = unfitted(estimator).fit(X, y)
        for k in (1, 3, 5, 7):
            labels, scores = model.predict_topk(X, k)
            known = min(k, 5)
            for part, kind in ((labels, "int64 labels"), (scores, "float scores")):
                is_right = part.dtype == np.int64 if part is labels else part.dtype.kind == "f"
                expect(
                    is_right and part.shape == (60, k),
                    name,
                    f"predict_topk(X, {k}) must give {kind} of shape (60, {k})",
                    part,
                )
            expect(
                (labels[:, known:] == -1).all() and (scores[:, known:] == -np.inf).all(),
                name,
                f"predict_topk(X, {k}) of 5 labels must end with labels -1 and scores -inf",
                f"{labels[0].tolist()} with {scores[0].tolist()}",
            )
            labels, scores = labels[:, :known], scores[:, :known]
            expect(
                (np.diff(scores, axis=1) <= 0).all(),
                name,
                "scores of predict_topk must not rise in a row",
                f"{scores[(np.diff(scores, axis=1) > 0).any(axis=1)][:1].tolist()}",
            )
            expect(
                ((labels >= 0) & (labels < 5)).all()
                and (np.diff(np.sort(labels, axis=1), axis=1) > 0).all(),
                name,
                "labels of predict_topk must be columns of y, each once in a row",
                f"{labels[:2].tolist()}",
            )


def check_predict_topk_goes_with_scores(name, estimator):
    """Check that ``predict_topk`` has the largest of ``decision_function``."""
    X, Y = awkward()
    for y in (Y, Y.toarray(), easy()[1]):
        model = unfitted(estimator).fit(X, y)
        if not hasattr(model, "decision_function"):
            return
        scores = dense(model.decision_function(X))
        best = -np.sort(-scores, axis=1)
        tolerance = 1e-9 * max(1.0, np.abs(scores).max())
        for k in (1, 3, scores.shape[1]):
            labels, found = model.predict_topk(X, k)
            for what, right in (
                ("those of its labels in", np.take_along_axis(scores, labels, axis=1)),
                (f"the {k} largest of", best[:, :k]),
            ):
                gap = np.abs(found - right).max()
                expect(
                    gap <= tolerance,
                    name,
                    f"scores of predict_topk(X, {k}) must be {what} decision_function",
                    f"a difference of {gap:.3g}",
                )


def check_ties(name, estimator):
    """Check that of equal scores the smaller column comes first, at the cut too."""
    X, Y = awkward()
    y = sp.csr_array(np.hstack([Y.toarray()[:, :2]] * 3))
    blank = sp.vstack([X, sp.csr_array((2, 15))], format="csr")
    model = unfitted(estimator).fit(X, y)
    labels, scores = model.predict_topk(blank, 6)
    wrong = (np.diff(scores, axis=1) == 0) & (np.diff(labels, axis=1) < 0)
    expect(
        not wrong.any(),
        name,
        "of labels with equal scores the smaller must come first in predict_topk",
        f"{labels[wrong.any(axis=1)][:1].tolist()} with {scores[wrong.any(axis=1)][:1].tolist()}",
    )
    for k in (1, 2, 4):
        few, _ = model.predict_topk(blank, k)
        differs = (few != labels[:, :k]).any(axis=1)
        expect(
            not differs.any(),
            name,
            f"predict_topk(X, {k}) must be the first {k} columns of predict_topk(X, 6)",
            f"{few[differs][:1].tolist()}, beside {labels[differs][:1].tolist()}",
        )


def check_rows_alone(name, estimator):
    """Check that an answer does not depend on the other rows of X."""
    X, Y = awkward()
    model = unfitted(estimator).fit(X, Y)
    whole = answers(model, X)
    for rows in (np.arange(7), np.array([3]), np.arange(20, 60)):
        for method, ask in asks(model).items():
            expected = whole[method]
            of_rows = (
                tuple(a[rows] for a in expected) if method == "predict_topk" else expected[rows]
            )
            differs = difference(ask(X[rows]), of_rows)
            expect(
                not differs,
                name,
                f"{method} of some rows must be that of these rows among others",
                differs,
            )


def check_top_k(name, estimator):
    """Check that sparse answers hold the ``top_k`` best labels of each row, and no more.

    Of estimators with ``predict_topk`` and a parameter of this name, which may be set after the
    fit. Scores of zero are stored; ``predict_topk`` goes on beyond it.
    """
    if "top_k" not in estimator.get_params() or not hasattr(estimator, "predict_topk"):
        return
    X, Y = awkward()
    whole = answers(unfitted(estimator, top_k=1000).fit(X, Y), X)
    model = unfitted(estimator).fit(X, Y)
    for k in (1, 3):
        model.set_params(top_k=k)
        best, _ = model.predict_topk(X, 5)
        expect(best.min() >= 0, name, "predict_topk(X, 5) must not be cut by top_k", str(best[0]))
        for method in METHODS[1:]:
            if not hasattr(model, method):
                continue
            answer, right = getattr(model, method)(X), dense(whole[method])
            sizes = np.diff(answer.indptr)
            expect(
                (sizes == k).all(),
                name,
                f"{method} must store {k} entries in each row where top_k={k}",
                f"{sizes.min()} to {sizes.max()}",
            )
            found = answer.indices.reshape(60, k)
            expect(
                (found == np.sort(best[:, :k], axis=1)).all(),
                name,
                f"{method} must hold the labels of predict_topk where top_k={k}",
                f"others in {(found != np.sort(best[:, :k], axis=1)).any(axis=1).sum()} rows",
            )
            expected = np.take_along_axis(right, found, axis=1)
            gap = np.abs(answer.data.reshape(60, k) - expected).max()
            expect(
                gap <= 1e-12 * max(1.0, np.abs(expected).max()),
                name,
                f"{method} of the best {k} labels must be that of all",
                f"a difference of {gap:.3g}",
            )
        full = dense(whole["predict"])
        expected = np.zeros_like(full)
        np.put_along_axis(
            expected, best[:, :k], np.take_along_axis(full, best[:, :k], axis=1), axis=1
        )
        few = dense(model.predict(X))
        expect(
            (few == expected).all(),
            name,
            f"predict must name those of its labels that are among the {k} best where top_k={k}",
            f"{(few != expected).sum()} other entries",
        )


def check_predict_proba(name, estimator):
    """Check that probabilities lie in [0, 1] and go with their logarithms."""
    X, Y = made()
    for y in (Y, Y.toarray()):
        model = unfitted(estimator).fit(X, y)
        if not hasattr(model, "predict_proba"):
            return
        for x in (X, X * 1e6):
            proba = _stored(model.predict_proba(x))
            expect(
                ((proba >= 0) & (proba <= 1)).all(),
                name,
                "predict_proba must lie in [0, 1]",
                f"{proba.min()} to {proba.max()}",
            )
        if hasattr(model, "predict_log_proba"):
            logs, proba = (
                _stored(ask(X)) for ask in (model.predict_log_proba, model.predict_proba)
            )
            with np.errstate(divide="ignore"):
                gap = np.abs(np.exp(logs) - proba).max()
            expect(
                gap <= 1e-9,
                name,
                "predict_log_proba must be the logarithm of predict_proba",
                f"a difference of {gap:.3g} of probabilities",
            )


def check_score(name, estimator):
    """Check that ``score`` takes a sparse y in all containers, and weights if any.

    A weight of 0 removes a row.
    """
    X, Y = made()
    model = unfitted(estimator).fit(X, Y)
    right = model.score(X, Y)
    expect(np.ndim(right) == 0 and np.isfinite(right), name, "score must be a number", f"{right!r}")
    for y in (Y.tocsc(), sp.coo_matrix(Y), Y.astype(np.int8), Y.toarray()):
        found = model.score(X, y)
        expect(
            abs(found - right) <= 1e-12,
            name,
            f"score must be the same for y as a {type(y).__name__} of {y.dtype}, {right}",
            f"{found}",
        )
    if "sample_weight" in inspect.signature(model.score).parameters:
        others = Y[::-1]  # of which some are missed
        for part in range(6):
            kept = np.arange(60) // 10 == part
            found = model.score(X, others, sample_weight=kept.astype(float))
            right = model.score(X[kept], others[kept])
            expect(
                abs(found - right) <= 1e-12,
                name,
                f"score with weights of 0 must be that without these rows, {right}",
                f"{found}",
            )


def _parts(answer: Any) -> tuple:
    return answer if isinstance(answer, tuple) else (answer,)


def _stored(answer: Any) -> np.ndarray:
    return answer.data if sp.issparse(answer) else np.asarray(answer)
