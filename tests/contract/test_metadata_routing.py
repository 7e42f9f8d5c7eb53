"""Weights of instances reach what is inside a meta-estimator, with metadata routing and without.

With routing they reach an estimator inside only if it requests them by ``set_fit_request``, and
other arguments of fit reach the splitter.
"""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from small_data import awkward

from sklearn_xc import (
    OvALinearXC,
    OvALinearXCCV,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
)

X, Y = awkward()
WEIGHT = np.r_[np.full(30, 0.1), np.full(30, 4.0)]
WORDS = [" ".join(f"w{j}" for j in row.indices) for row in X]
NAMES = [[f"n{j}" for j in row.indices] for row in Y]

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


class Recorder(OvALinearXC):
    """One-vs-all that remembers the weights it was trained with."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight=sample_weight)
        self.seen_ = sample_weight
        return self


class Same(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X


def inner(**parameters):
    return Recorder(tol=1e-3, prune=0.001, **parameters)


def asking(estimator):
    """Have an estimator request weights, with routing."""
    if sklearn.get_config()["enable_metadata_routing"]:
        estimator.set_fit_request(sample_weight=True)
    return estimator


#: Meta-estimators around a classifier: how they are made, and where what is inside is afterwards.
FOLDS = {"cv": 2, "random_state": 0}
AROUND = {
    "ThresholdTuner": (
        lambda part: ThresholdTuner(part, **FOLDS),
        lambda model: model.estimator_,
    ),
    "TopKCalibrator": (
        lambda part: TopKCalibrator(part, **FOLDS),
        lambda model: model.estimator_,
    ),
    "StackingXC": (
        lambda part: StackingXC([("a", part), ("b", asking(OvALinearXC(C=3.0)))], **FOLDS),
        lambda model: model.estimators_[0],
    ),
    "TextClassifierXC, ThresholdTuner": (
        lambda part: TextClassifierXC(Same(), asking(ThresholdTuner(part, **FOLDS))),
        lambda model: model.classifier_.estimator_,
    ),
}


@pytest.fixture(params=[False, True], ids=["off", "on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.fixture(params=AROUND)
def around(request):
    return AROUND[request.param]


def test_weights_reach_what_is_inside(around, routing):
    make, inside = around
    model = make(asking(inner())).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(inside(model).seen_, WEIGHT)
    assert inside(make(inner()).fit(X, Y)).seen_ is None
    if routing:
        with pytest.raises(UnsetMetadataPassedError, match=r"not explicitly .* Recorder.fit"):
            make(inner()).fit(X, Y, sample_weight=WEIGHT)


def test_a_pipeline_inside(around, routing):
    make, inside = around
    steps = make_pipeline(MaxAbsScaler(), asking(inner()))
    model = make(steps).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(inside(model)[-1].seen_, WEIGHT)
    if routing:  # a step that says nothing
        unset = make_pipeline(MaxAbsScaler(), inner())
        with pytest.raises(ValueError, match=r"sample_weight.* are passed but are not explicitly"):
            make(unset).fit(X, Y, sample_weight=WEIGHT)


def test_from_a_pipeline_outside(around, routing):
    make, inside = around
    model = asking(make(asking(inner())))
    pipeline = make_pipeline(MaxAbsScaler(), model)
    name = "sample_weight" if routing else f"{pipeline.steps[-1][0]}__sample_weight"
    pipeline.fit(X, Y, **{name: WEIGHT})
    np.testing.assert_array_equal(inside(pipeline[-1]).seen_, WEIGHT)
    if routing:
        with pytest.raises(UnsetMetadataPassedError):
            make_pipeline(MaxAbsScaler(), make(asking(inner()))).fit(X, Y, sample_weight=WEIGHT)


def test_weights_reach_default_parts(routing):
    """A tagger's own classifier, and a stack's own learner of pairs, request nothing."""
    plain = TextClassifierXC().fit(WORDS, NAMES).predict_topk(WORDS, 5)[1]
    weighted = TextClassifierXC().fit(WORDS, NAMES, sample_weight=WEIGHT).predict_topk(WORDS, 5)[1]
    assert not np.array_equal(plain, weighted)
    if routing:
        members = [("a", OvALinearXC().set_fit_request(sample_weight=False))]
        stack = StackingXC(members, cv=2, random_state=0)
        plain = stack.fit(X, Y).predict_topk(X, 5)[1]
        weighted = stack.fit(X, Y, sample_weight=WEIGHT).predict_topk(X, 5)[1]
        assert not np.array_equal(plain, weighted)


class Shaded(OvALinearXC):
    """One-vs-all without weights, with another argument for each row."""

    def fit(self, X, y, *, shade=None):
        assert shade is None or len(shade) == X.shape[0]
        self.shade_ = shade
        return super().fit(X, y)


class Sides(GroupKFold):
    """Remembers its groups."""

    def split(self, X, y=None, groups=None):
        self.groups = groups
        return super().split(X, y, groups)


@pytest.mark.parametrize("name", ["ThresholdTuner", "TopKCalibrator", "StackingXC"])
class TestOtherArguments:
    def test_reach_the_estimator_and_the_splitter(self, name, routing):
        make, inside = AROUND[name]
        part, cv, shade = Shaded(), Sides(2), np.arange(60)
        if routing:
            model = make(part.set_fit_request(shade=True)).set_params(cv=cv)
            model.fit(X, Y, shade=shade, groups=shade % 3)
            np.testing.assert_array_equal(cv.groups, shade % 3)
            with pytest.raises(TypeError, match=r"fit got unexpected argument.*tint"):
                model.fit(X, Y, tint=shade)
        else:
            model = make(part)
            if name == "StackingXC":  # all members get them
                model.set_params(b=Shaded())
            model.fit(X, Y, shade=shade)
        np.testing.assert_array_equal(inside(model).shade_, shade)

    def test_weights_that_an_estimator_does_not_take(self, name):
        make, inside = AROUND[name]
        with pytest.warns(UserWarning, match=rf"{name}: \w+ does not take sample_weight"):
            assert inside(make(Shaded()).fit(X, Y, sample_weight=WEIGHT)).shade_ is None


def test_groups_reach_the_folds_that_choose_c(routing):
    model, groups = OvALinearXCCV([0.1, 1.0], cv=GroupKFold(2), prune=0), np.arange(60) % 3
    if routing:
        folds = GroupKFold(2).split(X, groups=groups)
        expected = OvALinearXCCV([0.1, 1.0], cv=folds, prune=0).fit(X, Y).scores_
        np.testing.assert_array_equal(model.fit(X, Y, groups=groups).scores_, expected)
    else:
        with pytest.raises(TypeError, match=r"Arguments for cv need metadata routing"):
            model.fit(X, Y, groups=groups)
