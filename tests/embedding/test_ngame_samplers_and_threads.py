"""What must not change the model by a single bit, and what fits leave behind."""

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sklearn_xc.embedding import _training
from sklearn_xc.embedding.encoders import bag
from sklearn_xc.embedding.samplers import SAMPLERS

PROMISED = ("coef_", "label_embeddings_", "label_counts_", "threshold_", "classes_")
ANSWERS = ("predict", "decision_function", "predict_topk", "embed")


def plain(answer):
    return answer.toarray() if sp.issparse(answer) else np.asarray(answer)


def assert_same_bytes(a, b):
    for name in PROMISED:
        p, q = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert p.dtype == q.dtype
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), name
    for name in ("module", "epoch", "loss", "violations"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


def assert_same_answers(a, b, X):
    for method in ANSWERS:
        p, q = getattr(a, method)(X), getattr(b, method)(X)
        assert type(p) is type(q)
        for first, second in zip(p, q, strict=True) if isinstance(p, tuple) else [(p, q)]:
            assert plain(first).tobytes() == plain(second).tobytes(), method


class TestThreads:
    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    def test_n_jobs(self, sampler, make, documents, monkeypatch):
        X, Y, Z = documents
        own = {"sampler": sampler, "label_features": Z}
        expected = make(n_jobs=1, **own).fit(X, Y)
        monkeypatch.setattr(_training, "_LEAST_WORK", 1)
        monkeypatch.setattr(bag, "_TOGETHER", 16)
        monkeypatch.setattr(bag, "_LEAST_WORK", 1)
        for n_jobs in (1, 2, 3):
            model = make(n_jobs=n_jobs, **own).fit(X, Y)
            assert_same_bytes(model, expected)
            assert_same_answers(model, expected, X)

    def test_threads_of_blas(self, make, make_documents):
        """An odd number of labels: BLAS rounds the last ones by how its threads share them out."""
        X, Y, Z = make_documents(n=160, n_topics=13, labels_of_topic=37)
        model = make(label_features=Z).fit(X, Y.toarray())
        scores = []
        for n_threads in (1, 2, 3):
            with threadpool_limits(n_threads, user_api="blas"):
                scores.append(model.decision_function(X))
        for other in scores[1:]:
            assert other.tobytes() == scores[0].tobytes()
