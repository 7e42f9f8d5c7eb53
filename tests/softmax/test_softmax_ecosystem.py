"""Within pipelines, searches, pandas, cross-validation, files and copies."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.model_selection import cross_val_score as plain_cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MultiLabelBinarizer

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax, topk
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.model_selection import cross_val_score, cross_validate

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)

TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "predict_topk")


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


@pytest.fixture(params=[SoftmaxUMax, ImplicitSoftmaxSGD])
def make(request):
    def make(**parameters):
        return request.param(
            **{"learning_rate": 1.0, "max_iter": 15, "random_state": 0, **parameters}
        )

    return make


@pytest.fixture
def xy(xy):
    """Drop the label that every instance has: it makes precision@1 perfect."""
    X, Y = xy
    return X, Y[:, [j for j in range(15) if j != 7]]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = [rng.choice(list(TOPICS), rng.integers(1, 3), replace=False) for _ in range(80)]
    documents = [
        " ".join(rng.choice(" ".join(TOPICS[label] for label in row).split(), 12)) for row in labels
    ]
    return documents, labels


class TestPipelines:
    def test_texts_with_a_float32_vectorizer(self, make, texts):
        documents, labels = texts
        binarizer = MultiLabelBinarizer(sparse_output=True)
        Y = binarizer.fit_transform(labels)
        pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), make(max_iter=30))
        pipeline.fit(documents, Y)
        assert pipeline[-1].coef_.dtype == np.float32
        assert type(pipeline.predict(documents)) is type(Y)
        assert type(pipeline.predict_proba(documents)) is type(Y)
        assert binarizer.inverse_transform(pipeline.predict(["wave ship sail"])) == [("sea",)]
        assert pipeline.score(documents, Y) > 0.95
        found, scores = topk(pipeline, ["tree leaf tram street", "cloud"], 2)
        assert set(binarizer.classes_[found[0]]) == {"wood", "city"}
        assert binarizer.classes_[found[1, 0]] == "sky"
        assert scores.dtype == np.float32
        inner = pipeline[-1].predict_topk(pipeline[:-1].transform(["cloud"]), 2)
        np.testing.assert_array_equal(topk(pipeline, ["cloud"], 2), inner)

    def test_weights_reach_the_last_step(self, make, xy):
        X, Y = xy
        weight = np.arange(120) % 3
        pipeline = make_pipeline(MaxAbsScaler(), make())
        name = pipeline.steps[-1][0]
        pipeline.fit(X, Y, **{f"{name}__sample_weight": weight})
        direct = make().fit(pipeline[:-1].transform(X), Y, weight)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
        assert (direct.coef_ != make().fit(pipeline[:-1].transform(X), Y).coef_).any()

    def test_metadata_routing(self, make, xy):
        X, Y = xy
        weight = np.arange(120.0) % 3
        with sklearn.config_context(enable_metadata_routing=True):
            estimator = make().set_fit_request(sample_weight=True)
            pipeline = make_pipeline(MaxAbsScaler(), estimator).fit(X, Y, sample_weight=weight)
            with pytest.raises(ValueError, match=r"sample_weight.* are passed but"):
                make_pipeline(MaxAbsScaler(), make()).fit(X, Y, sample_weight=weight)
            partial = make().set_partial_fit_request(sample_weight=True, index=True)
            partial.partial_fit(X, Y, sample_weight=weight, index=np.arange(120))
        direct = make().fit(pipeline[:-1].transform(X), Y, weight)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)


class TestSearches:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_grid_search_over_alpha_with_sparse_labels_and_top_k_scores(self, n_jobs, make, xy):
        X, Y = xy
        pipeline = make_pipeline(MaxAbsScaler(), make())
        name = pipeline.steps[-1][0]
        with joblib.parallel_config("threading"):
            search = GridSearchCV(
                pipeline, {f"{name}__alpha": [0.1, 1000.0]}, refit="PSP@3", cv=3, n_jobs=n_jobs,
                scoring=TopKScorer(ks=(1, 3)),
            ).fit(X, Y)  # fmt: skip
        assert search.best_params_ == {f"{name}__alpha": 0.1}
        results = search.cv_results_
        assert results["mean_test_PSP@3"][0] > results["mean_test_PSP@3"][1]
        assert np.isfinite(results["mean_test_P@1"]).all()
        assert isinstance(search.predict(X), sp.csr_array)
        assert isinstance(search.predict_proba(X), sp.csr_array)
        labels, _ = topk(search, X, 4)
        best = search.best_estimator_
        np.testing.assert_array_equal(labels, best[-1].predict_topk(best[:-1].transform(X), 4)[0])

    def test_log_loss_of_classes_picks_alpha(self, make, xy):
        X, _ = xy
        y = X.toarray()[:, :4].argmax(axis=1)
        search = GridSearchCV(
            make(), {"alpha": [0.5, 300.0]}, scoring="neg_log_loss", cv=3, error_score="raise"
        ).fit(X, y)
        assert search.best_params_ == {"alpha": 0.5}
        assert -np.log(4) < search.best_score_ < 0

    def test_cross_validation_with_a_sparse_indicator(self, make, xy):
        scores = cross_val_score(make(alpha=1.0), *xy, cv=3, scoring="P@1")
        assert ((scores > 0.1) & (scores < 1)).all()  # by chance 0.09
        result = cross_validate(make(), *xy, cv=KFold(3), scoring=["P@1", "PSP@3"])
        assert np.isfinite(result["test_PSP@3"]).all()

    def test_cross_validation_of_scikit_learn(self, make, xy):
        X, _ = xy
        y = np.array(list("dbac"))[X.toarray()[:, :4].argmax(axis=1)]
        accuracy = plain_cross_val_score(make(alpha=1.0), X, y, cv=3)
        assert accuracy.mean() > 0.5

    def test_train_test_split(self, make, xy):
        X, X_test, Y, Y_test = train_test_split(*xy, random_state=0)
        assert 0.2 < make(alpha=1.0, learning_rate=0.1).fit(X, Y).score(X_test, Y_test) < 1


class TestSparseInterface:
    @pytest.mark.parametrize("interface", ["spmatrix", "sparray"])
    def test_the_setting_changes_nothing(self, interface, make, xy):
        if "sparse_interface" not in sklearn.get_config():
            pytest.skip("this scikit-learn has no such setting")
        X, Y = xy
        expected = make().fit(X, Y)
        with sklearn.config_context(sparse_interface=interface):
            for container in (sp.csr_matrix, sp.csr_array):
                model = make().fit(container(X), container(Y))
                np.testing.assert_array_equal(model.coef_, expected.coef_)
                assert type(model.predict(X)) is type(model.predict_proba(X)) is container


class TestPandas:
    @pytest.fixture
    def frame(self, xy):
        return pd.DataFrame(xy[0].toarray(), columns=[f"f{j}" for j in range(40)])

    def test_feature_names(self, frame, make, xy):
        model = make().fit(frame, xy[1])
        assert model.feature_names_in_.tolist() == list(frame.columns)
        assert model.n_features_in_ == 40
        np.testing.assert_array_equal(model.coef_, make().fit(*xy).coef_)
        for method in ANSWERS:
            with pytest.raises(ValueError, match="feature names should match"):
                getattr(model, method)(frame.rename(columns={"f3": "other"}))
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(frame[frame.columns[::-1]], xy[1])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict_proba(frame.to_numpy())

    def test_frames_of_labels_and_named_weights(self, frame, make, xy):
        Y = pd.DataFrame(xy[1].toarray().astype(int))
        weight = pd.Series(np.arange(120) % 3, index=np.arange(120)[::-1])
        model = make().fit(frame, Y, sample_weight=weight)
        assert type(model.predict(frame)) is np.ndarray
        assert model.predict(frame).dtype == np.int64
        plain = make().fit(*xy, sample_weight=weight.to_numpy())
        np.testing.assert_array_equal(model.coef_, plain.coef_)

    def test_a_sparse_frame(self, make, xy):
        X, Y = xy
        frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X))
        frame.columns = frame.columns.astype(str)
        np.testing.assert_array_equal(make().fit(frame, Y).coef_, make().fit(X, Y).coef_)

    def test_categories(self, frame, make):
        y = pd.Series(list("abc") * 40, dtype="category")
        model = make().fit(frame, y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert set(model.predict(frame)) <= set("abc")


@pytest.fixture(params=["sparse", "dense", "classes", "two classes"])
def fitted(request, make, xy):
    X, Y = xy
    y = {
        "sparse": Y,
        "dense": Y.toarray(),
        "classes": np.array(["b", "a", "c"])[X.toarray()[:, :3].argmax(axis=1)],
        "two classes": Y[:, [0]].toarray()[:, 0] > 0,
    }[request.param]
    return make(top_k=3, average=True).fit(X, y)


def assert_same_answers(a, b, X):
    for method in ANSWERS:
        p, q = getattr(a, method)(X), getattr(b, method)(X)
        if sp.issparse(p):
            assert type(p) is type(q)
            p, q = p.toarray(), q.toarray()
        np.testing.assert_array_equal(p, q)
    for name in ("coef_", "intercept_", "u_", "u_index_", "loss", "log_loss"):
        np.testing.assert_array_equal(learned(a, name), learned(b, name))
    assert repr(a.get_params()) == repr(b.get_params())


class TestPersistence:
    @pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
    def test_pickle(self, protocol, fitted, xy):
        assert_same_answers(pickle.loads(pickle.dumps(fitted, protocol)), fitted, xy[0])

    @pytest.mark.parametrize("mmap_mode", [None, "r"])
    def test_joblib(self, mmap_mode, fitted, xy, tmp_path):
        joblib.dump(fitted, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
        assert isinstance(again.coef_, np.memmap) == (mmap_mode == "r")
        assert_same_answers(again, fitted, xy[0])

    def test_a_memory_mapped_model_is_a_warm_start(self, make, xy, tmp_path):
        model = make(warm_start=True).fit(*xy)
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode="r").fit(*xy)
        np.testing.assert_array_equal(again.coef_, model.fit(*xy).coef_)

    def test_a_file_holds_the_weights_as_often_as_the_model(self, make, tmp_path):
        """coef_ and the iterate are one array, and two with an average."""
        X = np.random.default_rng(0).normal(size=(30, 2000))
        weights = 3 * 2000 * 8
        for average, copies in ((False, 1), (True, 3)):
            model = make(average=average, max_iter=2, learning_rate=1e-4).fit(X, np.arange(30) % 3)
            size = len(pickle.dumps(model))
            assert weights * 0.9 < size < weights * copies + 20_000

    def test_deep_copies(self, fitted, xy):
        assert_same_answers(copy.deepcopy(fitted), fitted, xy[0])
        other = copy.deepcopy(fitted).partial_fit(xy[0], fitted.predict(xy[0]))
        assert other.n_iter_ == fitted.n_iter_ + 1
        assert (other.coef_ != fitted.coef_).any()

    def test_a_newer_format_is_refused(self, fitted):
        state = {**fitted.__getstate__(), "_sklearn_xc_format": 99, "_sklearn_xc_version": "7.0"}
        with pytest.raises(ValueError, match=r"sklearn_xc 7\.0 in state format 99.*Upgrade it"):
            type(fitted).__new__(type(fitted)).__setstate__(state)


class TestParameters:
    def test_clone_copies_parameters_but_nothing_fitted(self, fitted):
        other = clone(fitted)
        assert repr(other.get_params()) == repr(fitted.get_params())
        assert not [name for name in vars(other) if name.endswith("_")]
        assert not hasattr(other, "u_")

    def test_defaults_are_those_of_the_papers(self):
        umax, implicit = SoftmaxUMax(), ImplicitSoftmaxSGD()
        assert (umax.n_negatives, umax.delta, umax.alpha) == (5, 1.0, 0.0)
        assert (implicit.n_negatives, implicit.batch_size, implicit.alpha) == (1, 1, 0.0)
        for model in (umax, implicit):
            assert (model.learning_rate, model.decay, model.max_iter) == ("auto", 0.9, 50)
            assert (model.average, model.early_stopping, model.tol) == (False, False, 1e-4)
            assert (model.multilabel, model.top_k) == ("all", 100)
        assert set(umax.get_params()) - set(implicit.get_params()) == {"delta"}
        assert set(implicit.get_params()) - set(umax.get_params()) == {"batch_size"}

    def test_the_constructor_stores_and_does_not_check(self):
        assert ImplicitSoftmaxSGD(alpha="nonsense").alpha == "nonsense"

    def test_everything_but_alpha_is_by_keyword(self, make):
        estimator = type(make())
        assert estimator(2.0).alpha == 2.0
        with pytest.raises(TypeError, match="positional"):
            estimator(1.0, 3)
