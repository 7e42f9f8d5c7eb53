"""Fitted attributes that were assigned are checked before the next prediction."""

import copy

import pytest
import scipy.sparse as sp
from saved_models import DISTINCT, fitted

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


@pytest.fixture(scope="module", params=[*DISTINCT, "pipeline"])
def model(request):
    return fitted(request.param)


def test_attributes_that_were_assigned_must_fit_the_others(model):
    classifier = copy.deepcopy(model[-1] if hasattr(model, "steps") else model)
    width = classifier.n_features_in_
    classifier.classes_ = classifier.classes_.copy()
    assert len(classifier.predict_topk(sp.csr_array((1, width)), 1)[0]) == 1
    held = {
        name: value[:-1]
        for name, value in vars(classifier).items()
        if name in ("classes_", "coef_", "intercept_", "feature_embedding_", "label_embeddings_")
        and value is not None
    }
    has_parts = any(hasattr(classifier, name) for name in ("estimator", "estimators"))
    if not has_parts and not hasattr(getattr(classifier, "encoder", None), "model"):
        held["n_features_in_"] = width + 1
    for name, value in held.items():
        edited = copy.deepcopy(classifier)
        setattr(edited, name, value)
        for ask in (edited.predict, edited.predict_topk, copy.copy(edited).predict):
            with pytest.raises(ValueError, match=r"attributes were changed and do not fit"):
                ask(sp.csr_array((1, edited.n_features_in_)))
