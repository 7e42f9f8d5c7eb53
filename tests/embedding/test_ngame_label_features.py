"""What features of labels say without training, and labels that no training instance has."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc.embedding._fusion import FUSIONS

#: Labels without a training instance: one of each topic, and in no order.
UNSEEN = np.array([3, 5, 10, 12, 19])


@pytest.fixture(scope="module")
def data(make_documents):
    """Return X, Y, Z, and the rows that have one of the unseen labels.

    Nearly half of a document is another document, whose labels it has not.
    """
    X, Y, Z = make_documents(n=800, n_more=3)
    X = normalize(X + 0.9 * X[np.random.default_rng(0).permutation(800)])
    return X, Y, Z, Y[:, UNSEEN].sum(axis=1) > 0


@pytest.fixture(scope="module")
def model(make, data):
    """Return a model that was trained on the other rows, with a tree."""
    X, Y, Z, has_unseen = data
    own = {"label_features": Z, "validation_fraction": 0.4, "max_iter": 8}
    return make(**own).fit(X[~has_unseen], Y[~has_unseen])


class TestFusedScores:
    def test_unseen_labels_are_found(self, model, data):
        """Of 20 labels, the 3 best by chance hold 0.15 of the unseen ones of an instance."""
        X, Y, _, has_unseen = data
        assert not model.label_counts_[UNSEEN].any()
        labels, _ = model.predict_topk(X[has_unseen], 3)
        hits = np.take_along_axis(Y[has_unseen].toarray(), labels, axis=1)
        found = (hits * np.isin(labels, UNSEEN)).sum() / Y[has_unseen][:, UNSEEN].sum()
        assert found > 0.5

    def test_the_fusion_is_not_taught_by_them(self, make, data, monkeypatch):
        """No pair of a label without instances, though they are on the shortlists."""
        seen = []

        class Recorder:
            def __init__(self, **parameters):
                pass

            def fit(self, pairs, frequencies):
                seen.append((pairs, frequencies))

        monkeypatch.setitem(FUSIONS, "boosting", Recorder)
        X, Y, Z, has_unseen = data
        own = {"label_features": Z, "validation_fraction": 0.4, "n_candidates": 20}
        make(**own).fit(X[~has_unseen], Y[~has_unseen].toarray())
        (((scores, _, is_relevant, weight, _), frequencies),) = seen
        n_held_out = len(scores) / 15
        both = sp.hstack([X, Y]).toarray()[~has_unseen]
        assert n_held_out == int(0.4 * len(np.unique(both, axis=0)))
        assert frequencies.min() > 0
        assert np.isfinite(scores).all()
        assert scores.shape[1] == 5
        assert is_relevant.sum() >= n_held_out
        assert len(frequencies) == len(is_relevant) == len(weight)
