"""What every estimator answers to an instance without features."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_data import made

from sklearn_xc.embedding.samplers import NgameSampler


@pytest.fixture(scope="module")
def make(entry):
    return entry.make


@pytest.fixture(scope="module")
def blanks(entry):
    """Return rows without features: empty, of zeros, dense, and with one that is not known."""
    zeros = sp.csr_array((np.zeros(2), [0, 3], [0, 2]), shape=(1, 17))
    unknown = sp.csr_array(([2.0], [16], [0, 1]), shape=(1, 17))
    rows = [sp.csr_array((1, 17)), zeros, np.zeros((1, 17)), unknown]
    return rows[:-1] if entry.reads_texts else rows


def uneven():
    """Return X without blank rows, and labels of different frequencies, one on most instances.

    No instance has the last feature.
    """
    X, _ = made(5, 0)
    X = sp.hstack([X, np.ones((60, 1)), np.zeros((60, 1))], format="csr")
    Y = np.zeros((60, 5), int)
    for k, n in enumerate((3, 40, 9, 24, 14)):
        Y[np.random.default_rng(k).permutation(60)[:n], k] = 1
    Y[:, 1] |= Y.sum(axis=1) == 0
    return X, Y


def test_the_most_frequent_labels_come_first(make, blanks):
    X, Y = uneven()
    model = make().fit(X, Y)
    order = np.argsort(-Y.sum(axis=0), kind="stable")
    for blank in blanks:
        labels, scores = model.predict_topk(blank, 5)
        np.testing.assert_array_equal(labels[0], order)
        assert (np.diff(scores[0]) < 0).all()
        predicted = model.predict(blank)
        assert predicted[0, order[0]]
        assert not predicted[0, order[-1]]


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]])
def test_the_most_frequent_class_is_predicted(entry, blanks, classes):
    X, _ = uneven()
    y = np.repeat(classes, [17, 43] if len(classes) == 2 else [15, 34, 11])
    y = np.random.default_rng(0).permutation(y)
    values, counts = np.unique(y, return_counts=True)
    model = entry.make().fit(X, y)
    for blank in blanks:
        assert model.predict(blank).tolist() == [values[counts.argmax()]]
        if not hasattr(model, "predict_proba"):
            continue
        if entry.chances_of == "pairs":
            assert model.predict_proba(blank)[0].argmax() == counts.argmax()
        else:
            np.testing.assert_allclose(model.predict_proba(blank)[0], counts / 60, rtol=1e-6)


def test_blank_instances_of_training_have_a_say(make):
    """An indicator whose other level has no column."""
    for y, n_copies in (([1, 0], 2), (["a", "b"], 30)):
        X, y = np.array([[0.0], [1.0]] * n_copies), np.array(y * n_copies)
        model = make()
        if "encoder" in model.get_params():
            model.set_params(sampler=NgameSampler(batch_size=2))
        assert model.fit(X, y).predict(X[:1]).tolist() == y[:1].tolist()
