"""Pipelines, searches, cross-validation, pandas, metadata routing, clones, copies and files."""

import copy
import pickle
from inspect import signature

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from fitted import (
    METHODS,
    assert_same_answers,
    assert_same_model,
    fitted_names,
    public,
)
from registry import ENTRIES, having
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MultiLabelBinarizer
from small_data import awkward, easy, made, rows_of_labels

from sklearn_xc import LabelFeatures, topk
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.model_selection import cross_val_score as sparse_cross_val_score

X, Y = awkward()
EASY, PLACES = easy()
EASY_Y = sp.csr_array(np.c_[np.eye(4, dtype=int)[PLACES], np.arange(60) % 4 > 1])
TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}
NAMES = [f"f{j}" for j in range(15)]

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


@pytest.fixture(scope="module")
def texts():
    """Return 80 documents of 12 words, and the one or two topics of each."""
    rng = np.random.default_rng(0)
    labels = [rng.choice(list(TOPICS), rng.integers(1, 3), replace=False) for _ in range(80)]
    documents = [
        " ".join(rng.choice(" ".join(TOPICS[label] for label in row).split(), 12)) for row in labels
    ]
    return documents, labels


def last_of(pipeline):
    return pipeline.steps[-1][0]


class TestPipelines:
    def test_texts_with_a_float32_vectorizer(self, entry, texts):
        documents, labels = texts
        binarizer = MultiLabelBinarizer(sparse_output=True)
        topics = binarizer.fit_transform(labels)
        model = entry.make(able=True)
        pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), model).fit(documents, topics)
        assert {part.dtype for part in entry.weights(pipeline[-1])} == {np.dtype(np.float32)}
        assert pipeline.decision_function(documents).dtype == np.float32
        assert type(pipeline.predict(documents)) is type(topics)
        assert pipeline.score(documents, topics) > 0.9
        found, scores = topk(pipeline, ["tree leaf tram street", "cloud bird"], 2)
        assert set(binarizer.classes_[found[0]]) == {"wood", "city"}
        assert binarizer.classes_[found[1, 0]] == "sky"
        assert scores.dtype == np.float32
        inner = pipeline[-1].predict_topk(pipeline[:-1].transform(["cloud"]), 2)
        np.testing.assert_array_equal(topk(pipeline, ["cloud"], 2), inner)

    def test_weights_reach_the_last_step(self, entry):
        weight = np.arange(60) % 3
        pipeline = make_pipeline(MaxAbsScaler(), entry.make())
        pipeline.fit(X, Y, **{f"{last_of(pipeline)}__sample_weight": weight})
        scaled = pipeline[:-1].transform(X)
        assert_same_model(pipeline[-1], entry.make().fit(scaled, Y, sample_weight=weight))
        plain = entry.make().fit(scaled, Y)
        assert (entry.learnt(pipeline[-1]) != entry.learnt(plain)).any()


class TestMetadataRouting:
    @pytest.fixture(autouse=True)
    def _routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    @pytest.mark.parametrize(
        ("name", "argument"),
        [(name, "sample_weight") for name in ENTRIES]
        + [(name, "label_features") for name in having("label_features")],
    )
    def test_of_fit(self, name, argument):
        entry = ENTRIES[name]
        value = {"sample_weight": np.arange(60.0) % 3, "label_features": rows_of_labels()}[argument]
        asking = clone(entry.make())
        for part in (asking, *asking.get_params().values()):
            if hasattr(part, "set_fit_request") and argument in signature(part.fit).parameters:
                part.set_fit_request(**{argument: True})
        pipeline = make_pipeline(MaxAbsScaler(), asking).fit(X, Y, **{argument: value})
        with pytest.raises(ValueError, match=rf"{argument}.* are passed but"):
            make_pipeline(MaxAbsScaler(), entry.make()).fit(X, Y, **{argument: value})
        scaled = pipeline[:-1].transform(X)
        assert_same_model(pipeline[-1], clone(asking).fit(scaled, Y, **{argument: value}))

    @pytest.mark.parametrize("name", having("label_features"))
    def test_a_holder_stays_whole_in_a_search(self, name):
        """There are as many labels as instances."""
        y = sp.csr_array(np.eye(60))
        y = sp.csr_array(y + np.roll(np.eye(60), 1, axis=1))
        pipeline = make_pipeline(
            MaxAbsScaler(), ENTRIES[name].make().set_fit_request(label_features=True)
        )
        grid = {f"{last_of(pipeline)}__top_k": [2, 3]}
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
        Z = rows_of_labels(60)
        search.fit(X, y, label_features=LabelFeatures(Z))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        with pytest.raises(ValueError, match=r"Cross-validation slices .*LabelFeatures\("):
            search.fit(X, y, label_features=Z)


class TestSearches:
    def test_grid_search_with_sparse_labels_and_top_k_scores(self, entry):
        pipeline = make_pipeline(MaxAbsScaler(), entry.make(able=True))
        grid = {f"{last_of(pipeline)}__top_k": [1, 4]}
        scorer = TopKScorer(ks=(1, 3))
        search = GridSearchCV(
            pipeline, grid, scoring=scorer, refit="PSP@3", cv=3, error_score="raise"
        ).fit(EASY, EASY_Y)
        results = search.cv_results_
        for metric in ("P@1", "PSP@3"):
            assert np.isfinite(results[f"mean_test_{metric}"]).all()
        assert results["mean_test_P@1"].min() > 0.7
        assert isinstance(search.predict(EASY), sp.csr_array)
        best = search.best_estimator_
        direct = best[-1].predict_topk(best[:-1].transform(EASY), 4)
        np.testing.assert_array_equal(topk(search, EASY, 4)[0], direct[0])
        again = clone(best).fit(EASY, EASY_Y)
        assert_same_model(again[-1], best[-1])

    @pytest.mark.parametrize("name", having("predict_proba"))
    def test_log_loss_of_classes(self, name):
        model, spoilt = ENTRIES[name].make(), ENTRIES[name].spoilt
        grid = {key: [model.get_params()[key], value] for key, value in spoilt.items()}
        search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3, error_score="raise")
        search.fit(EASY, PLACES)
        assert search.best_index_ == 0
        assert -np.log(4) < search.best_score_ < 0

    def test_cross_validation_with_a_sparse_indicator(self, entry):
        model = entry.make(able=True)
        scores = sparse_cross_val_score(model, EASY, EASY_Y, cv=3, scoring="P@1")
        assert (scores > 0.7).all()

    @pytest.mark.parametrize("name", having("label_features"))
    def test_label_features_in_the_constructor_are_not_sliced(self, name):
        y = sp.csr_array(np.eye(60) + np.roll(np.eye(60), 1, axis=1))
        for Z in (rows_of_labels(60), LabelFeatures(rows_of_labels(60))):
            model = ENTRIES[name].make(label_features=Z)
            scores = sparse_cross_val_score(model, X, y, cv=3, scoring="P@1")
            assert np.isfinite(scores).all()


class TestPandas:
    FRAME = pd.DataFrame(X.toarray(), columns=NAMES)

    def test_feature_names(self, entry):
        model = entry.make().fit(self.FRAME, Y)
        assert model.feature_names_in_.tolist() == NAMES
        assert model.n_features_in_ == 15
        plain = entry.make().fit(X.toarray(), Y)
        assert_same_model(model, plain, but=("feature_names_in_",))
        asks = [getattr(model, m) for m in (*METHODS, "predict_topk") if hasattr(model, m)]
        asks += [lambda x, ask=ask: ask(model, x) for ask in entry.answers.values()]
        for ask in asks:
            with pytest.raises(ValueError, match="feature names should match"):
                ask(self.FRAME.rename(columns={"f3": "other"}))
            with pytest.warns(UserWarning, match="does not have valid feature names"):
                ask(self.FRAME.to_numpy())

    def test_frames_of_labels_and_named_weights(self, entry):
        labels = pd.DataFrame(Y.toarray().astype(int), index=np.arange(60)[::-1])
        weight = pd.Series(np.arange(60) % 3, index=np.arange(60)[::-1])
        model = entry.make().fit(self.FRAME, labels, sample_weight=weight)
        predicted = model.predict(self.FRAME)
        assert type(predicted) is np.ndarray
        assert predicted.dtype == np.int64
        plain = entry.make().fit(X.toarray(), Y, sample_weight=weight.to_numpy())
        assert_same_model(model, plain, but=("feature_names_in_",))


@pytest.fixture(scope="module")
def model(entry):
    """Return a model that no test may change."""
    return entry.make(top_k=3).fit(X, Y)


class TestCopiesAndFiles:
    def test_pickle(self, entry, model):
        for _ in range(2):  # before and after what answers keep for the next
            again = pickle.loads(pickle.dumps(model))
            assert_same_model(again, model)
            assert_same_answers(again, model, X, entry)
            assert repr(again.get_params()) == repr(model.get_params())

    @pytest.mark.parametrize("classes", [np.array(list("badc"))[PLACES], PLACES > 1], ids=[4, 2])
    @pytest.mark.parametrize("name", ["OvALinearXC", "ImplicitSoftmaxSGD", "StackingXC"])
    def test_pickle_of_classes(self, name, classes):
        model = ENTRIES[name].make().fit(X, classes)
        again = pickle.loads(pickle.dumps(model))
        assert_same_model(again, model)
        assert_same_answers(again, model, X, ENTRIES[name])

    def test_joblib(self, entry, model, tmp_path):
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
        for weights in entry.weights(again):
            assert sp.issparse(weights) or isinstance(weights, np.memmap)
        inner = getattr(again, "estimator_", getattr(again, "estimators_", [again]))
        for one in inner if isinstance(inner, list) else [inner]:
            if hasattr(one, "_weights") and hasattr(one._weights, "by_feature"):
                assert isinstance(one._weights.by_feature.values, np.memmap)
        assert_same_model(again, model)
        assert_same_answers(again, model, X, entry)

    def test_copies(self, entry, model):
        for again in (copy.deepcopy(model), copy.copy(model)):
            assert_same_answers(again, model, X, entry)

    def test_a_copy_can_be_fitted_again(self, model):
        again, plain = pickle.loads(pickle.dumps(model)), clone(model)
        for one in (again, plain):
            one.fit(*made(5, 1))
        assert_same_model(again, plain)

    def test_clone_keeps_parameters_but_nothing_fitted(self, entry, model):
        again = clone(model)
        assert repr(again.get_params()) == repr(model.get_params())
        assert set(vars(again)) == set(vars(entry.make()))
        for attribute in public(model):
            assert not hasattr(again, attribute)


class TestParameters:
    def test_set_and_get(self, entry):
        model = entry.bare()
        defaults = model.get_params(deep=False)
        assert entry.estimator(**defaults).get_params(deep=False) == defaults
        model.set_params(top_k=7)
        assert model.get_params(deep=False) == {**defaults, "top_k": 7}
        with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
            model.set_params(nonsense=1)
        for name in (name for name, value in defaults.items() if isinstance(value, str)):
            with pytest.raises(ValueError, match=f"{name} must be an object with parameters"):
                model.set_params(**{f"{name}__nonsense": 1})
        needed = ", ".join(f"{name}={getattr(entry.bare(), name)!r}" for name in entry.needed)
        shown = "".join(repr(entry.bare()).split())
        assert shown == "".join(f"{entry.estimator.__name__}({needed})".split())

    def test_the_constructor_stores_and_does_not_check(self, entry):
        value = [["nonsense"]]
        for parameter in entry.make().get_params(deep=False):
            assert getattr(entry.bare(**{parameter: value}), parameter) is value

    def test_fitting_sets_no_parameter(self, entry):
        model = entry.make()
        given = model.get_params()
        model.fit(X, Y)
        assert all(model.get_params()[name] is value for name, value in given.items())
        assert all(name[-1] == "_" or name[0] == "_" for name in fitted_names(model))


def test_silent_unless_verbose(entry, capfd):
    entry.make().fit(X, Y)
    assert capfd.readouterr() == ("", "")
    name = entry.estimator.__name__
    entry.make(verbose=1).fit(X, Y)
    assert capfd.readouterr().out.startswith(f"[{name}] ")
