"""Similar labels and instances, against all cosines."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import (
    DecompMIPSClassifier,
    NGAMEEmbeddingXC,
    OvALinearXC,
    SoftmaxUMax,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
)
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.inspection import similar_instances, similar_labels
from sklearn_xc.weights.label_weights import LabelWeights

NAMES = list("abcdefgh")


def data():
    """Return X (50, 12), sparse, without features in row 3, and Y (50, 8), nothing of label 5."""
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 12), density=0.3, random_state=rng, format="lil")
    X[3] = 0
    Y = (rng.random((50, 8)) < 0.3).astype(int)
    Y[np.arange(50), np.arange(50) % 8] = 1
    Y[:, 5] = 0
    Y[:, 6] = Y[:, 1]
    return X.tocsr(), Y


X, Y = data()
MODELS = {
    "ova": OvALinearXC(label_names=NAMES),
    "softmax": SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0, label_names=NAMES),
    "decomposition": DecompMIPSClassifier(
        embedding_dim=4, max_iter=2, learning_rate=0.3, random_state=0, label_names=NAMES
    ),
    "ngame": NGAMEEmbeddingXC(
        embedding_dim=4, max_iter=1, classifier_max_iter=1, batch_size=8, random_state=0,
        label_names=NAMES,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        return MODELS[request.param].fit(X, Y)


def expected_labels(vectors, at, left_out=(5,)):
    """Return names and cosines of all other labels, best first."""
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    cosines = cosine_similarity(vectors.astype(np.float64))[at]
    others = [i for i in range(len(cosines)) if i != at and i not in left_out]
    others.sort(key=lambda i: (-cosines[i], i))
    return [NAMES[i] for i in others], cosines[others]


@pytest.mark.parametrize("piece", [1, 2**22])
def test_labels(model, piece, monkeypatch):
    monkeypatch.setattr("sklearn_xc.inspection.similarity._PIECE", piece)
    vectors = model.label_embeddings_ if hasattr(model, "embed_labels") else model.coef_
    for at in (0, 1, 7):
        found = similar_labels(model, NAMES[at], 20)
        names, cosines = expected_labels(vectors, at)
        assert [name for name, _ in found] == names
        np.testing.assert_allclose([one for _, one in found], cosines, rtol=1e-5, atol=1e-7)
        assert similar_labels(model, NAMES[at], 3) == found[:3]


def test_a_label_on_the_same_rows_is_the_same_to_linear_models():
    model = OvALinearXC(label_names=NAMES[:5]).fit(X, Y[:, [0, 1, 2, 6, 7]])
    [(name, cosine)] = similar_labels(model, "b", 1)
    assert name == "d"
    assert cosine == pytest.approx(1.0)


def test_labels_of_which_nothing_is_known(model):
    with pytest.raises(ValueError, match=r"knows something of. Got 'f', which has no training"):
        similar_labels(model, "f")
    for strange in ("z", True, ["a"], None):
        with pytest.raises(ValueError, match=r"label must be one of the 8 in classes_"):
            similar_labels(model, strange)
    with pytest.raises(ValueError, match=r"Got ' B'\. Did you mean 'b'\?$"):
        similar_labels(model, " B")
    for k in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="similar_labels: k must be an integer"):
            similar_labels(model, "a", k)


def test_weights_that_are_all_pruned():
    model = OvALinearXC(prune=0.0).fit(X, Y[:, [0, 1, 2]])
    coef = model.coef_.copy().tolil()
    coef[1] = 0
    model._weights = LabelWeights(coef.tocsr(), model.intercept_)
    assert similar_labels(model, 1) == []
    assert [name for name, _ in similar_labels(model, 0)] == [2]


@pytest.mark.parametrize("piece", [1, 2**22])
def test_instances(model, piece, monkeypatch):
    monkeypatch.setattr("sklearn_xc.inspection.similarity._PIECE", piece)
    vectors = model.embed(X) if hasattr(model, "embed") else X.toarray()
    cosines = cosine_similarity(vectors[[3, 7, 9]].astype(np.float64), vectors)
    known = np.flatnonzero(vectors.any(axis=1))
    rows, similarities = similar_instances(model, X, X[[3, 7, 9]], 60)
    assert rows.shape == similarities.shape == (3, 60)
    assert (rows[0] == -1).all()
    for i in (1, 2):
        found = rows[i][rows[i] >= 0]
        np.testing.assert_array_equal(np.sort(found), known)
        expected = np.sort(cosines[i][known])[::-1]
        n = len(known)
        np.testing.assert_allclose(similarities[i, :n], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(cosines[i][found], expected, rtol=1e-5, atol=1e-6)
        assert np.isneginf(similarities[i, n:]).all()
    assert similarities[1:, 0] == pytest.approx(1.0, abs=1e-6)
    few, _ = similar_instances(model, X, X[[3, 7, 9]], 4)
    np.testing.assert_array_equal(few, rows[:, :4])


def test_equal_rows_go_by_their_place():
    doubled = sp.vstack([X[:4], X[:4]], format="csr")
    model = OvALinearXC().fit(X, Y[:, :3])
    rows, _ = similar_instances(model, doubled, X[[1]], 2)
    assert rows.tolist() == [[1, 5]]


def test_inside_pipelines_searches_wrappers_and_stacks():
    bare = OvALinearXC(label_names=NAMES[:5]).fit(X, Y[:, :5])
    expected = similar_labels(bare, "c")
    of_rows = similar_instances(bare, X, X[:4], 3)
    named = OvALinearXC(label_names=NAMES[:5])
    softmax = SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0)
    members = [("knn", KNeighborsClassifier()), ("ova", named), ("softmax", softmax)]
    for around in (
        make_pipeline(MaxAbsScaler(), named).set_params(maxabsscaler="passthrough"),
        GridSearchCV(named, {"C": [0.5]}, cv=2),
        ThresholdTuner(named, cv=0.3, random_state=0),
        make_pipeline(ThresholdTuner(named, cv=0.3, random_state=0)),
        StackingXC(members, cv=0.3, random_state=0, label_names=NAMES[:5]),
    ):
        around.fit(X, Y[:, :5])
        found = similar_labels(around, "c")
        assert [name for name, _ in found] == [name for name, _ in expected]
        assert dict(found) == pytest.approx(dict(expected))
        for one, other in zip(similar_instances(around, X, X[:4], 3), of_rows, strict=True):
            np.testing.assert_allclose(one, other)
    around = make_pipeline(MaxAbsScaler(), named).fit(X, Y[:, :5])
    scaled = MaxAbsScaler().fit_transform(X).toarray()
    rows, _ = similar_instances(around, X, X[[7]], 50)
    order = np.argsort(-cosine_similarity(scaled[[7]], scaled)[0], kind="stable")
    np.testing.assert_array_equal(rows[0, :10], order[:10])


def test_texts():
    texts = ["clear soup stock", "soup of bones", "stock of bones", "rye bread", "wheat bread"]
    tags = [["soup", "stock"], ["soup"], ["stock"], ["bread", "rye"], ["bread"]]
    tagger = TextClassifierXC(classifier=OvALinearXC()).fit(texts, tags)
    assert similar_labels(tagger, "rye", 1)[0][0] == "bread"
    rows, similarities = similar_instances(tagger, texts, ["rye bread", "unheard"], 2)
    assert rows.tolist() == [[3, 4], [-1, -1]]
    assert similarities[0, 0] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="X must be a list of texts"):
        similar_instances(tagger, texts, "rye bread")


def test_two_classes_and_foreign_models():
    y = np.array(["no", "yes"])[Y[:, 0]]
    for model in (OvALinearXC(), LogisticRegression()):
        [(name, cosine)] = similar_labels(model.fit(X, y), "yes")
        assert (name, cosine) == ("no", pytest.approx(-1.0))
    knn = KNeighborsClassifier().fit(X, y)
    with pytest.raises(TypeError, match=r"a vector for each label.* Got KNeighborsClassifier"):
        similar_labels(knn, "yes")
    rows, _ = similar_instances(knn, X, X[[7]], 1)
    assert rows.tolist() == [[7]]
    with pytest.raises(ValueError, match=r"the same features. Got 12 and 11"):
        similar_instances(knn, X, X[:, :11])
