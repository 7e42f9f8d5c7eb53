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

from sklearn_xc import DecompMIPSClassifier, topk
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.model_selection import cross_val_score, cross_validate

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}
ANSWERS = ("predict", "decision_function", "predict_topk", "embed")
LAST = "decompmipsclassifier"


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
        vectorizer = TfidfVectorizer(dtype=np.float32)
        pipeline = make_pipeline(vectorizer, make(max_iter=20, decay=0.94))
        pipeline.fit(documents, Y)
        model = pipeline[-1]
        assert model.coef_.dtype == model.feature_embedding_.dtype == np.float32
        assert type(pipeline.predict(documents)) is type(Y)
        assert pipeline.predict(documents).nnz == Y.nnz
        assert pipeline.score(documents, Y) > 0.95
        found, scores = topk(pipeline, ["tree leaf tram street", "cloud"], 2)
        assert set(binarizer.classes_[found[0]]) == {"wood", "city"}
        assert binarizer.classes_[found[1, 0]] == "sky"
        assert scores.dtype == np.float32
        inner = model.predict_topk(vectorizer.transform(["cloud"]), 2)
        np.testing.assert_array_equal(topk(pipeline, ["cloud"], 2), inner)

    def test_documents_and_words_have_vectors(self, make, texts):
        """Documents are sums of their words' vectors; words of one topic lie together."""
        documents, labels = texts
        Y = MultiLabelBinarizer(sparse_output=True).fit_transform(labels)
        vectorizer = TfidfVectorizer(dtype=np.float32)
        X = vectorizer.fit_transform(documents)
        model = make(embedding_dim=20, max_iter=30, decay=0.95).fit(X, Y)
        vectors = model.embed(vectorizer.transform(documents[:9]))
        assert vectors.shape == (9, 20)
        np.testing.assert_allclose(vectors, (X[:9] @ model.feature_embedding_), atol=1e-5)
        words = {word: model.feature_embedding_[k] for word, k in vectorizer.vocabulary_.items()}
        sums = {name: sum(words[w] for w in text.split()) for name, text in TOPICS.items()}
        own = [words[w] @ sums[t] for t, text in TOPICS.items() for w in text.split()]
        other = [words[w] @ sums[s] for t, text in TOPICS.items() for w in text.split()
                 for s in TOPICS if s != t]  # fmt: skip
        assert np.mean(own) > np.mean(other) + 3 * np.std(other)

    def test_weights_reach_the_last_step(self, make, xy):
        X, Y = xy
        weight = np.arange(120) % 3
        pipeline = make_pipeline(MaxAbsScaler(), make())
        pipeline.fit(X, Y, **{f"{LAST}__sample_weight": weight})
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
        direct = make().fit(pipeline[:-1].transform(X), Y, weight)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)

    def test_set_output_of_the_step_before(self, make, xy):
        X, Y = xy
        frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(40)])
        pipeline = make_pipeline(MaxAbsScaler(), make()).set_output(transform="pandas")
        pipeline.fit(frame, Y)
        assert pipeline[-1].feature_names_in_.tolist() == list(frame.columns)
        assert isinstance(pipeline.predict(frame), sp.csr_array)
        plain = make_pipeline(MaxAbsScaler(), make()).fit(X.toarray(), Y)
        np.testing.assert_array_equal(pipeline[-1].coef_, plain[-1].coef_)


class TestSearches:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_grid_search_with_sparse_labels_and_top_k_scores(self, n_jobs, make, xy):
        X, Y = xy
        pipeline = make_pipeline(MaxAbsScaler(), make(max_iter=10, decay=0.94))
        with joblib.parallel_config("threading"):
            search = GridSearchCV(
                pipeline, {f"{LAST}__learning_rate": [1e-12, 1.0]}, refit="PSP@3", cv=3,
                n_jobs=n_jobs, scoring=TopKScorer(ks=(1, 3)), error_score="raise",
            ).fit(X, Y)  # fmt: skip
        assert search.best_params_ == {f"{LAST}__learning_rate": 1.0}
        results = search.cv_results_
        assert results["mean_test_PSP@3"][1] > results["mean_test_PSP@3"][0]
        assert np.isfinite(results["mean_test_P@1"]).all()
        assert isinstance(search.predict(X), sp.csr_array)
        labels, _ = topk(search, X, 4)
        best = search.best_estimator_
        np.testing.assert_array_equal(labels, best[-1].predict_topk(best[:-1].transform(X), 4)[0])

    def test_cross_validation_with_a_sparse_indicator(self, make, xy):
        model = make(max_iter=20, decay=0.94, embedding_dim=20)
        scores = cross_val_score(model, *xy, cv=3, scoring="P@1")
        assert ((scores > 0.1) & (scores < 1)).all()  # by chance 0.09
        result = cross_validate(make(), *xy, cv=KFold(3), scoring=["P@1", "PSP@3"])
        assert np.isfinite(result["test_PSP@3"]).all()

    def test_cross_validation_of_scikit_learn(self, make, xy):
        X, _ = xy
        y = np.array(list("dbac"))[X.toarray()[:, :4].argmax(axis=1)]
        model = make(max_iter=20, decay=0.94)
        assert plain_cross_val_score(model, X, y, cv=3).mean() > 0.5

    def test_train_test_split(self, make, xy):
        X, X_test, Y, Y_test = train_test_split(*xy, random_state=0)
        model = make(max_iter=20, decay=0.94).fit(X, Y)
        assert 0.1 < model.score(X_test, Y_test) < 1


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
                assert type(model.predict(X)) is type(model.decision_function(X)) is container


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
            model.embed(frame.to_numpy())

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


@pytest.fixture(params=["sparse", "dense", "classes", "two classes", "no hidden layer"])
def fitted(request, make, xy):
    X, Y = xy
    y = {
        "sparse": Y,
        "dense": Y.toarray(),
        "classes": np.array(["b", "a", "c"])[X.toarray()[:, :3].argmax(axis=1)],
        "two classes": Y[:, [0]].toarray()[:, 0] > 0,
        "no hidden layer": Y,
    }[request.param]
    if request.param == "no hidden layer":
        return make(embedding_dim=None, top_k=3).fit(X.toarray(), y)
    return make(top_k=3, optimizer="adagrad").fit(X, y)


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


def assert_same_answers(a, b, X):
    for method in ANSWERS:
        p, q = getattr(a, method)(X), getattr(b, method)(X)
        if sp.issparse(p):
            assert type(p) is type(q)
            p, q = p.toarray(), q.toarray()
        np.testing.assert_array_equal(p, q)
    np.testing.assert_array_equal(a.predict_topk(X, exact=False), b.predict_topk(X, exact=False))
    for name in ("coef_", "feature_embedding_", "fit_report_", "label_counts_", "threshold_"):
        np.testing.assert_array_equal(value_of(a, name), value_of(b, name))
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

    def test_a_file_holds_the_weights_and_what_training_goes_on_from(self, make, xy):
        """Not the index of a search."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 400))
        for optimizer, average, copies in (
            ("sgd", False, 1), ("adagrad", False, 2), ("sgd", True, 2), ("adagrad", True, 3)
        ):  # fmt: skip
            parameters = {"optimizer": optimizer, "average": average, "max_iter": 1}
            model = make(embedding_dim=None, **parameters).fit(X, np.arange(30))
            model.predict_topk(X, exact=False)
            size = len(pickle.dumps(model))
            weights = copies * 30 * 400 * 8
            assert weights < size < weights + 20_000

    def test_deep_copies(self, fitted, xy):
        assert_same_answers(copy.deepcopy(fitted), fitted, xy[0])
        before = fitted.coef_.copy()
        other = copy.deepcopy(fitted).partial_fit(xy[0], fitted.predict(xy[0]))
        assert other.n_iter_ == fitted.n_iter_ + 1
        assert (other.coef_ != fitted.coef_).any()
        np.testing.assert_array_equal(fitted.coef_, before)

    def test_a_newer_format_is_refused(self, fitted):
        state = {**fitted.__getstate__(), "_sklearn_xc_format": 99, "_sklearn_xc_version": "7.0"}
        with pytest.raises(ValueError, match=r"sklearn_xc 7\.0 in state format 99.*Upgrade it"):
            type(fitted).__new__(type(fitted)).__setstate__(state)


class TestParameters:
    def test_clone_copies_parameters_but_nothing_fitted(self, fitted):
        other = clone(fitted)
        assert repr(other.get_params()) == repr(fitted.get_params())
        assert not [name for name in vars(other) if name.endswith("_")]
        assert set(vars(other)) == set(vars(DecompMIPSClassifier()))

    def test_defaults(self):
        model = DecompMIPSClassifier()
        assert (model.loss, model.gradient, model.average) == ("margin", "decomp_mips", True)
        assert (model.learning_rate, model.batch_size, model.max_iter) == (0.3, 10, 10)
        assert model.embedding_dim == "auto"
        for name in ("index", "n_candidates"):
            assert getattr(model, name) is None

    def test_what_none_stands_for(self, xy):
        X, Y = xy
        model = DecompMIPSClassifier(random_state=0, max_iter=1)
        assert model.fit(X, Y).n_candidates_ == 14
        model.fit(X.toarray(), np.arange(120))
        assert model.n_candidates_ == 64
        wide = sp.csr_array((120, 7000 - 14))
        assert model.set_params(embedding_dim=4).fit(X, sp.hstack([Y, wide])).n_candidates_ == 70

    def test_the_constructor_stores_and_does_not_check(self):
        assert DecompMIPSClassifier(loss="nonsense").loss == "nonsense"

    def test_everything_but_the_loss_is_by_keyword(self):
        assert DecompMIPSClassifier("triplet").loss == "triplet"
        with pytest.raises(TypeError, match="positional"):
            DecompMIPSClassifier("triplet", "exact")


class TestProgress:
    def test_silent(self, make, xy, capsys):
        make().fit(*xy)
        assert capsys.readouterr() == ("", "")

    def test_a_line_for_the_first_and_the_last_epoch(self, make, xy, capsys):
        model = make(verbose=1, gradient="mips", index="exact").fit(*xy)
        hidden, *lines = capsys.readouterr().out.splitlines()
        assert hidden == "[DecompMIPSClassifier] a hidden layer of 6: embedding_dim=6"
        assert lines[0].startswith("[DecompMIPSClassifier] epoch 1 of 3: loss ")
        assert f"epoch 3 of 3: loss {model.fit_report_['loss'][-1]:.4g}, recall@10 of" in lines[-1]
