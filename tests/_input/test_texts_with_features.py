"""Texts and rows of features as one X: what is held, how rows are chosen, what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from sklearn_xc import LabelFeatures, OvALinearXC, TextsWithFeatures
from sklearn_xc._state.values import Reader, Writer

TEXTS = ["a red apple", "", "a fast car", "a pear", "an old ship"]
rng = np.random.default_rng(0)
DENSE = rng.random((5, 3)) * (rng.random((5, 3)) < 0.6) + np.eye(5, 3)
KINDS = {
    "csr_array": sp.csr_array,
    "coo": sp.coo_array,
    "dense": np.asarray,
    "lists": lambda values: values.tolist(),
    "frame": lambda values: pd.DataFrame(values, columns=["x", "y", "z"]),
}


def values_of(pair):
    features = pair.features
    return features.toarray() if sp.issparse(features) else np.asarray(features)


def pair_of(kind):
    return TextsWithFeatures(TEXTS, KINDS[kind](DENSE))


@pytest.fixture
def pair():
    return pair_of("csr_array")


class TestContent:
    @pytest.mark.parametrize("kind", KINDS)
    def test_shape_and_values(self, kind):
        pair = pair_of(kind)
        assert pair.shape == (5, 3)
        assert (len(pair), pair.ndim) == (5, 2)
        assert all(type(n) is int for n in pair.shape)
        assert pair.texts.tolist() == TEXTS
        np.testing.assert_allclose(values_of(pair), DENSE, rtol=1e-6)

    def test_of_labels(self, pair):
        held = LabelFeatures(pair, classes=list("edcba"))
        assert not held.is_text
        assert held.n_labels == 5
        assert repr(held).startswith("LabelFeatures(5 label texts with 3 ")
        assert repr(held).endswith("features of classes)")
        some = held.of_classes(np.array(["a", "d"]))
        assert some.features.texts.tolist() == [TEXTS[4], TEXTS[1]]
        np.testing.assert_allclose(values_of(some.features), DENSE[[4, 1]], rtol=1e-6)
        assert LabelFeatures(pair).of_classes(np.arange(5)).features is pair

    @pytest.mark.parametrize("kind", ["csr_array", "dense"])
    def test_saved(self, kind):
        pair = pair_of(kind)
        writer = Writer()
        node = writer.json_of(LabelFeatures(pair), "")
        again = Reader(writer.arrays).value_of(node)
        np.testing.assert_array_equal(values_of(again.features), values_of(pair))


CHOICES = {
    "positions": np.array([3, 0, 0]),
    "negative": np.array([-1, 1]),
    "list": [2, 1],
    "empty list": [],
    "mask": np.array([True, False, True, True, False]),
    "slice": slice(1, 4),
    "backwards": slice(None, None, -1),
}


class TestRows:
    @pytest.mark.parametrize("kind", ["csr_array", "frame"])
    def test_splitters(self, kind):
        pair = pair_of(kind)
        for train, test in KFold(2).split(pair):
            assert len(pair[train]) + len(pair[test]) == 5

    @pytest.mark.parametrize(
        ("name", "kind"),
        [*((name, "csr_array") for name in CHOICES), ("mask", "dense"), ("negative", "frame")],
    )
    def test_as_of_an_array(self, name, kind):
        pair, key = pair_of(kind), CHOICES[name]
        at = np.arange(5)[key]
        for chosen in (pair[key], pair[key, ...]):
            assert type(chosen) is TextsWithFeatures
            assert chosen.texts.tolist() == [TEXTS[i] for i in at]
            assert chosen.shape == (len(at), 3)
            np.testing.assert_array_equal(values_of(chosen), values_of(pair)[at])
            assert type(chosen.features) is type(pair.features)

    @pytest.mark.parametrize("key", [0, np.int64(2), [[0], [1]]])
    def test_there_are_no_single_rows(self, pair, key):
        with pytest.raises(TypeError, match=r"a slice, a mask or a list of positions. Got .*row 3"):
            pair[key]

    @pytest.mark.parametrize("key", [[5], [True] * 4, [0.5], "a"])
    def test_out_of_range(self, pair, key):
        with pytest.raises(IndexError):
            pair[key]

    def test_it_is_no_sequence_and_no_array(self, pair):
        with pytest.raises(TypeError, match="not iterable"):
            list(pair)
        for convert in (np.asarray, np.array, lambda x: np.asarray(x, np.float64)):
            with pytest.raises(TypeError, match=r"texts and rows of features, no matrix: pass the"):
                convert(pair)
        with pytest.raises(TypeError, match="no matrix: pass the features alone"):
            OvALinearXC().fit(pair, [0, 1, 0, 1, 1])


class TestErrors:
    @pytest.mark.parametrize(
        ("texts", "says"),
        [
            (TEXTS[:4], "features must have a row for each of the 4 texts. Got 5 rows"),
            ("text", "texts must be a sequence of texts. Got str"),
            (DENSE, r"texts must be a sequence of texts. Got ndarray of shape \(5, 3\)"),
            ([*TEXTS[:4], None], "texts must be a sequence of texts. Got None at position 4"),
            ([b"bytes", *TEXTS[1:]], "texts must be a sequence of texts. Got b'bytes' at position"),
        ],
    )
    def test_texts(self, texts, says):
        with pytest.raises(ValueError, match=f"^TextsWithFeatures: {says}"):
            TextsWithFeatures(texts, DENSE)

    @pytest.mark.parametrize(
        ("features", "error", "says"),
        [
            (DENSE[0], ValueError, r"a row for each text. Got ndarray of shape \(3,\)"),
            ([[1, 2], [3]], ValueError, "a matrix with a row for each text. Got list"),
            (np.ma.masked_array(DENSE), TypeError, "is a masked array"),
            (np.zeros((5, 2), "M8[s]"), ValueError, "holds dates or times"),
            (DENSE[:3], ValueError, "a row for each of the 5 texts. Got 3 rows"),
        ],
    )
    def test_features(self, features, error, says):
        with pytest.raises(error, match=f"^TextsWithFeatures: features .*{says}"):
            TextsWithFeatures(TEXTS, features)
