"""Checks of training with a sparse y: weights, repetition, threads, failures and copies."""

import copy
import inspect
import pickle
import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import clone

from checks.comparing import (
    answers,
    difference,
    expect,
    expect_refused,
    expect_same,
    fitted_names,
    unfitted,
)
from checks.problems import awkward, made


def check_sample_weight(name, estimator):
    """Check that with a sparse y a weight of 0 removes a row, and ones are no weights.

    Of estimators whose ``fit`` takes `sample_weight`.
    """
    if "sample_weight" not in inspect.signature(estimator.fit).parameters:
        return
    X, Y = awkward()
    kept = np.arange(60) % 3 > 0
    weighted = unfitted(estimator).fit(X, Y, sample_weight=kept.astype(float))
    without = unfitted(estimator).fit(X[kept], Y[kept])
    _expect_near(name, "with weights of 0 and without these rows", weighted, without, X)
    model = unfitted(estimator).fit(X, Y, sample_weight=np.ones(60))
    expected = unfitted(estimator).fit(X, Y)
    _expect_near(name, "with weights of 1 and without weights", model, expected, X)
    expect_refused(
        name,
        "59 weights for 60 rows",
        unfitted(estimator).fit,
        X,
        Y,
        sample_weight=np.ones(59),
    )


def _expect_near(name, when, model, expected, X):
    """Compare scores alone: a label near the threshold may be predicted or not."""
    found, right = answers(model, X), answers(expected, X)
    for method in right.keys() - {"predict"} or right.keys():
        differs = difference(found[method], right[method])
        expect(not differs, name, f"{method} must be the same {when}", differs)


def check_fit_twice(name, estimator):
    """Check that a fit does not depend on earlier ones, and returns the estimator."""
    X, Y = awkward()
    expected = unfitted(estimator).fit(X, Y)
    model = unfitted(estimator).fit(X, Y)
    expect_same(name, "after the same fit of another copy", model, expected, X)
    returned = model.fit(*made(8, 1))
    expect(returned is model, name, "fit must return the estimator itself", returned)
    expect_same(name, "after a fit to other data before", model.fit(X, Y), expected, X)


def check_n_jobs(name, estimator):
    """Check that two threads train the same model as one, and answer as one does.

    Of estimators with a parameter `n_jobs`.
    """
    if "n_jobs" not in estimator.get_params():
        return
    X, Y = awkward()
    with joblib.parallel_config("threading"):
        alone, together = (unfitted(estimator, n_jobs=n).fit(X, Y) for n in (1, 2))
    expect_same(name, "for n_jobs of 1 and 2", together, alone, X)


def check_failed_fit(name, estimator):
    """Check that a refused fit leaves the answers and attributes of the last one."""
    X, Y = made()
    model = unfitted(estimator).fit(X, Y)
    before, names = answers(model, X), fitted_names(model)
    for what, x, y in (
        ("too few rows of y", X, Y[:50]),
        ("other features and too few rows of y", X[:, :7], Y[:50]),
        ("a NaN in X", X * np.nan, Y),
    ):
        expect_refused(name, what, model.fit, x, y)
        expect(
            fitted_names(model) == names,
            name,
            f"a fit that is refused for {what} must leave the attributes of the fit before",
            f"other names: {sorted(fitted_names(model) ^ names)}",
        )
        try:
            after = answers(model, X)
        except Exception as error:
            raise AssertionError(
                f"{name}: a model must answer as before after a fit that is refused for {what}. "
                f"Got {type(error).__name__}: {error}"
            ) from error
        for method, answer in before.items():
            differs = difference(after[method], answer)
            expect(
                not differs,
                name,
                f"{method} must be the same after a fit that is refused for {what}",
                differs,
            )


def check_failed_first_fit(name, estimator):
    """Check that a first fit that is refused leaves no fitted attribute behind."""
    X, Y = made()
    model = unfitted(estimator)
    expect_refused(name, "too few rows of y", model.fit, X, Y[:50])
    left = sorted(n for n in fitted_names(model) if n[-1] == "_" and n[0] != "_")
    expect(not left, name, "a refused first fit must leave no fitted attribute", f"{left}")


def check_pickle(name, estimator):
    """Check that a pickle, a deep copy and a memory-mapped file answer the same."""
    X, Y = awkward()
    model = unfitted(estimator).fit(X, Y)
    for _ in range(2):  # before and after what answers keep for the next
        again = pickle.loads(pickle.dumps(model))
        expect_same(name, "after it was pickled", again, model, X)
    expect_same(name, "in a deep copy", copy.deepcopy(model), model, X)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        joblib.dump(model, Path(folder, "model"))
        mapped = joblib.load(Path(folder, "model"), mmap_mode="r")
        expect_same(name, "in a memory-mapped file", mapped, model, X)
        del mapped


def check_clone(name, estimator):
    """Check that a fit changes no parameter, and a clone holds nothing else."""
    X, Y = awkward()
    model = unfitted(estimator)
    given = model.get_params()
    fresh = set(vars(model))
    model.fit(X, Y)
    changed = [n for n, value in model.get_params().items() if value is not given.get(n)]
    expect(not changed, name, "a fit must leave all parameters as they are", f"{changed}")
    again = clone(model)
    expect(
        set(vars(again)) == fresh,
        name,
        "a clone of a fitted model must hold parameters alone",
        f"{sorted(set(vars(again)) ^ fresh)}",
    )
    expect_same(name, "after a fit of a clone", again.fit(X, Y), model, X)
    own = model.get_params(deep=False)
    again = unfitted(estimator).set_params(**own).fit(X, Y)
    expect_same(name, "after its parameters were set again", again, model, X)
