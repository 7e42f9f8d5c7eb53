"""Within pipelines, searches, cross-validation, metadata routing, pandas and clones."""

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.model_selection import cross_val_score as plain_cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC, topk
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.model_selection import cross_val_score, cross_validate

TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}
LAST = "ngameembeddingxc"
ANSWERS = ("predict", "decision_function", "predict_topk", "embed")


@pytest.fixture(scope="module")
def texts():
    """Return documents, an indicator of their topics, and texts of the topics."""
    rng = np.random.default_rng(0)
    Y = sp.csr_array(np.eye(4, dtype=int)[np.arange(96) % 4])
    words = [text.split() for text in TOPICS.values()]
    made = [" ".join(rng.choice(words[j], 3, replace=False)) for j in np.arange(96) % 4]
    names = [f"{name} {text.split()[0]} {text.split()[1]}" for name, text in TOPICS.items()]
    return made, Y, names


@pytest.fixture(scope="module")
def vectorizer(texts):
    return FrozenEstimator(TfidfVectorizer().fit([*texts[0], *texts[2]]))


class TestPipelines:
    def test_texts_of_documents_and_labels(self, make, texts, vectorizer):
        made, Y, names = texts
        own = {"max_iter": 10}
        model = make(label_features=names, label_vectorizer=vectorizer, **own)
        pipeline = make_pipeline(vectorizer, model).fit(made, Y)
        assert pipeline.score(made, Y) > 0.9
        labels, _ = topk(pipeline, ["sail harbour", "leaf", "tram lamp", "bird star"], 2)
        assert labels[:, 0].tolist() == [0, 1, 2, 3]
        direct = make(label_features=vectorizer.transform(names), **own)
        direct.fit(vectorizer.transform(made), Y)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)

    def test_a_float32_vectorizer(self, make, texts):
        made, Y, names = texts
        vectorizer = TfidfVectorizer(dtype=np.float32).fit([*made, *names])
        model = make(label_features=names, label_vectorizer=FrozenEstimator(vectorizer))
        pipeline = make_pipeline(FrozenEstimator(vectorizer), model).fit(made, Y)
        assert pipeline[-1].coef_.dtype == np.float32
        assert pipeline.decision_function(made).dtype == np.float32

    def test_a_vectorizer_that_is_fitted_again(self, make, texts, vectorizer):
        """The words of the labels are then others: a message says so."""
        made, Y, names = texts
        model = make(label_features=names, label_vectorizer=vectorizer)
        with pytest.raises(ValueError, match="with the vectorizer that made X"):
            make_pipeline(TfidfVectorizer(), model).fit(made, Y)

    def test_label_features_for_the_last_step(self, make, documents):
        X, Y, Z = documents
        pipeline = make_pipeline(MaxAbsScaler(), make())
        pipeline.fit(X, Y, **{f"{LAST}__label_features": Z})
        direct = make(label_features=Z).fit(pipeline[:-1].transform(X), Y)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)

    def test_set_output_of_the_step_before(self, make, documents):
        X, Y, _ = documents
        frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(80)])
        pipeline = make_pipeline(MaxAbsScaler(), make()).set_output(transform="pandas")
        pipeline.fit(frame, Y)
        assert pipeline[-1].feature_names_in_.tolist() == list(frame.columns)
        assert isinstance(pipeline.predict(frame), sp.csr_array)


class TestRouting:
    def test_label_features_reach_fit(self, make, documents):
        X, Y, Z = documents
        with sklearn.config_context(enable_metadata_routing=True):
            model = make().set_fit_request(label_features=True)
            pipeline = make_pipeline(MaxAbsScaler(), model).fit(X, Y, label_features=Z)
            with pytest.raises(ValueError, match=r"label_features.* are passed but"):
                make_pipeline(MaxAbsScaler(), make()).fit(X, Y, label_features=Z)
        direct = make(label_features=Z).fit(pipeline[:-1].transform(X), Y)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)

    def test_a_holder_stays_whole_in_a_search(self, make, square):
        """There are as many labels as instances."""
        X, Y, Z = square
        with sklearn.config_context(enable_metadata_routing=True):
            model = make().set_fit_request(label_features=True)
            pipeline = make_pipeline(MaxAbsScaler(), model)
            search = GridSearchCV(
                pipeline, {f"{LAST}__margin": [0.2, 0.3]}, cv=3, error_score="raise"
            )
            search.fit(X, Y, label_features=LabelFeatures(Z))
            assert np.isfinite(search.cv_results_["mean_test_score"]).all()
            with pytest.raises(ValueError, match=r"Cross-validation slices .*LabelFeatures\("):
                search.fit(X, Y, label_features=Z)

    def test_weights_of_a_score(self, make, documents):
        X, Y, Z = documents
        weight = np.arange(160.0) % 3
        with sklearn.config_context(enable_metadata_routing=True):
            model = make(label_features=Z).set_score_request(sample_weight=True)
            search = GridSearchCV(
                make_pipeline(MaxAbsScaler(), model), {f"{LAST}__margin": [0.3]}, cv=2,
                error_score="raise",
            ).fit(X, Y)  # fmt: skip
            inner = search.best_estimator_
            expected = inner[-1].score(inner[:-1].transform(X), Y, sample_weight=weight)
            assert inner.score(X, Y, sample_weight=weight) == expected
        hits = Y.toarray()[np.arange(160), topk(inner, X, 1)[0][:, 0]]
        assert expected == pytest.approx(np.average(hits, weights=weight))


@pytest.fixture(scope="module")
def square(make_documents):
    """Return 60 documents with 60 labels, most of them rare."""
    X, Y, Z = make_documents(n=60, n_topics=15, labels_of_topic=4, n_more=4)
    assert Y.shape == (60, 60)
    return X, Y, Z


class TestSearches:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_grid_search_with_sparse_labels_and_top_k_scores(self, n_jobs, make, documents):
        X, Y, Z = documents
        model = make(label_features=LabelFeatures(Z), max_iter=5)
        with joblib.parallel_config("threading"):
            search = GridSearchCV(
                make_pipeline(MaxAbsScaler(), model),
                {f"{LAST}__learning_rate": [1e-12, 0.02]}, refit="P@1", cv=3,
                n_jobs=n_jobs, scoring=TopKScorer(ks=(1, 3)), error_score="raise",
            ).fit(X, Y)  # fmt: skip
        results = search.cv_results_
        assert np.isfinite(results["mean_test_P@3"]).all()
        assert results["mean_test_P@1"].max() > 0.7
        best = search.best_estimator_
        assert best[-1].label_features is model.label_features
        labels, _ = topk(search, X, 4)
        np.testing.assert_array_equal(labels, best[-1].predict_topk(best[:-1].transform(X), 4)[0])

    def test_label_texts_and_a_frozen_vectorizer(self, make, texts, vectorizer):
        made, Y, names = texts
        holder = LabelFeatures(names)
        model = make(label_features=holder, label_vectorizer=vectorizer, max_iter=10)
        search = GridSearchCV(
            make_pipeline(vectorizer, model), {f"{LAST}__sampler": ["ngame", "in_batch"]}, cv=3,
            scoring=TopKScorer(ks=(1,)), refit="P@1", error_score="raise",
        ).fit(made, Y)  # fmt: skip
        assert search.best_score_ > 0.9

    def test_parameters_of_the_encoder(self, make, documents):
        X, Y, Z = documents
        model = make(encoder=BagOfEmbeddings(), label_features=LabelFeatures(Z))
        search = GridSearchCV(
            model, {"encoder__residual": [True, False]}, cv=2, error_score="raise"
        ).fit(X, Y)
        has_block = search.best_estimator_.encoder_.block_ is not None
        assert has_block == search.best_params_["encoder__residual"]
        assert vars(model.encoder) == {"residual": True, "dropout": 0.0}


class TestCrossValidation:
    def test_as_many_labels_as_instances(self, make, square):
        X, Y, Z = square
        model = make(label_features=LabelFeatures(Z))
        scores = cross_val_score(model, X, Y, cv=3, scoring="P@1")
        assert ((scores > 0.2) & (scores <= 1)).all()  # by chance 0.04
        result = cross_validate(model, X, Y, cv=KFold(3), scoring=["P@1", "PSP@3"])
        assert np.isfinite(result["test_PSP@3"]).all()

    def test_label_features_in_the_constructor_are_not_sliced(self, make, square):
        """Only arguments of fit are."""
        X, Y, Z = square
        model = make(label_features=Z)
        assert np.isfinite(cross_val_score(model, X, Y, cv=3, scoring="P@1")).all()

    def test_of_scikit_learn(self, make, documents):
        y = np.array(list("dbacf"))[documents.Y.toarray().argmax(axis=1) // 4]
        assert plain_cross_val_score(make(max_iter=6), documents.X, y, cv=3).mean() > 0.8

    def test_train_test_split(self, make, documents):
        X, Y, Z = documents
        X, X_test, Y, Y_test = train_test_split(X, Y, random_state=0)
        model = make(label_features=Z, max_iter=6).fit(X, Y)
        assert model.score(X_test, Y_test) > 0.7


class TestPandas:
    @pytest.fixture
    def frame(self, documents):
        return pd.DataFrame(documents.X.toarray(), columns=[f"f{j}" for j in range(80)])

    def test_feature_names(self, frame, make, documents):
        model = make(label_features=documents.Z).fit(frame, documents.Y)
        assert model.feature_names_in_.tolist() == list(frame.columns)
        assert model.n_features_in_ == 80
        plain = make(label_features=documents.Z).fit(*documents[:2])
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        for method in ANSWERS:
            with pytest.raises(ValueError, match="feature names should match"):
                getattr(model, method)(frame.rename(columns={"f3": "other"}))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.embed(frame.to_numpy())

    def test_frames_of_labels_and_of_label_features(self, frame, make, documents):
        Y = pd.DataFrame(documents.Y.toarray().astype(int))
        Z = pd.DataFrame(documents.Z.toarray(), columns=frame.columns)
        model = make(label_features=Z).fit(frame, Y)
        assert model.predict(frame).dtype == np.int64
        plain = make(label_features=documents.Z).fit(*documents[:2])
        np.testing.assert_array_equal(model.coef_, plain.coef_)

    def test_a_series_of_label_texts(self, make, texts, vectorizer):
        made, Y, names = texts
        X = vectorizer.transform(made)
        a, b = (
            make(label_features=given, label_vectorizer=vectorizer).fit(X, Y)
            for given in (names, pd.Series(names, index=[7, 5, 3, 1]))
        )
        np.testing.assert_array_equal(a.coef_, b.coef_)

    def test_categories(self, frame, make):
        y = pd.Series(list("abcd") * 40, dtype="category")
        model = make().fit(frame, y)
        assert model.classes_.tolist() == ["a", "b", "c", "d"]
        assert set(model.predict(frame)) <= set("abcd")


class TestClones:
    def test_clone(self, make, documents):
        X, Y, Z = documents
        holder, encoder = LabelFeatures(Z), BagOfEmbeddings(residual=False)
        model = make(label_features=holder, encoder=encoder, margin=0.2).fit(X, Y)
        again = clone(model)
        assert not [name for name in vars(again) if name.endswith("_")]
        assert again.label_features is holder
        assert again.encoder is not encoder
        assert again.encoder.get_params() == {"residual": False, "dropout": 0.0}
        np.testing.assert_array_equal(again.fit(X, Y).coef_, model.coef_)

    def test_a_vectorizer_that_is_not_frozen_is_named(self, make, texts):
        made, Y, names = texts
        vectorizer = TfidfVectorizer().fit([*made, *names])
        model = clone(make(label_features=names, label_vectorizer=vectorizer))
        with pytest.raises(NotFittedError, match=r"frozen\.FrozenEstimator"):
            model.fit(vectorizer.transform(made), Y)

    def test_parameters_come_back(self):
        model = NGAMEEmbeddingXC()
        defaults = model.get_params(deep=False)
        assert NGAMEEmbeddingXC(**defaults).get_params() == defaults
        assert repr(model) == "NGAMEEmbeddingXC()"
