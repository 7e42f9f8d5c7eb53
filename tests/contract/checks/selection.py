"""Checks of a sparse y inside the tools of scikit-learn and ``sklearn_xc.model_selection``."""

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from checks.comparing import dense, expect, expect_same, unfitted
from checks.problems import awkward, made
from sklearn_xc import topk
from sklearn_xc.model_selection import cross_val_score


def check_pipeline(name, estimator):
    """Check that the end of a Pipeline answers as it does alone."""
    X, Y = awkward()
    pipeline = make_pipeline(MaxAbsScaler(), unfitted(estimator)).fit(X, Y)
    scaled = pipeline[:-1].transform(X)
    alone = unfitted(estimator).fit(scaled, Y)
    expect_same(name, "at the end of a Pipeline", pipeline[-1], alone, scaled)
    predicted = pipeline.predict(X)
    expect(
        sp.issparse(predicted) and predicted.shape == Y.shape,
        name,
        f"predict of a Pipeline must be a sparse matrix of shape {Y.shape}",
        predicted,
    )
    if hasattr(alone, "predict_topk"):
        pairs = zip(topk(pipeline, X, 3), alone.predict_topk(scaled, 3), strict=True)
        expect(
            all(np.allclose(a, b, rtol=1e-12) for a, b in pairs),
            name,
            "sklearn_xc.topk of a Pipeline must be predict_topk of its last step",
            "other labels or scores",
        )


def check_cross_val_predict(name, estimator):
    """Check that ``cross_val_predict`` answers as models of the folds do."""
    X, Y = awkward()
    cv = KFold(2)
    found = cross_val_predict(unfitted(estimator), X, Y, cv=cv)
    expect(
        found.shape == Y.shape and sp.issparse(found),
        name,
        f"cross_val_predict must be sparse of shape {Y.shape}",
        found,
    )
    for train, test in cv.split(X):
        right = unfitted(estimator).fit(X[train], Y[train]).predict(X[test])
        gap = np.abs(dense(found[test]).astype(float) - dense(right).astype(float)).max()
        expect(
            gap == 0,
            name,
            "cross_val_predict must answer as models of the folds do",
            f"a difference of {gap:.3g}",
        )


def check_cross_val_score(name, estimator):
    """Check that ``cross_val_score`` is ``score`` of the folds, and takes "P@1"."""
    X, Y = made()
    cv = KFold(2)
    expected = [
        unfitted(estimator).fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in cv.split(X)
    ]
    found = cross_val_score(unfitted(estimator), X, Y, cv=cv, error_score="raise")
    expect(
        np.allclose(found, expected, rtol=1e-9),
        name,
        f"cross_val_score must be the scores of the folds, {expected}",
        f"{found.tolist()}",
    )
    if hasattr(unfitted(estimator).fit(X, Y), "predict_topk"):
        found = cross_val_score(
            unfitted(estimator), X, Y, cv=cv, scoring="P@1", error_score="raise"
        )
        expect(
            ((found >= 0) & (found <= 1)).all(), name, "P@1 must lie in [0, 1]", str(found.tolist())
        )


def check_grid_search(name, estimator):
    """Check that ``GridSearchCV`` refits to all rows."""
    X, Y = awkward()
    alone = unfitted(estimator).fit(X, Y)
    search = GridSearchCV(unfitted(estimator), {}, cv=KFold(2), error_score="raise").fit(X, Y)
    expect(
        np.isfinite(search.best_score_),
        name,
        "the score of a GridSearchCV must be finite",
        f"{search.best_score_}",
    )
    expect_same(name, "in a GridSearchCV", search.best_estimator_, alone, X)
    predicted = search.predict(X)
    expect(
        sp.issparse(predicted) and predicted.shape == Y.shape,
        name,
        f"predict of a GridSearchCV must be a sparse matrix of shape {Y.shape}",
        predicted,
    )
