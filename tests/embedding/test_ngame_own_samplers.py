"""Samplers from outside the package: one that is right, and those that break the protocol."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from sklearn_xc.encoders import ENCODERS, BagOfEmbeddings
from sklearn_xc.samplers import AnceSampler, InBatchSampler


class ByLength(InBatchSampler):
    """Mini-batches of instances with about as many features as each other."""

    lengths = []  # noqa: RUF012

    def refresh(self, epoch, state):
        super().refresh(epoch, state)
        inputs = state.inputs()
        assert isinstance(inputs, csr_array)
        assert inputs.shape[0] == state.n == len(state.positives.indptr) - 1
        assert state.positives.labels.max() < state.n_labels
        self.lengths_ = np.diff(inputs.indptr)
        self.order_ = np.argsort(self.lengths_, kind="stable")

    def batches(self, epoch):
        for first in range(0, len(self.order_), self.batch_size_):
            rows = self.order_[first : first + self.batch_size_]
            self.lengths.append(self.lengths_[rows])
            yield rows


@pytest.mark.parametrize("n_shards", [1, 3])
def test_by_number_of_features(n_shards, make, documents):
    X, Y, Z = documents
    ByLength.lengths.clear()
    model = make(sampler=ByLength(), label_features=Z, n_shards=n_shards).fit(X, Y)
    model.partial_fit(X, Y)
    assert all((np.diff(each) >= 0).all() for each in ByLength.lengths)
    assert {2, 5} & set(np.concatenate(ByLength.lengths))


class Wrong(InBatchSampler):
    """A sampler of which one answer is changed by a function."""

    def __init__(self, name="batches", change=None):
        self.name = name
        self.change = change

    @property
    def n_negatives(self):
        return 2 if self.name == "negatives" else 0

    def refresh(self, epoch, state):
        if self.name == "reads":
            self.change(state)
        if self.name != "refresh":
            super().refresh(epoch, state)

    def batches(self, epoch):
        rows = list(super().batches(epoch))
        return self.change(rows) if self.name == "batches" else rows

    def negatives(self, rows):
        return self.change(len(rows)) if self.name == "negatives" else None

    def select(self, losses):
        return self.change(losses) if self.name == "select" else None


def first_changed(change):
    """Return a function of mini-batches that changes the first of them."""
    return lambda batches: [change(batches[0]), *batches[1:]]


def with_first(value):
    """Return a function of rows that puts a value in the first place."""
    return first_changed(lambda rows: np.append(value, rows[1:]))


BATCHES = {
    "none": (lambda batches: None, "in ndarrays of integers. Got NoneType."),
    "empty": (lambda batches: [], "Got no mini-batch."),
    "skipped": (lambda batches: batches[1:], r"Got \d+ rows without row \d+\."),
    "repeated": (lambda batches: batches + batches[:1], r"Got row \d+ twice\."),
    "in one": (first_changed(lambda rows: np.append(rows[1:], rows[1])), r"Got row \d+ twice\."),
    "behind": (with_first(10_000), r"as rows 0 to \d+. Got row 10000\."),
    "before": (with_first(-1), r"as rows 0 to \d+. Got row -1\."),
    "lists": (lambda batches: [rows.tolist() for rows in batches], "integers. Got list."),
    "floats": (first_changed(lambda rows: rows * 1.0), "Got an ndarray of float64 of shape"),
    "bool": (first_changed(lambda rows: rows > 0), "Got an ndarray of bool of shape"),
    "flat": (first_changed(lambda rows: rows[:, None]), r"shape \(30, 1\)\."),
    "no row": (first_changed(lambda rows: rows[:0]), r"of 1 to 30 integers. .*shape \(0,\)"),
    "large": (lambda batches: [np.concatenate(batches)], "ndarrays of 1 to 30 integers. Got"),
}
NEGATIVES = {
    "narrow": (lambda n: np.zeros((n, 1), np.int32), r"n_negatives\), \(30, 2\). Got .*\(30, 1\)"),
    "short": (lambda n: np.zeros((1, 2), np.int32), r"Got an ndarray of int32 of shape \(1, 2\)"),
    "floats": (lambda n: np.zeros((n, 2)), "Got an ndarray of float64"),
    "list": (lambda n: [[0, 1]] * n, "Got list."),
    "behind": (lambda n: np.full((n, 2), 20), "labels 0 to 19, or -1 for none. Got 20."),
    "before": (lambda n: np.full((n, 2), -2), "labels 0 to 19, or -1 for none. Got -2."),
}
SELECT = {
    "ints": (lambda losses: (losses > 0).astype(int), r"shape \(30,\). Got an ndarray of int64"),
    "rows": (lambda losses: np.flatnonzero(losses > 0), "Got an ndarray of int64 of shape"),
    "short": (lambda losses: losses[1:] > 0, r"Got an ndarray of bool of shape \(29,\)"),
    "list": (lambda losses: [True] * len(losses), "Got list."),
}


class TestAnswersAreChecked:
    @pytest.mark.parametrize("how", BATCHES)
    def test_batches(self, how, make, documents):
        change, message = BATCHES[how]
        message = rf"Wrong\.batches must yield each of \d+ instances once.*{message}"
        self.refused(make, documents, Wrong("batches", change), message)

    def test_a_forgotten_super_refresh(self, make, documents):
        message = r"Wrong\.batches must yield each of \d+ instances once. Got no mini-batch."
        self.refused(make, documents, Wrong("refresh"), message)

    @pytest.mark.parametrize("how", NEGATIVES)
    def test_negatives(self, how, make, documents):
        change, message = NEGATIVES[how]
        message = rf"Wrong\.negatives must return .*{message}"
        self.refused(make, documents, Wrong("negatives", change), message)

    @pytest.mark.parametrize("how", SELECT)
    def test_select(self, how, make, documents):
        change, message = SELECT[how]
        message = rf"Wrong\.select must return None or an ndarray of bool .*{message}"
        self.refused(make, documents, Wrong("select", change), message)

    @pytest.mark.parametrize("what", ["instances", "last_seen", "initial", "labels"])
    def test_what_reads_does_not_name(self, what, make, documents):
        message = rf"Wrong\.reads must name '{what}', .* Got \(\)\."
        sampler = Wrong("reads", lambda state: getattr(state, what)())
        self.refused(make, documents, sampler, message)

    @pytest.mark.parametrize("n_negatives", [-1, 1.5, "two", None])
    def test_n_negatives(self, n_negatives, make, documents):
        class Many(InBatchSampler):
            pass

        Many.n_negatives = n_negatives
        message = r"Many\.n_negatives must be a non-negative integer. Got "
        self.refused(make, documents, Many(), message)

    def refused(self, make, documents, sampler, message):
        X, Y, Z = documents
        model = make(sampler=sampler, label_features=Z)
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: sampler: {message}"):
            model.fit(X, Y)
        assert not [name for name in vars(model) if name.endswith("_")]

    def test_rows_of_few_bytes_will_do(self, make, documents):
        X, Y, Z = documents
        a, b = (
            make(sampler=Wrong("batches", change), label_features=Z).fit(X, Y)
            for change in (list, lambda batches: [rows.astype(np.uint8) for rows in batches])
        )
        assert a.coef_.tobytes() == b.coef_.tobytes()


class Bare:
    """The methods of encoders and samplers, and no parameters."""

    start = refresh = batches = negatives = select = encode = forward = learn = print


class TestWhatIsNoPart:
    @pytest.mark.parametrize(
        ("parameter", "known", "protocol"),
        [
            ("sampler", "'ance', 'in_batch', 'ngame', 'o_sgd', 'tas'", "samplers.BatchSampler"),
            ("encoder", ", ".join(map(repr, sorted(ENCODERS))), "encoders.Encoder"),
        ],
    )
    @pytest.mark.parametrize(
        ("given", "got"),
        [
            ("random", "'random'"), (None, "None"), (7, r"7\."),
            (object(), r"<object .*>\."),
            (BaseEstimator(), r"BaseEstimator\(\) without start, "),
            (Bare(), "<.*Bare .*> without get_params, set_params."),
            (BagOfEmbeddings, "the class BagOfEmbeddings; pass an instance, such as BagOf"),
            (InBatchSampler, "the class InBatchSampler; pass an instance, such as InBatch"),
        ],
        ids=["name", "none", "number", "object", "estimator", "bare", "an encoder", "a sampler"],
    )  # fmt: skip
    def test_samplers_and_encoders(self, parameter, known, protocol, given, got, make, documents):
        message = (
            rf"NGAMEEmbeddingXC: {parameter} must be one of {known}, or an instance with "
            rf"start, .* \(see sklearn_xc.{protocol}\). Got {got}"
        )
        with pytest.raises(ValueError, match=message):
            make(**{parameter: given}).fit(*documents[:2])

    @pytest.mark.parametrize("given", ["hnsw", None, Bare()], ids=["name", "none", "object"])
    def test_indexes(self, given, make, documents):
        X, Y, _ = documents
        message = "index must be one of .* build, update, following, query .* Got "
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: {message}"):
            make(index=given).fit(X, Y)
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: {message}"):
            make().fit(X, Y).set_params(index=given).predict_topk(X)
        with pytest.raises(ValueError, match=f"AnceSampler: {message}"):
            make(sampler=AnceSampler(index=given)).fit(X, Y)
