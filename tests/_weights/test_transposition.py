"""Weights in files by feature: as those in memory, whatever the size of the pieces."""

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from sklearn_xc import OvALinearXC, load
from sklearn_xc._parallel.memory import empty_in_file, is_in_file
from sklearn_xc._weights import by_feature
from sklearn_xc._weights.by_feature import arrange_by_feature
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.one_vs_all import training


def in_files(coef):
    """Return weights whose arrays are in unnamed files."""
    found = sp.csr_array(coef.shape, dtype=coef.dtype)
    for name in ("data", "indices"):
        array = getattr(coef, name)
        setattr(found, name, empty_in_file(len(array), array.dtype, "it"))
        getattr(found, name)[:] = array
    found.indptr = coef.indptr
    return found


def _in_files(size, dtype):
    return empty_in_file(size, dtype, "OvALinearXC")


@given(
    n_labels=st.sampled_from([1, 3, 40, 300]),
    d=st.integers(1, 30),
    share=st.floats(0, 1),
    at_a_time=st.integers(1, 500),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
@example(n_labels=300, d=5, share=0.25, at_a_time=7, dtype=np.float32, seed=0)
@example(n_labels=300, d=5, share=1.0, at_a_time=1, dtype=np.float64, seed=0)
def test_from_file_to_file(n_labels, d, share, at_a_time, dtype, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_labels, d)) * (rng.random((n_labels, d)) < share * rng.random(d))
    coef = sp.csr_array(W.astype(dtype))
    expected = arrange_by_feature(coef)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CHUNK_WEIGHTS", "_CHUNK_COPIED"):
            patch.setattr(by_feature, name, at_a_time)
        found = arrange_by_feature(in_files(coef))
    for field in fields(expected):
        array, other = np.array(getattr(found, field.name)), np.array(getattr(expected, field.name))
        np.testing.assert_array_equal(array, other, field.name)
        assert (array.dtype, array.flags.c_contiguous) == (other.dtype, other.flags.c_contiguous)
        if field.name in ("labels", "values", "columns") and array.size:
            assert is_in_file(getattr(found, field.name)), field.name


def test_weights_of_OvALinearXC_are_saved_from_files(tmp_path, monkeypatch):
    X, Y = make_xc_classification(300, 200, 60, random_state=0, return_X_y=True)
    plain = OvALinearXC().fit(X, Y)
    plain.save(tmp_path / "plain")
    monkeypatch.setattr(training, "allocator", lambda in_files, who: _in_files)
    monkeypatch.setattr(by_feature, "CHUNK_WEIGHTS", 100)
    model = OvALinearXC().fit(X, Y)
    assert is_in_file(model.coef_.data)
    assert is_in_file(model._weights.by_feature.values)
    assert not is_in_file(plain.coef_.data)
    model.save(tmp_path / "from-files")
    expected = plain.predict_topk(X)
    for one in (model, load(tmp_path / "from-files")):
        for array, other in zip(one.predict_topk(X), expected, strict=True):
            np.testing.assert_array_equal(array, other)
