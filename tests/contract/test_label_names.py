"""Names of an indicator's columns: they become classes_, and nothing else changes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from registry import ENTRIES
from small_data import made

from sklearn_xc.metrics import TopKScorer

X, Y = made(5, 0)
#: Not sorted: a fit keeps the order of the columns.
NAMES = ["novel", "essay", "poem", "play", "a diary of many words"]


@pytest.fixture(scope="module", params=["OvALinearXC", "ThresholdTuner", "StackingXC"])
def entry(request):
    """Names are checked at one place: of y, or of an estimator inside."""
    return ENTRIES[request.param]


@pytest.fixture(scope="module")
def named(entry):
    return entry.make(**entry.naming(NAMES)).fit(X, Y)


@pytest.mark.parametrize("entry", ENTRIES, indirect=True)
def test_names_change_the_classes_alone(entry, named):
    plain = entry.make().fit(X, Y)
    assert named.classes_.tolist() == NAMES
    np.testing.assert_array_equal(plain.classes_, np.arange(5))
    np.testing.assert_array_equal(entry.learnt(named), entry.learnt(plain))
    for one, other in zip(named.predict_topk(X, 3), plain.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (named.predict(X) != plain.predict(X)).nnz == 0
    assert named.score(X, Y) == plain.score(X, Y)


def test_a_frame_has_names(entry, named):
    y = pd.DataFrame(dict(zip(NAMES, Y.toarray().astype(int).T, strict=True)))
    model = entry.make().fit(X, y)
    assert model.classes_.tolist() == NAMES
    np.testing.assert_array_equal(entry.learnt(model), entry.learnt(named))
    assert model.score(X, y) == named.score(X, Y)
    assert TopKScorer()(model, X, y) == TopKScorer()(named, X, Y)


def test_integers_may_be_names(entry):
    numbers = [900, 7, 50, 3, 1]
    model = entry.make(**entry.naming(np.array(numbers))).fit(X, Y)
    assert model.classes_.tolist() == numbers
    assert model.score(X, Y) == entry.make().fit(X, Y).score(X, Y)


def test_columns_in_another_order_are_refused(entry):
    y = pd.DataFrame(Y.toarray().astype(int), columns=NAMES)
    model = entry.make().fit(X, y)
    who = entry.estimator.__name__
    with pytest.raises(ValueError, match=rf"^{who}: y has the label columns of fit in another ord"):
        model.score(X, y[NAMES[::-1]])
    with pytest.raises(ValueError, match="in another order"):
        TopKScorer()(model, X, y[NAMES[::-1]])
    strange = y.rename(columns={"poem": "ode"})
    with pytest.raises(ValueError, match=rf"^{who}: y has a label column 'ode', which was not the"):
        model.score(X, strange)


def test_names_that_do_not_fit_are_refused(entry):
    who = entry.estimator.__name__
    y = pd.DataFrame(Y.toarray().astype(int), columns=NAMES)
    for names, target, match in (
        (NAMES[:4], Y, r"label_names must be 5 names, texts or integers, .*\. Got 4\.$"),
        ([*NAMES[:4], np.nan], Y, r"label_names must be 5 names.*\. Got nan for label 4\.$"),
        (NAMES[::-1], y, r"the columns of y must be the same as label_names\. Got 'novel' for "),
        (["a", "b"], np.arange(60) % 2, r"label_names are the names of an indicator's columns\. "),
    ):
        with pytest.raises(ValueError, match=rf"^{who}: (estimator: \w+: )?{match}"):
            entry.make(**entry.naming(names)).fit(X, target)
    mixed = pd.DataFrame(Y.toarray().astype(int), columns=[*NAMES[:4], 7])
    with pytest.raises(TypeError, match=r"^y must have columns whose names are all texts, or none"):
        entry.make().fit(X, mixed)


def test_an_unseen_label_is_named(entry):
    wide = sp.hstack([Y, sp.csr_array((60, 1))], format="csr")
    with pytest.warns(UserWarning, match=r"1 of 6 labels have no training instance.* \('ode'\)"):
        entry.make(**entry.naming([*NAMES, "ode"])).fit(X, wide)
