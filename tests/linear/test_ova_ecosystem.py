"""Within pipelines, searches, pandas and cross-validation."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MultiLabelBinarizer

from sklearn_xc import OvALinearXC, topk
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.model_selection import cross_validate, learning_curve


@pytest.fixture
def xy(xy):
    """Drop the label that every instance has: it makes precision@1 perfect."""
    X, Y = xy
    return X, Y[:, [j for j in range(15) if j != 7]]


TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = [rng.choice(list(TOPICS), rng.integers(1, 3), replace=False) for _ in range(80)]
    documents = [
        " ".join(rng.choice(" ".join(TOPICS[label] for label in row).split(), 12)) for row in labels
    ]
    return documents, labels


@pytest.fixture(scope="module")
def text_model(texts):
    documents, labels = texts
    binarizer = MultiLabelBinarizer(sparse_output=True)
    Y = binarizer.fit_transform(labels)
    pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), OvALinearXC(prune=0))
    return pipeline.fit(documents, Y), binarizer, Y


def test_texts_with_a_float32_vectorizer(text_model, texts):
    documents, _ = texts
    pipeline, binarizer, Y = text_model
    assert pipeline[-1].coef_.dtype == np.float32
    assert type(pipeline.predict(documents)) is type(Y)
    assert binarizer.inverse_transform(pipeline.predict(["wave ship sail"])) == [("sea",)]
    assert pipeline.score(documents, Y) > 0.95
    labels, scores = topk(pipeline, ["tree leaf tram street", "cloud"], 2)
    assert set(binarizer.classes_[labels[0]]) == {"wood", "city"}
    assert binarizer.classes_[labels[1, 0]] == "sky"
    assert scores.dtype == np.float32


def test_explanation_with_the_words_of_a_vectorizer(text_model):
    pipeline, binarizer, _ = text_model
    names = pipeline[0].get_feature_names_out()
    sea = int(np.flatnonzero(binarizer.classes_ == "sea")[0])
    explanation = pipeline[-1].explain(
        pipeline[0].transform(["ship tree salt"]), sea, feature_names=names
    )
    positive = explanation.features[explanation.contributions > 0]
    assert set(positive) == {"ship", "salt"}


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_with_a_sparse_indicator_and_top_k_scores(n_jobs, xy):
    X, Y = xy
    pipeline = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0))
    search = GridSearchCV(
        pipeline, {"ovalinearxc__C": [1e-4, 1.0]}, scoring=TopKScorer(ks=(1, 3)), refit="PSP@3",
        cv=3, n_jobs=n_jobs,
    ).fit(X, Y)  # fmt: skip
    assert search.best_params_ == {"ovalinearxc__C": 1.0}
    results = search.cv_results_
    assert results["mean_test_PSP@3"][1] > results["mean_test_PSP@3"][0]
    assert np.isfinite(results["mean_test_P@1"]).all()
    assert isinstance(search.predict(X), sp.csr_array)
    labels, _ = topk(search, X, 4)
    direct = search.best_estimator_[-1].predict_topk(search.best_estimator_[:-1].transform(X), 4)
    np.testing.assert_array_equal(labels, direct[0])


def test_randomized_search_without_a_scorer(xy):
    search = RandomizedSearchCV(
        OvALinearXC(prune=0), {"init": ["msi", "zero", "bias"]}, n_iter=2, cv=2, random_state=0
    ).fit(*xy)
    assert 0.1 < search.best_score_ < 1


def test_cross_validation_with_a_sparse_indicator(xy):
    result = cross_validate(OvALinearXC(prune=0), *xy, cv=3, scoring=["P@1", "PSP@3"])
    assert ((result["test_P@1"] > 0.2) & (result["test_P@1"] < 1)).all()
    sizes, _, test = learning_curve(OvALinearXC(prune=0), *xy, cv=KFold(3), train_sizes=[20, 80])
    assert sizes.tolist() == [20, 80]
    assert np.isfinite(test).all()


def test_train_test_split(xy):
    X, X_test, Y, Y_test = train_test_split(*xy, random_state=0)
    assert 0.3 < OvALinearXC(prune=0).fit(X, Y).score(X_test, Y_test) < 1


class TestPandas:
    @pytest.fixture
    def frame(self, xy):
        return pd.DataFrame(xy[0].toarray(), columns=[f"f{j}" for j in range(40)])

    def test_feature_names(self, frame, xy):
        model = OvALinearXC(prune=0).fit(frame, xy[1])
        assert model.feature_names_in_.tolist() == list(frame.columns)
        plain = OvALinearXC(prune=0).fit(xy[0].toarray(), xy[1])
        np.testing.assert_array_equal(model.coef_.toarray(), plain.coef_.toarray())
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame.rename(columns={"f3": "other"}))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(frame.to_numpy())

    def test_a_frame_of_labels_is_an_indicator(self, frame, xy):
        Y = pd.DataFrame(xy[1].toarray().astype(int))
        predicted = OvALinearXC(prune=0).fit(frame, Y).predict(frame)
        assert isinstance(predicted, np.ndarray)
        assert predicted.dtype == np.int64
        assert predicted.shape == (120, 14)

    def test_a_sparse_frame(self, xy):
        X, Y = xy
        frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X))
        frame.columns = frame.columns.astype(str)
        model, expected = OvALinearXC(prune=0).fit(frame, Y), OvALinearXC(prune=0).fit(X, Y)
        np.testing.assert_array_equal(model.coef_.toarray(), expected.coef_.toarray())

    def test_named_weights(self, frame, xy):
        weight = pd.Series(np.arange(120) % 3, index=np.arange(120)[::-1])
        a = OvALinearXC(prune=0).fit(frame, xy[1], sample_weight=weight)
        b = OvALinearXC(prune=0).fit(frame, xy[1], sample_weight=weight.to_numpy())
        np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
