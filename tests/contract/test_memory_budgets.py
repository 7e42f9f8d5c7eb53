"""What every estimator refuses to hold in memory, and what it answers instead."""

import numpy as np
import pytest
import scipy.sparse as sp
from registry import ESTIMATORS, made

from sklearn_xc.exceptions import MemoryBudgetError


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


def test_a_fit_that_does_not_fit(name):
    X, Y = made(5, 0)
    model = ESTIMATORS[name]().set_params(max_memory=10)
    with pytest.raises(MemoryBudgetError, match=r"max_memory|allowed"):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")


def test_dense_answers(name):
    """20,000 rows and 5 labels: 800,000 bytes; a top-k is made of pieces."""
    X, Y = made(5, 0)
    model = ESTIMATORS[name]().fit(X, Y.toarray())
    many = sp.csr_array(sp.vstack([X] * 334, format="csr"))
    whole = model.decision_function(many)
    asks = [model.decision_function]
    asks += (
        [model.predict_proba, model.predict_log_proba] if hasattr(model, "predict_proba") else []
    )
    for allowed in (100_000, "0.1MB"):
        model.set_params(max_memory=allowed)
        for ask in asks:
            with pytest.raises(
                MemoryBudgetError, match=r"scores.*20040 (instances )?x 5"
            ) as refusal:
                ask(many)
            assert "predict_topk" in str(refusal.value)
    model.set_params(max_memory="1GB")
    np.testing.assert_array_equal(model.decision_function(many), whole)
    model.set_params(max_memory="0.5MB")
    labels, _ = model.predict_topk(many, 1)
    np.testing.assert_array_equal(labels[:, 0], whole.argmax(axis=1))
