"""Candidates without true labels, against sets."""

import numpy as np

from sklearn_xc.embedding.kernels.negatives import drop_positives


def test_the_first_wrong_candidates_are_kept():
    rng = np.random.default_rng(0)
    own = [np.sort(rng.choice(12, rng.integers(0, 9), replace=False)) for _ in range(30)]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in own])])
    labels = np.concatenate(own).astype(np.int32)
    candidates = np.array([rng.permutation(12)[:9] for _ in range(20)], np.int32)
    candidates[3:8, 5:] = -1
    rows = rng.permutation(30)[:20]
    out = np.full((30, 4), -7, np.int32)
    drop_positives(candidates, rows, indptr, labels, out)
    for row, found in zip(rows, candidates, strict=True):
        wrong = [label for label in found if label >= 0 and label not in own[row]][:4]
        assert out[row].tolist() == wrong + [-1] * (4 - len(wrong))
    others = np.setdiff1d(np.arange(30), rows)
    assert (out[others] == -7).all()
