"""Models of some labels each, and the one that they are together."""

import itertools

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import (
    OvALinearXC,
    OvALinearXCCV,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
    load,
)
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.linear import merge, plan_label_ranges

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]
N_LABELS = 24
X, Y = make_xc_classification(
    n_samples=150, n_features=60, n_labels=N_LABELS, random_state=0, return_X_y=True
)
WEIGHT = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], X.shape[0])
START = np.random.default_rng(1).normal(size=(N_LABELS, X.shape[1])) / 10


def content(model, folder):
    """Return the bytes of a saved model but for its times."""
    model.fit_report_["seconds"] = np.zeros(len(model.fit_report_["seconds"]))
    model.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same_bytes(parts, whole, tmp_path_factory):
    one, other = (tmp_path_factory.mktemp("model") / "model" for _ in range(2))
    return content(merge(parts), one) == content(whole, other)


@settings(max_examples=15)
@given(edges=st.sets(st.integers(1, N_LABELS - 1), max_size=5), order=st.randoms())
def test_any_cut_gives_the_model_of_a_single_fit(tmp_path_factory, edges, order):
    edges = [0, *sorted(edges), N_LABELS]
    parts = [
        OvALinearXC(label_range=(first, last)).fit(X, Y, WEIGHT)
        for first, last in itertools.pairwise(edges)
    ]
    order.shuffle(parts)
    assert same_bytes(parts, OvALinearXC().fit(X, Y, WEIGHT), tmp_path_factory)


VARIANTS = {
    "logistic": {"loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "propensity": {"class_weight": "propensity", "negative_weight": 0.5},
    "weights of labels": {"class_weight": np.linspace(0.5, 2.0, N_LABELS)},
    "starts": {"init": START},
    "labels with the same start": {"init": "ovap"},
    "no pruning": {"prune": 0.0},
    "free intercept": {"regularize_intercept": False},
    "bounded": {"max_memory": "4MB"},
}


@pytest.mark.parametrize("parameters", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_variants(tmp_path_factory, parameters, dtype):
    x = X.astype(dtype)
    parts = [
        OvALinearXC(label_range=labels, **parameters).fit(x, Y)
        for labels in plan_label_ranges(x, Y, 3)
    ]
    assert same_bytes(parts, OvALinearXC(**parameters).fit(x, Y), tmp_path_factory)


def test_containers_of_y(tmp_path_factory):
    classes = np.argmax(Y.toarray() + np.eye(N_LABELS)[np.arange(len(WEIGHT)) % N_LABELS], axis=1)
    for y in (Y.toarray(), sp.csc_matrix(Y), classes, np.array([f"c{i}" for i in classes])):
        parts = [
            OvALinearXC(label_range=labels).fit(X.toarray(), y)
            for labels in plan_label_ranges(X, y, 3)
        ]
        whole = OvALinearXC().fit(X.toarray(), y)
        assert same_bytes(parts, whole, tmp_path_factory)


def test_a_slice_is_a_model_of_its_own_labels():
    part, whole = OvALinearXC(label_range=(5, 12)).fit(X, Y), OvALinearXC().fit(X, Y)
    assert part.classes_.tolist() == list(range(5, 12))
    assert np.array_equal(part.label_counts_, whole.label_counts_[5:12])
    assert (part.coef_ != whole.coef_[5:12]).nnz == 0
    assert part.decision_function(X).shape == (X.shape[0], 7)
    assert part.score(X, Y[:, 5:12]) > 0


def test_slices_are_saved_and_go_on(tmp_path, tmp_path_factory):
    ranges = plan_label_ranges(X, Y, 2)
    folders = [tmp_path / str(i) for i in range(2)]
    for labels, folder in zip(ranges, folders, strict=True):
        model = OvALinearXC(label_range=labels, checkpoint_dir=tmp_path / f"fit{labels[0]}")
        model.fit(X, Y).fit(X, Y).save(folder)
    assert same_bytes([str(folders[1]), folders[0]], _with_folder(tmp_path), tmp_path_factory)
    with pytest.raises(ValueError, match=r"label_range was \(0, \d+\), is \(0, 5\)"):
        OvALinearXC(label_range=(0, 5), checkpoint_dir=tmp_path / "fit0").fit(X, Y)
    assert load(folders[0])._slice.n_labels == N_LABELS


def _with_folder(tmp_path):
    model = OvALinearXC().fit(X, Y)
    return model.set_params(checkpoint_dir=tmp_path / f"fit{plan_label_ranges(X, Y, 2)[1][0]}")


def test_a_later_fit_of_all_labels_is_no_slice():
    model = OvALinearXC(label_range=(0, 5)).fit(X, Y)
    model.set_params(label_range=None).fit(X, Y)
    with pytest.raises(ValueError, match="must be fitted with label_range"):
        merge([model])


def part(first, last, **other):
    x, y, weight = other.pop("X", X), other.pop("y", Y), other.pop("weight", None)
    return OvALinearXC(label_range=(first, last), **other).fit(x, y, weight)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda: [part(0, 9), part(11, 24)], "leave a gap: labels 9 to 10 are in none of them"),
        (lambda: [part(3, 24)], "leave a gap: labels 0 to 2 are in none"),
        (lambda: [part(0, 20)], "leave a gap: labels 20 to 23 are in none"),
        (lambda: [part(0, 9), part(8, 24)], "overlap: labels 8 to 8 are in two"),
        (lambda: [part(0, 24), part(0, 24)], "overlap: labels 0 to 23 are in two"),
        (lambda: [part(0, 9), part(9, 24, X=2 * X)], "same X. That of the labels from 9 on"),
        (lambda: [part(0, 9), part(9, 24, y=Y[:, ::-1])], "same y. "),
        (lambda: [part(0, 9), part(9, 24, weight=WEIGHT)], "same sample_weight. "),
        (lambda: [part(0, 9), part(9, 24, C=2.0)], r"C of models\[0\] is None, .*\[1\] is 2.0"),
        (lambda: [part(0, 9), part(9, 24).compact()], r"models\[1\] is compact"),
        (lambda: [part(0, 9), OvALinearXC().fit(X, Y)], r"models\[1\] must be fitted with"),
        (lambda: [], "must be a list of fitted models"),
        (lambda: "a folder", "must be a list of fitted models"),
        (lambda: part(0, 24), "must be a list of fitted models"),
    ],
)
def test_what_makes_no_whole_is_refused_by_name(parts, message):
    with pytest.raises(ValueError, match=message):
        merge(parts())


def test_what_is_no_slice_is_refused():
    with pytest.raises(TypeError, match=r"models\[0\] must be an OvALinearXC.*Got OvALinearXCCV"):
        merge([OvALinearXCCV(Cs=[1.0], cv=2).fit(X, Y)])


@pytest.mark.parametrize(
    ("label_range", "message"),
    [
        ((0, 25), r"0 <= first < last <= 24, the number of labels. Got \(0, 25\)"),
        ((4, 4), "0 <= first < last"),
        ((-1, 4), "0 <= first < last"),
        ((0, 1, 2), "two integers"),
        ((0.0, 2.0), "two integers"),
        ((True, 2), "two integers"),
    ],
)
def test_ranges_that_are_none(label_range, message):
    with pytest.raises(ValueError, match=f"OvALinearXC: label_range must .*{message}"):
        OvALinearXC(label_range=label_range).fit(X, Y)


def test_labels_that_start_at_others_are_not_cut():
    with pytest.raises(ValueError, match="label_range must be None with init="):
        OvALinearXC(label_range=(0, 4), init="ovap++").fit(X, Y)


def test_two_classes_are_no_range():
    y = np.arange(X.shape[0]) % 5
    with pytest.raises(ValueError, match="label_range must have one class or more than two"):
        OvALinearXC(label_range=(0, 2)).fit(X, y)


@given(n=st.integers(1, 60), n_labels=st.integers(1, 40), seed=st.integers(0, 9))
def test_ranges_cover_all_labels_at_about_the_same_cost(n, n_labels, seed):
    rng = np.random.default_rng(seed)
    y = sp.random_array((50, n_labels), density=0.2, rng=rng, format="csr")
    y.data[:] = 1
    ranges = plan_label_ranges(np.ones((50, 1)), y, n)
    assert len(ranges) == min(n, n_labels)
    assert [0, *(last for _, last in ranges)] == [*(first for first, _ in ranges), n_labels]
    costs = 1 + 0.02 * y.sum(axis=0)
    each = [costs[first:last].sum() for first, last in ranges]
    assert max(each) <= costs.sum() / len(ranges) + costs.max() + 1e-9


@pytest.mark.parametrize("n_classes", [3, 5, 6, 7, 8, 11])
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_classes_are_cut_into_three_at_least(n_classes, n):
    y = np.arange(44) % n_classes
    ranges = plan_label_ranges(np.ones((44, 1)), y, n)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_classes
    assert all(last - first >= min(3, n_classes) for first, last in ranges)


@pytest.mark.parametrize("label_range", [(0, 1), (1, 2), (0, 2)])
def test_two_classes_are_one_problem(label_range):
    y = np.arange(X.shape[0]) % 2
    with pytest.raises(ValueError, match="plan_label_ranges: y must have more than two classes"):
        plan_label_ranges(X, y, 2)
    with pytest.raises(ValueError, match="label_range must be None: the two classes"):
        OvALinearXC(label_range=label_range).fit(X, y)


@pytest.mark.parametrize("kind", [ThresholdTuner, TopKCalibrator])
def test_what_learns_of_all_labels_takes_no_slice(kind):
    with pytest.raises(ValueError, match=r"must know all labels. Got label_range=\(0, 4\)"):
        kind(OvALinearXC(label_range=(0, 4)), cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="merge the slices"):
        kind(OvALinearXC(label_range=(0, 4)).fit(X, Y), cv="prefit").fit(X, Y[:, :4])


def test_texts_have_no_slices():
    tagger = TextClassifierXC(classifier=OvALinearXC(label_range=(0, 1)))
    with pytest.raises(ValueError, match="classifier must know all labels"):
        tagger.fit(["red apples", "green pears", "blue plums"], [["x"], ["y"], ["z"]])


def test_names_of_all_slices_must_differ_and_be_of_one_kind():
    names = [f"label {i}" for i in range(N_LABELS)]
    first = OvALinearXC(label_range=(0, 9), label_names=names).fit(X, Y)
    with pytest.raises(ValueError, match=r"must be distinct\. Got 'label \d' more than once"):
        merge([first, OvALinearXC(label_range=(9, 24), label_names=names[::-1]).fit(X, Y)])
    with pytest.raises(ValueError, match="texts or integers"):
        merge([first, OvALinearXC(label_range=(9, 24)).fit(X, Y)])
    renamed = OvALinearXC(label_range=(9, 24)).fit(X, Y).rename_labels({10: 3})
    with pytest.raises(ValueError, match=r"must be distinct\. Got 3 more than once"):
        merge([OvALinearXC(label_range=(0, 9)).fit(X, Y), renamed])


def test_equal_parameters_may_be_written_otherwise():
    weights, other = {0: 1.0, 1: 2.0}, {1: 2.0, 0: 1.0}
    parts = [
        OvALinearXC(np.float64(0.5), label_range=(0, 9), class_weight=weights).fit(X, Y),
        OvALinearXC(0.5, label_range=(9, 24), class_weight=other).fit(X, Y),
    ]
    assert merge(parts).coef_.shape[0] == N_LABELS


def test_a_number_of_ranges_that_is_none():
    with pytest.raises(ValueError, match="plan_label_ranges: n must be"):
        plan_label_ranges(X, Y, 0)


def test_slices_on_a_cluster_and_in_threads_are_the_same(tmp_path_factory):
    with joblib.parallel_config("threading", n_jobs=2):
        parts = [OvALinearXC(label_range=r).fit(X, Y) for r in plan_label_ranges(X, Y, 2)]
    assert same_bytes(parts, OvALinearXC().fit(X, Y), tmp_path_factory)
