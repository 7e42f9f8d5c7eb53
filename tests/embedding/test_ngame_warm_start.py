"""A fit that starts at the encoder and the classifiers of the last one."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from text_models import label_texts, make_texts
from text_models import make as make_of_texts

from sklearn_xc.embedding.ngame import matched_places

NONE = {"max_iter": 0, "classifier_max_iter": 0}


@pytest.fixture
def model(make, documents):
    X, Y, Z = documents
    return make(label_features=Z, warm_start=True, validation_fraction=0.3).fit(X, Y)


def test_without_epochs_it_is_the_last_fit(model, documents):
    X, Y, _ = documents
    names = ("coef_", "label_embeddings_", "threshold_")
    before, answer = [getattr(model, name) for name in names], model.predict_topk(X, 5)
    model.set_params(**NONE).fit(X, Y)
    for name, value in zip(names, before, strict=True):
        np.testing.assert_array_equal(getattr(model, name), value)
    for found, expected in zip(model.predict_topk(X, 5), answer, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert model.n_iter_ == 0
    assert (model.set_params(warm_start=False).fit(X, Y).coef_ != before[0]).any()


def test_epochs_go_on_and_the_fusion_stays(model, documents, curve_of):
    X, Y, _ = documents
    last, loss, coef = model.fusion_, curve_of(model, "encoder")[0][0], model.coef_.copy()
    model.set_params(max_iter=1, classifier_max_iter=1).fit(X, Y)
    assert model.fusion_ is last
    assert curve_of(model, "encoder")[0][0] < 0.7 * loss
    assert (model.coef_ != coef).any()


def test_new_labels_and_features_by_name(make, documents):
    X, Y, Z = (part.toarray() for part in documents)
    names = np.array([f"w{j}" for j in range(X.shape[1])])
    labels = [f"l{j}" for j in range(20)]

    def frame(columns):
        return pd.DataFrame(X[:, columns], columns=names[columns])

    few = np.arange(79)
    model = make(label_features=Z[:15, few], label_names=labels[:15], warm_start=True)
    model.fit(frame(few), Y[:, :15])
    vectors, coef = model.encoder_.embeddings_, model.coef_
    order, places = np.r_[79, few[::-1]], np.random.default_rng(0).permutation(20)
    model.set_params(
        label_features=Z[places][:, order], label_names=[labels[j] for j in places], **NONE
    )
    model.fit(frame(order), Y[:, places])
    np.testing.assert_array_equal(model.encoder_.embeddings_[1:], vectors[::-1])
    known = places < 15
    np.testing.assert_array_equal(model.coef_[known], coef[places[known]])
    np.testing.assert_array_equal(model.coef_[~known], model.label_embeddings_[~known])


def test_texts(documents):
    texts, Y = make_texts()
    model = make_of_texts(warm_start=True).fit(texts, Y)
    coef = model.coef_
    y = sp.csr_array(sp.hstack([Y, sp.csr_array((len(texts), 1), dtype=int)]))
    model.set_params(label_features=[*label_texts(), "kayak"], label_names=[*"abcdefghi"])
    with pytest.raises(
        ValueError, match="y has 9 labels, the last fit had 8: warm_start matches them"
    ):
        model.fit(texts, y)
    model.set_params(label_features=label_texts(), label_names=None, **NONE).fit(texts, Y)
    np.testing.assert_array_equal(model.coef_, coef)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, Y, Z: (X[:, :79], Y, Z[:, :79]),
            "X has 79 features, but NGAMEEmbeddingXC is expecting 80",
        ),
        (
            lambda X, Y, Z: (X, Y[:, :19], Z[:19]),
            "NGAMEEmbeddingXC: y has 19 labels, the last fit had 20",
        ),
    ],
)
def test_what_cannot_be_matched(change, message, model, documents):
    X, Y, Z = change(*documents)
    coef = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(label_features=Z).fit(X, Y)
    assert model.coef_ is coef


def test_another_dimension_and_other_scores(model, documents):
    X, Y, _ = documents
    with pytest.raises(ValueError, match=r"BagOfEmbeddings and 12. Got BagOfEmbeddings and 7"):
        model.set_params(embedding_dim=7).fit(X, Y)
    model.set_params(embedding_dim=12, label_features=None)
    with pytest.raises(ValueError, match="warm_start must have label features if the last fit had"):
        model.fit(X, Y)


def test_matched_places():
    old, new = np.array(["a", "b", "c"]), np.array(["c", "d", "a"])
    assert matched_places(new, old, 3, 3, "x").tolist() == [2, -1, 0]
    assert matched_places(None, None, 2, 2, "x").tolist() == [0, 1]
    with pytest.raises(ValueError, match="x: warm_start matches them by name"):
        matched_places(new, None, 3, 3, "x")
