"""Labels of every fitted model are dropped, renamed and put into another order."""

import copy

import numpy as np
import pytest
from fitted import Unchanged
from registry import ENTRIES
from saved_models import KINDS_OF_STATE, fitted, name_of
from sklearn.pipeline import make_pipeline
from small_data import awkward, easy

from sklearn_xc import (
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
    load,
    topk_names,
)

X, Y = awkward()
EASY, PLACES = easy()
N_LABELS = Y.shape[1]
NAMES = ["ape", "bee", "cat", "dog", "emu"]

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]
#: Scores of others depend on which labels there are: by ranks, or by a normaliser.
RELATIVE = {"StackingXC"}


def scores(model, x=X):
    """Return the scores of all labels, by name, -inf of those without any."""
    labels, found = model.predict_topk(x, len(model.classes_))
    out = np.full((x.shape[0], len(model.classes_)), -np.inf)
    rows, places = np.nonzero(labels >= 0)
    out[rows, labels[rows, places]] = found[rows, places]
    return dict(zip(model.classes_.tolist(), out.T, strict=True))


def assert_close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def saved_and_loaded(model, tmp_path):
    """Return a copy from a folder, None if the model has a learner that cannot be saved."""
    learner = getattr(model, "final_estimator_", None)
    if learner is not None and type(learner).__module__.startswith("sklearn."):
        return None
    model.save(tmp_path / "model")
    return load(tmp_path / "model")


@pytest.mark.parametrize("pair", KINDS_OF_STATE, ids=", ".join)
class TestEveryModel:
    def test_some_are_dropped(self, pair, tmp_path):
        before = fitted(name_of(pair))
        model = copy.copy(before).drop_labels([1, 4])
        assert model.classes_.tolist() == [0, 2, 3]
        assert model.label_counts_.tolist() == before.label_counts_[[0, 2, 3]].tolist()
        assert model.n_samples_fit_ == before.n_samples_fit_
        assert model.predict(X).shape == (60, 3)
        if pair[0] not in RELATIVE:
            old, new = scores(before), scores(model)
            for label in (0, 2, 3):
                assert_close(new[label], old[label])
        loaded = saved_and_loaded(model, tmp_path)
        if loaded is not None:
            np.testing.assert_array_equal(loaded.predict_topk(X, 3)[0], model.predict_topk(X, 3)[0])
            assert loaded.drop_labels([2]).predict_topk(X, 3)[0].max() <= 1

    def test_names(self, pair, tmp_path):
        before = fitted(name_of(pair))
        model = copy.copy(before).rename_labels(NAMES)
        assert model.classes_.tolist() == NAMES
        for one, other in zip(model.predict_topk(X, 3), before.predict_topk(X, 3), strict=True):
            np.testing.assert_array_equal(one, other)
        loaded = saved_and_loaded(model, tmp_path)
        assert loaded is None or loaded.classes_.tolist() == NAMES


@pytest.mark.parametrize("name", ENTRIES)
def test_classes_are_sorted_by_their_new_names(name):
    y = np.array(["zebra", "ape", "cat", "emu"])[PLACES]
    model = ENTRIES[name].make(able=True).fit(EASY, y)
    before = scores(model, EASY)
    model.rename_labels({"ape": "yak"})
    assert model.classes_.tolist() == ["cat", "emu", "yak", "zebra"]
    after = scores(model, EASY)
    if name in RELATIVE:  # equal scores are ranked by the order of labels
        return
    for old, new in (("ape", "yak"), ("cat", "cat"), ("emu", "emu"), ("zebra", "zebra")):
        assert_close(after[new], before[old])
    assert set(model.predict(EASY)) <= {"cat", "emu", "yak", "zebra"}


class TestTexts:
    TEXTS = ["red apple pie", "green pear", "apple and pear", "pie crust", "green apple"] * 6
    LABELS = [["fruit", "cake"], ["fruit"], ["fruit", "mixed"], ["cake"], ["fruit", "mixed"]] * 6

    @pytest.fixture
    def model(self):
        return TextClassifierXC(classifier=ThresholdTuner(OvALinearXC(), random_state=0, cv=2)).fit(
            self.TEXTS, self.LABELS
        )

    def test_names_that_change(self, model, tmp_path):
        model.rename_labels({"cake": "bakery"}).drop_labels(["mixed"])
        assert model.classes_.tolist() == ["bakery", "fruit"]
        assert topk_names(model, ["pie crust"], 1)[0][0] == "bakery"
        assert {name for row in model.predict(self.TEXTS) for name in row} <= {"bakery", "fruit"}
        model.save(tmp_path / "model")
        assert topk_names(load(tmp_path / "model"), ["pie crust"], 1)[0][0] == "bakery"


def test_what_is_trained_already_may_change_without_its_wrapper():
    """A wrapper of ``cv="prefit"`` answers as on the day it was fitted."""
    inner = OvALinearXC().fit(X, Y)
    wrappers = [
        ThresholdTuner(inner, cv="prefit"),
        TopKCalibrator(make_pipeline("passthrough", inner), cv="prefit"),
        StackingXC([("ova", inner), ("pipeline", make_pipeline(inner))], cv="prefit"),
    ]
    before = [[array.copy() for array in w.fit(X, Y).predict_topk(X, 3)] for w in wrappers]
    inner.drop_labels([2]).rename_labels(["a", "b", "c", "d"][: N_LABELS - 1])
    for wrapper, answers in zip(wrappers, before, strict=True):
        assert len(wrapper.classes_) == N_LABELS
        for then, now in zip(answers, wrapper.predict_topk(X, 3), strict=True):
            np.testing.assert_array_equal(then, now)
        wrapper.drop_labels([0])
        assert len(wrapper.classes_) == len(inner.classes_) == N_LABELS - 1


def test_members_of_other_packages_are_refused():
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    other = OneVsRestClassifier(LogisticRegression())
    stack = StackingXC([("ova", OvALinearXC()), ("other", other)], cv=2, random_state=0)
    stack.fit(EASY, np.eye(4, dtype=int)[PLACES])
    unchanged = Unchanged(stack)
    with pytest.raises(TypeError, match="labels cannot be changed of OneVsRestClassifier"):
        stack.drop_labels([0])
    unchanged.check()
