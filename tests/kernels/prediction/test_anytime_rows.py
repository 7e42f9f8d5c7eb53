"""Rows scored in slices and stopped early, against the dense product."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._data import read_only
from sklearn_xc.kernels.prediction.anytime import advance_row, finish_row, start_row
from sklearn_xc.kernels.prediction.row_scores import N_TIERS
from sklearn_xc.kernels.prediction.selection import N_LANES

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few, many = (settings(max_examples=n, deadline=None) for n in (25, 60))
seeds = st.integers(0, 2**32 - 1)
shapes = {"n_labels": st.integers(1, 40), "d": st.integers(1, 14), "seed": seeds}


def csr(dense):
    X = sp.csr_array(dense)
    arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    return tuple(map(read_only, arrays))


def make_row(rng, d, dtype):
    """Return three rows in CSR form, of which the second is meant; it may be empty."""
    dense = rng.integers(-2, 3, (3, d)).astype(dtype) * (rng.random((3, d)) < rng.choice([0.3, 1]))
    return csr(dense), dense[1]


def make_weights(rng, n_labels, d, dtype):
    """Return weights of few values, so that sums are exact and labels tie."""
    return rng.integers(-2, 3, (n_labels, d)).astype(dtype) * (rng.random(d) < 0.8)


@few
@given(**shapes)
def test_start_row(n_labels, d, seed):
    rng = np.random.default_rng(seed)
    (indptr, indices, _), _ = make_row(rng, d, np.float64)
    tier = rng.integers(0, rng.choice([2, 2 * N_TIERS]), d).astype(np.uint8)
    intercept, scores = rng.normal(size=n_labels), np.full(n_labels + 3, np.nan)
    own = np.arange(indptr[1], indptr[2])
    order, ends = np.full(len(own) + 1, -1), np.full(2 * N_TIERS + 1, -7)
    n_lists = start_row(indptr, indices, 1, read_only(tier), intercept, order, ends, scores)
    tiers = tier[indices[own]]
    assert order.tolist() == [*own[np.argsort(tiers, kind="stable")], -1]
    assert n_lists == (tiers < N_TIERS).sum()
    np.testing.assert_array_equal(scores, np.append(intercept, np.zeros(3)))


@each_dtype
@many
@given(
    **(shapes | {"d": st.integers(1, 40)}),
    slices=st.lists(st.sampled_from([0, 1, 3, 10, 20, 50]), min_size=1, max_size=6),
)
def test_advance_row(dtype, n_labels, d, seed, slices):
    """Posting lists one at a time, columns in fours, as long as there is work left."""
    rng = np.random.default_rng(seed)
    (indptr, indices, data), x = make_row(rng, d, dtype)
    W = make_weights(rng, n_labels, d, dtype)
    has_column = rng.random(d) < rng.choice([0.2, 0.8, 1.0])
    lists, n_columns = csr(np.where(has_column, 0, W).T), has_column.sum()
    slot = np.where(has_column, np.cumsum(has_column) - 1, -1).astype(np.int32)
    columns = np.zeros((n_columns, n_labels + 5), dtype)
    columns[:, :n_labels] = W.T[has_column]
    work_of = rng.integers(0, 5, d).astype(np.float64)
    own = np.arange(indptr[1], indptr[2])
    order = own[np.argsort(has_column[indices[own]], kind="stable")]
    n, n_lists = len(own), int((~has_column[indices[own]]).sum())
    scores, done = np.zeros(n_labels + 5, dtype), 0
    for work in map(float, slices):
        expected, left = done, work
        while expected < n and left > 0:
            step = 4 if n_lists <= expected <= n - 4 else 1
            left -= work_of[indices[order[expected : expected + step]]].sum()
            expected += step
        done = advance_row(
            indices, data, order, done, n, n_lists, *lists, read_only(slot), read_only(columns),
            None, work_of, work, scores,
        )  # fmt: skip
        assert done == expected
        taken = indices[order[:done]]
        np.testing.assert_array_equal(scores[:n_labels], W[:, taken] @ x[taken])
        assert (scores[n_labels:] == 0).all()


def slow_finish(x, indices, done, W, intercept, partial, k, n_ranked, n_candidates, rounding):
    """Return labels, scores, whether they are exact, and the bound on what is missed."""
    if done == len(indices):
        best = np.argsort(-partial, kind="stable")[:k]
        return best, partial[best], True, partial[best[-1]] if k < n_ranked else -np.inf
    # The most that each feature may add, and the largest magnitude of what it adds.
    products = np.vstack([W * x, 0 * x])[:, indices].astype(float)
    rise = products.max(axis=0)[done:].sum()
    magnitude = np.abs(intercept[intercept > -np.inf]).max(initial=0.0)
    magnitude += np.abs(products).max(axis=0).sum()
    slack = 2 * (len(indices) + 2) * rounding * magnitude
    candidates = np.sort(np.argsort(-partial, kind="stable")[:n_candidates])
    missed = -np.inf
    if n_candidates < n_ranked:
        missed = partial[candidates].min() + rise + slack
    full = (W @ x + intercept)[candidates]
    order = np.argsort(-full, kind="stable")
    candidates, full = candidates[order], full[order]
    if k < n_candidates:
        missed = max(missed, full[k] + slack)
    exact = (-np.diff(full[:k]) > 2 * slack).all() and full[k - 1] - slack > missed
    return candidates[:k], full[:k], exact, missed


@each_dtype
@many
@given(
    **shapes, spread=st.sampled_from([1, 3, 200]), share=st.sampled_from([0.0, 0.2, 0.9]),
    coarse=st.sampled_from([0.0, 0.01]),
)  # fmt: skip
def test_finish_row(dtype, n_labels, d, seed, spread, share, coarse):
    """At any feature, by any number of candidates; some labels, but not all, come last."""
    rng = np.random.default_rng(seed)
    (indptr, indices, data), x = make_row(rng, d, dtype)
    W = make_weights(rng, n_labels, d, dtype)
    intercept = rng.integers(-spread, spread + 1, n_labels).astype(dtype)
    intercept[rng.permutation(n_labels)[: int(share * n_labels)]] = -np.inf
    order = rng.permutation(np.arange(indptr[1], indptr[2]))
    own, done = indices[order], int(rng.integers(len(order) + 1))
    partial = intercept + W[:, own[:done]] @ x[own[:done]]
    n_ranked = int((intercept > -np.inf).sum())
    n_candidates = int(rng.choice([rng.integers(1, n_ranked + 1), n_ranked]))
    k, rounding = int(rng.integers(1, n_candidates + 1)), float(max(coarse, np.finfo(dtype).eps))
    largest = np.abs(intercept).max(where=intercept > -np.inf, initial=0.0)
    row, labels, best = np.zeros(d, dtype), np.full(k + 1, -1), np.full(k + 1, np.nan, dtype)
    exact, bound = finish_row(
        indices, data, order, done, len(order), *csr(W), read_only(intercept),
        W.max(axis=0, initial=0), W.min(axis=0, initial=0), float(largest), rounding, k, n_ranked,
        np.append(partial, np.full(3, np.inf, dtype)), row, np.empty(n_candidates, np.int64),
        np.empty(n_candidates, dtype), np.empty(N_LANES, dtype), labels, best,
    )  # fmt: skip
    expected = slow_finish(x, own, done, W, intercept, partial, k, n_ranked, n_candidates, rounding)
    np.testing.assert_array_equal(labels, [*expected[0], -1])
    np.testing.assert_array_equal(best, [*expected[1], np.nan])
    assert exact == expected[2]
    assert bound == pytest.approx(expected[3], rel=1e-12)
    assert (row == 0).all()
    # What is said of all labels is true.
    scores = W @ x + intercept
    assert np.delete(scores, labels[:k]).max(initial=-np.inf) <= bound
    if exact:
        np.testing.assert_array_equal(labels[:k], np.argsort(-scores, kind="stable")[:k])
