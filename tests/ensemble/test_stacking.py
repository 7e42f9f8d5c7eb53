"""StackingXC: what it learns from, what it answers, how it lives with scikit-learn."""

import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, StackingXC
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import MemoryBudgetError, UnseenLabelWarning
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k
from sklearn_xc.metrics.propensity_scored import propensities_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def members(**of_softmax):
    parameters = {"max_iter": 3, "learning_rate": 0.3, "random_state": 0, **of_softmax}
    return [("ova", OvALinearXC()), ("softmax", ImplicitSoftmaxSGD(**parameters))]


def stack(**parameters):
    estimators = parameters.pop("estimators", None) or members()
    return StackingXC(estimators, **{"cv": 0.3, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def data():
    return make_xc_classification(
        n_samples=600, n_features=200, n_labels=60, random_state=0, return_X_y=True
    )


@pytest.fixture(scope="module")
def fitted(data):
    return stack().fit(*data)


class Recorder(OvALinearXC):
    """Notes how many rows each of its fits had."""

    n_rows: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Recorder.n_rows.append(X.shape[0])
        return super().fit(X, y, sample_weight)


class Counted(OvALinearXC):
    """Notes how many fitted ones there were when one was fitted."""

    fitted: weakref.WeakSet = weakref.WeakSet()  # noqa: RUF012
    n_before: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Counted.n_before.append(len(Counted.fitted))
        Counted.fitted.add(self)
        return super().fit(X, y, sample_weight)


class TestWhatIsLearnedFrom:
    @pytest.mark.parametrize(
        ("cv", "expected"),
        [
            (0.25, [450, 600]),
            (3, [400, 400, 400, 600]),
            (None, [480] * 5 + [600]),
            ([(np.arange(100), np.arange(200, 300))], [100, 600]),
        ],
        ids=["a share", "folds", "None", "a list"],
    )
    def test_members_are_trained_without_held_out_rows(self, cv, expected, data):
        Recorder.n_rows = []
        stack(estimators=[("ova", Recorder())], cv=cv).fit(*data)
        assert Recorder.n_rows == expected

    def test_prefit_members_stay_as_they_are(self, data):
        X, Y = data
        given = [(name, one.fit(X[:400], Y[:400])) for name, one in members()]
        model = stack(estimators=given, cv="prefit").fit(X[400:], Y[400:])
        for kept, (_, one) in zip(model.estimators_, given, strict=True):
            assert kept.intercept_ is one.intercept_
        with pytest.raises(NotFittedError, match="'prefit', and 'ova' is not fitted"):
            stack(estimators=members(), cv="prefit").fit(X, Y)

    @pytest.mark.parametrize("classes", [False, True])
    def test_propensities_of_prefit_members_are_of_their_training_set(self, classes, data):
        """Counts of labels and the number of rows: Jain et al. (2016), written out."""
        X, Y = data
        y = Y.toarray()
        given = [(name, one.fit(X[:400], y[:400])) for name, one in members()]
        if classes:  # the first counts nothing, the second lacks a class
            y = np.array(["a", "b", "c", "d"])[np.arange(600) % 4]
            kept = np.flatnonzero(y[:400] != "c")
            knows = OvALinearXC().fit(X[kept], y[kept])
            given = [("nb", MultinomialNB().fit(X[:400], y[:400])), ("ova", knows)]
        model = stack(estimators=given, cv="prefit", objective="propensity").fit(X[400:], y[400:])
        n, counts = (300, np.array([100, 100, 0, 100])) if classes else (400, y[:400].sum(axis=0))
        C = (np.log(n) - 1) * 2.5**0.55
        inverse = 1 + C * (counts + 1.5) ** -0.55
        assert model.n_samples_fit_ == n
        np.testing.assert_array_equal(model.label_counts_, counts)
        propensities = propensities_of(model.label_counts_, model.n_samples_fit_)
        np.testing.assert_allclose(1 / propensities, inverse)
        labels, worth = model.predict_topk(X[400:], 4)
        chances = model.set_params(objective="precision").decision_function(X[400:])
        expected = np.take_along_axis(chances, labels, axis=1) * inverse[labels]
        # Both end as float32; what is expected was also rounded before it was multiplied.
        np.testing.assert_allclose(worth[worth > 0], expected[worth > 0], rtol=1e-6)


def _first_columns(X):
    return X[:, :10]


def _last_columns(X):
    return X[:, 10:]


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(0)
    n, n_labels = 3000, 40
    y = rng.choice(n_labels, n, p=np.r_[np.full(10, 0.08), np.full(30, 0.2 / 30)])
    shown = np.eye(n_labels)[y] + 0.35 * rng.normal(size=(n, n_labels))
    Y = sp.csr_array(np.eye(n_labels, dtype=int)[y])
    X = np.c_[shown[:, :10], shown[:, 10:]]
    return X[:2000], Y[:2000], X[2000:], Y[2000:]


@pytest.fixture(scope="module")
def halved(halves):
    of_frequent = FunctionTransformer(_first_columns)
    of_rare = FunctionTransformer(_last_columns)
    return StackingXC(
        [
            ("frequent", make_pipeline(of_frequent, OvALinearXC(prune=0))),
            ("rare", make_pipeline(of_rare, OvALinearXC(prune=0))),
        ],
        random_state=0,
    ).fit(*halves[:2])


class TestGains:
    """A member that knows frequent labels, and one that knows rare ones."""

    @pytest.mark.parametrize("objective", ["precision", "propensity"])
    def test_it_is_above_its_best_member(self, halved, halves, objective):
        from sklearn_xc import topk

        X, Y = halves[2:]
        weight = propensity(halved.label_counts_, halved.n_samples_fit_)
        measure = {
            "precision": lambda labels: precision_at_k(Y, labels, 1),
            "propensity": lambda labels: psp_at_k(Y, labels, 1, propensities=weight),
        }[objective]
        halved.objective = objective
        found = measure(halved.predict_topk(X, 1)[0])
        best = max(measure(topk(one, X, 1)[0]) for one in halved.estimators_)
        assert found > best + 0.05

    def test_objectives_share_a_fit(self, halved, halves):
        halved.objective = "precision"
        labels, chances = halved.predict_topk(halves[2], 40)
        halved.objective = "propensity"
        other, worth = halved.predict_topk(halves[2], 40)
        inverse = 1 / propensity(halved.label_counts_, halved.n_samples_fit_)
        dense = np.zeros((1000, 40))
        np.put_along_axis(dense, labels, chances * inverse[labels], axis=1)
        given = worth > 0  # the others are no candidates
        np.testing.assert_allclose(np.take_along_axis(dense, other, 1)[given], worth[given])
        assert given[:, :20].all()
        assert (np.diff(worth, axis=1) <= 0).all()


class TestAnswers:
    @pytest.mark.parametrize("container", ["sparse", "dense", "classes"])
    def test_they_agree(self, container, data):
        X, Y = data
        y = {"sparse": Y, "dense": Y.toarray(), "classes": Y.argmax(axis=1)}[container]
        model = stack(n_candidates=5).fit(X, y)
        n_labels = len(model.classes_)
        labels, scores = model.predict_topk(X[:50], n_labels)
        assert (np.sort(labels, axis=1) == np.arange(n_labels)).all()
        assert (np.diff(scores, axis=1) <= 0).all()
        found = model.decision_function(X[:50])
        if container != "sparse":
            np.testing.assert_array_equal(np.take_along_axis(found, labels, axis=1), scores)
        else:
            model.top_k = 7
            np.testing.assert_array_equal(
                np.sort(model.decision_function(X[:50]).indices.reshape(50, 7)),
                np.sort(labels[:, :7]),
            )
        for k in (1, 6, 20):
            few = model.predict_topk(X[:50], k)
            np.testing.assert_array_equal(few[0], labels[:, :k])
            np.testing.assert_array_equal(few[1], scores[:, :k])
        proba = model.predict_proba(X[:50])
        if container == "classes":
            np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
        else:
            assert model.predict(X[:50]).shape == (50, n_labels)
            inside = proba.toarray() if container == "sparse" else proba
            predicted = model.predict(X[:50])
            predicted = predicted.toarray() if container == "sparse" else predicted
            np.testing.assert_array_equal(predicted > 0, inside > model.threshold_)
        logs = model.predict_log_proba(X[:50])
        if container == "sparse":
            assert (logs.indices == proba.indices).all()
            logs, proba = logs.data, proba.data
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(logs, np.log(proba))


class TestUnseenLabels:
    def test_they_come_last_and_warn_once(self, data):
        X, Y = data
        Y = sp.hstack([Y[:, :5], sp.csr_array((600, 1)), Y[:, 5:]], format="csr")
        with pytest.warns(UnseenLabelWarning, match="1 of 61 labels") as caught:
            model = stack().fit(X, Y)
        assert len([one for one in caught if one.category is UnseenLabelWarning]) == 1
        labels, scores = model.predict_topk(X, 61)
        assert (labels[:, -1] == 5).all()
        assert (scores[:, -1] < scores[:, -2]).all()
        assert not model.predict_proba(X)[:, [5]].nnz


class TestScikitLearn:
    def test_members_of_scikit_learn_and_texts(self):
        rng = np.random.default_rng(0)
        words = {"sea": "wave ship sail", "wood": "tree leaf bark", "sky": "cloud bird wind"}
        y = rng.choice(list(words), 120)
        texts = [" ".join(rng.choice(words[one].split(), 4)) for one in y]
        estimators = [
            ("chars", make_pipeline(TfidfVectorizer(analyzer="char"), OvALinearXC())),
            ("words", make_pipeline(TfidfVectorizer(), MultinomialNB())),
            ("forest", make_pipeline(TfidfVectorizer(), RandomForestClassifier(5, random_state=0))),
        ]
        model = stack(estimators=estimators, cv=3).fit(texts, y)
        assert model.score(texts, y) == 1
        assert model.predict(["ship sail"]).tolist() == ["sea"]
        frame = pd.Series(texts, index=np.arange(120) + 7)
        np.testing.assert_array_equal(model.predict(frame), model.predict(texts))

    def test_grid_search_over_a_member(self, data):
        search = GridSearchCV(
            stack(), {"ova__C": [0.1, 1.0], "softmax": [None, "drop"]}, cv=2, error_score="raise"
        )
        search.param_grid["softmax"] = [members()[1][1], "drop"]
        search.fit(*data)
        assert len(search.cv_results_["params"]) == 4
        assert set(search.best_estimator_.named_estimators_) <= {"ova", "softmax"}

    def test_a_learner_of_ones_own(self, data):
        learner = make_pipeline(SimpleImputer(), LogisticRegression())
        model = stack(final_estimator=learner).fit(*data)
        assert model.final_estimator_[-1].coef_.shape == (1, len(model.pair_features_))
        assert learner.__sklearn_is_fitted__ is not None
        assert not hasattr(learner[-1], "coef_")


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "says"),
        [
            ({"estimators": [OvALinearXC()]}, r"list of pairs \(name, estimator\)\. Got OvALinear"),
            ({"estimators": [("a", OvALinearXC)]}, "'a' must be an estimator. Got <class"),
            ({"estimators": [("a", "drop")]}, "or all 'drop'"),
            ({"estimators": [("a", OvALinearXC()), ("a", OvALinearXC())]}, "not unique"),
            ({"estimators": [("cv", OvALinearXC())]}, "conflict with constructor"),
            ({"estimators": [("a__b", OvALinearXC())]}, "must not contain __"),
            ({"final_estimator": KFold()}, "final_estimator"),
            ({"objective": "recall"}, "objective"),
            ({"cv": 1.5}, "cv"),
            ({"cv": 601}, "cv must be from 2 to 600, the number of rows. Got 601"),
            ({"cv": 1}, "'cv' parameter"),
            ({"cv": []}, "gives no folds"),
            ({"n_candidates": 0}, "n_candidates"),
            ({"top_k": 0}, "top_k"),
        ],
        ids=lambda value: None if isinstance(value, dict) else value[:20],
    )
    def test_of_parameters(self, parameters, says, data):
        with pytest.raises((ValueError, TypeError), match=says):
            stack(**parameters).fit(*data)

    def test_a_member_is_named(self, data, fitted):
        X, Y = data
        wrong = [("ova", OvALinearXC()), ("bad", OvALinearXC(C=-1))]
        with pytest.raises(ValueError, match=r"StackingXC: estimator 'bad': .*'C' parameter"):
            stack(estimators=wrong).fit(X, Y)
        piped = stack(estimators=[("scaled", make_pipeline(MaxAbsScaler(), OvALinearXC()))])
        piped.fit(X, Y)
        with pytest.raises(ValueError, match=r"^StackingXC: estimator 'scaled': X has 3 features"):
            piped.predict_topk(X[:, :3])
        with pytest.raises(
            ValueError, match=r"^StackingXC: estimator 'scaled': Input X contains N"
        ):
            piped.fit(np.where(X.toarray() > 0, np.nan, 1.0), Y)
        short = [("ova", OvALinearXC(max_memory=10))]
        with pytest.raises(MemoryBudgetError, match=r"^StackingXC: estimator 'ova': OvALinearXC: "):
            stack(estimators=short).fit(X, Y)
