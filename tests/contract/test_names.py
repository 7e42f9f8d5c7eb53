"""Parameters and fitted attributes that all estimators have."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest

#: Of all estimators, with the same default.
OF_ALL = {"top_k": 100, "max_memory": None, "n_jobs": None, "verbose": 0}
#: Fitted attributes of all estimators; the registry says what one may lack.
FITTED = {"classes_", "coef_", "fit_report_", "label_counts_", "n_features_in_", "n_iter_"}
FITTED |= {"n_samples_fit_"}
rng = np.random.default_rng(0)
X = rng.random((60, 15)) * (rng.random((60, 15)) < 0.4) + np.eye(60, 15)
Y = np.eye(5, dtype=int)[rng.integers(0, 5, 60)]


def test_parameters_of_all_have_one_default(entry):
    parameters = signature(entry.estimator).parameters
    expected = {name: value for name, value in OF_ALL.items() if name in parameters}
    assert {name: parameters[name].default for name in expected} == expected
    assert OF_ALL.keys() - expected.keys() <= {"max_memory"}
    keyword_only = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert len(keyword_only) == len(parameters) - 1


@pytest.fixture(scope="module")
def model(entry):
    return entry.make().fit(X, Y)


def test_what_a_fit_leaves(entry, model):
    public = {name for name in dir(model) if name[-1] == "_" and name[0] != "_"}
    assert FITTED - public == set(entry.lacks)


def test_the_report_is_a_table(entry, model):
    report = model.fit_report_
    table = pd.DataFrame(report)
    assert all(isinstance(column, np.ndarray) for column in report.values())
    if hasattr(model, "group_edges_"):
        assert len(table) == len(model.group_edges_) + 1
        assert table["n_labels"].sum() == 5
        assert (table["seconds"] >= 0).all()
        return
    if "n_iter_" in entry.lacks:
        assert table["name"].tolist() == [*model.named_estimators_, "stack"]
        assert table[["P@1", "PSP@1"]].ge(0).all(axis=None)
        assert (table["seconds"] >= 0).all()
        return
    assert len(table) == (len(model.classes_) if entry.labels_apart else model.n_iter_)
    if entry.labels_apart:
        np.testing.assert_array_equal(table["n_iter"], model.n_iter_)
    else:
        assert np.isfinite(table["loss"]).all()
    assert (table["seconds"] >= 0).all()
