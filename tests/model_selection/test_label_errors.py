"""Planted label errors are found, for names, classes and indicators."""

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_xc import OvALinearXC, TextClassifierXC
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.model_selection import find_label_errors

X, Y = make_xc_classification(
    n_samples=450, n_features=300, n_labels=20, random_state=0, return_X_y=True
)
SEEN = np.random.default_rng(0).choice(np.flatnonzero(np.diff(sp.csr_array(Y).indptr)), 20, False)


def test_planted_pairs_come_before_most_others_and_all_given_are_listed_once():
    spoilt, wrong, lost = sp.lil_array(Y), [], []
    for row in SEEN.tolist():
        label = next(c for c in (7 * row + np.arange(20)) % 20 if not spoilt[row, c])
        lost.append((row, spoilt.rows[row][0]))
        wrong.append((row, int(label)))
        spoilt[lost[-1]], spoilt[wrong[-1]] = 0, 1
    spoilt = sp.csr_array(spoilt)
    found = find_label_errors(OvALinearXC(), X, spoilt, random_state=0)
    pairs = {}
    for kind, planted in (("given", wrong), ("missing", lost)):
        some = found.kind == kind
        pairs[kind] = list(zip(found.row[some].tolist(), found.label[some].tolist(), strict=True))
        n = len(pairs[kind])
        places = [pairs[kind].index(pair) / n for pair in planted if pair in pairs[kind]]
        assert np.median(places) < 0.3  # by chance, 0.5
        assert (np.diff(found.score[some]) <= 0).all()
    assert (found.kind[:4] == ["given", "missing", "given", "missing"]).all()
    given = list(zip(*(one.tolist() for one in spoilt.nonzero()), strict=True))
    assert sorted(pairs["given"]) == sorted(given)
    assert not set(pairs["missing"]) & set(given)


def test_names_and_classes():
    texts, y = ["soup broth", "bread dough", "ale hops"] * 40, ["soup", "bread", "ale"] * 40
    y[0] = "ale"
    tagger = TextClassifierXC(CountVectorizer(), OvALinearXC())
    found = find_label_errors(tagger, texts, [[one] for one in y], random_state=0)
    counts = CountVectorizer().fit_transform(texts)
    by_class = find_label_errors(OvALinearXC(), counts, np.array(y), random_state=0)
    for one in (found, by_class):
        first = {kind: np.flatnonzero(one.kind == kind)[0] for kind in ("given", "missing")}
        assert (one.row[first["given"]], one.label[first["given"]]) == (0, "ale")
        assert (one.row[first["missing"]], one.label[first["missing"]]) == (0, "soup")
