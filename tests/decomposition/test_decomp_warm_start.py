"""``warm_start=True``: training goes on from the last weights, matched by name."""

import numpy as np
import pandas as pd
import pytest

N = 60


def data(columns, classes, seed=0):
    """Return a data frame whose columns tell the classes, and these."""
    rng = np.random.default_rng(seed)
    y = np.array(list(classes), object)[np.arange(N) % len(classes)]
    X = pd.DataFrame(0.3 * rng.normal(size=(N, len(columns))), columns=list(columns))
    for label in classes:
        X.loc[y == label, label] += 1.0
    return X, y


@pytest.mark.parametrize("embedding_dim", [None, 6])
def test_the_same_weights_are_the_start(embedding_dim, make):
    X, y = data("abcd", "abc")
    model = make(embedding_dim=embedding_dim, warm_start=True).fit(X, y)
    coef = model.coef_
    model.set_params(learning_rate=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    assert model._epochs_done == 6


@pytest.mark.parametrize("embedding_dim", [None, 6])
def test_labels_and_features_are_matched_by_name(embedding_dim, make):
    model = make(embedding_dim=embedding_dim, warm_start=True).fit(*data("abcd", "abc"))
    before = {label: model.coef_[at] for at, label in enumerate(model.classes_)}
    features = model.feature_embedding_
    model.set_params(learning_rate=1e-12).fit(*data("dcbaz", "abz"))
    assert model.classes_.tolist() == ["a", "b", "c", "z"]  # classes of y stay
    if embedding_dim is None:
        expected = {label: np.append(w[::-1], 0) for label, w in before.items()}
    else:
        expected = before
        np.testing.assert_allclose(model.feature_embedding_[:4], features[::-1], atol=1e-9)
    for at, label in enumerate("abc"):
        np.testing.assert_allclose(model.coef_[at], expected[label], atol=1e-9)


def test_a_fit_on_more_gets_better(make):
    X, y = data("abcd", "abcd")
    model = make(embedding_dim=None, warm_start=True, max_iter=1).fit(X, y)
    losses = [model.fit(X, y).fit_report_["loss"][0] for _ in range(4)]
    assert losses == sorted(losses, reverse=True)


def test_other_columns_without_names_are_refused(make):
    X, y = data("abcd", "abc")
    model = make(warm_start=True).fit(X.to_numpy(), y)
    coef = model.coef_
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        model.fit(X.to_numpy()[:, :3], y)
    assert model.coef_ is coef


@pytest.mark.parametrize("changed", [{"embedding_dim": 3}, {"fit_intercept": False}], ids=str)
def test_weights_of_another_shape_are_refused(changed, make):
    X, y = data("abcd", "abc")
    model = make(warm_start=True).fit(X, y).set_params(**changed)
    with pytest.raises(ValueError, match="does not fit the weights of the last fit"):
        model.fit(X, y)
