"""Rows are found as in a dense reference; above all, none is overlooked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_points import (
    SEEDS,
    Points,
    in_pieces,
    make_rows,
    pooled,
    scales,
)

from sklearn_xc.one_vs_all.kernels import row_search
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled
from sklearn_xc.one_vs_all.problem import postings

NONE = np.empty(0, np.int32)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge"])
@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 30), m=st.integers(1, 6), seed=SEEDS)
def test_scores_and_losses_of_rows(loss, n, m, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    instances, X = make_rows(rng, n, d)
    points = Points(rng, m, d)
    lists = [rng.permutation(n)[: rng.integers(0, n + 1)] for _ in range(m)]
    weight, minus = rng.uniform(1, 2, n), rng.uniform(0.1, 3, m)
    indptr, rows = pooled(lists, np.int32)
    dense, found = np.zeros(d), np.full((2, len(rows)), np.nan)
    measure_rows = row_search.measure_rows_kernel(compiled(LOSSES[loss]()))
    measure_rows(*(instances.arrays, weight, minus, points.arrays, (indptr, rows), dense, *found))
    assert not dense.any()
    all_scores, off = points.scores(X)
    for c, one in enumerate(lists):
        scores, losses = found[:, indptr[c] : indptr[c + 1]]
        np.testing.assert_array_less(abs(scores - all_scores[one, c]), off[one, c])
        gap = np.maximum(1 + scores, 0)
        value = gap**2 if loss == "squared_hinge" else np.where(gap < 1, gap**2, 2 * gap - 1)
        np.testing.assert_allclose(losses, minus[c] * weight[one] * value, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=60)
@given(data=st.data(), n=st.integers(2, 40), d=st.integers(1, 20), seed=SEEDS)
def test_similar_rows(dtype, data, n, d, seed):
    """The positives, and the rows with the largest products."""
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, n, d, dtype, data.draw(scales(dtype)))
    positives = [np.sort(rng.permutation(n)[: rng.integers(0, 5)]) for _ in range(5)]
    features = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(5)]
    wanted = rng.integers(0, n + 1, 5)
    indptr, pool = pooled(features, np.int32)
    values = rng.uniform(0.1, 1, len(pool)).astype(np.float32)
    scores, out_indptr = np.zeros(n + 1, np.float32), np.empty(6, np.int64)
    out = row_search.list_similar_rows(
        postings(instances)[0],
        pooled(positives, np.int32),
        (indptr, pool, values),
        wanted,
        (scores, np.empty(n + 1, np.int32)),
        out_indptr,
        np.empty(1, np.int32),
    )
    assert not scores.any()
    found = in_pieces(out_indptr, out[: out_indptr[-1]])
    for m, (own, n_wanted, rows) in enumerate(zip(positives, wanted, found, strict=True)):
        np.testing.assert_array_equal(rows[: len(own)], own)
        listed = rows[len(own) :]
        products = X[:, features[m]] @ values[indptr[m] : indptr[m + 1]]
        products[own] = 0
        assert len(set(listed)) == len(listed)
        assert (products[listed] > 0).all()
        largest = max(products.max(), 1e-30)
        bin_, off = largest / 255.9, 1e-5 * largest
        unlisted = np.setdiff1d(np.flatnonzero(products), listed)
        if len(listed) > n_wanted:
            assert (products[listed] >= 255 * bin_ - off).all()
        if len(unlisted):
            most_left = products[unlisted].max()
            assert (products[listed] >= most_left - off).all()
            assert (products >= most_left - bin_ - off).sum() > n_wanted
