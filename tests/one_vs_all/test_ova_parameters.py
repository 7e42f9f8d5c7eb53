"""Start vectors and weights of labels that are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC


class TestParameters:
    @pytest.mark.parametrize("init", ["bias"])
    def test_a_start_that_needs_the_intercept_names_the_other_parameter(self, init, xy):
        with pytest.raises(ValueError, match=f"init='{init}' needs fit_intercept=True"):
            OvALinearXC(init=init, fit_intercept=False).fit(*xy)

    @pytest.mark.parametrize("shape", [(14, 40), (15, 39), (15, 42), (40, 15)])
    def test_start_vectors_of_a_wrong_shape(self, shape, xy):
        expected = (
            rf"\(15, 40\) or \(15, 41\) with intercepts. Got shape \({shape[0]}, {shape[1]}\)"
        )
        for make in (np.zeros, sp.csr_array):
            with pytest.raises(ValueError, match=f"init must have shape {expected}"):
                OvALinearXC(init=make(shape)).fit(*xy)

    @pytest.mark.parametrize(
        ("init", "message"),
        [
            (np.zeros(40), r"init must have shape .* Got shape \(40,\)"),
            (np.full((15, 40), "a"), r"init must be a name, .* Got ndarray of dtype <U1"),
            ([[1, 2], [3]], r"init is no array of shape \(15, 40\)"),
            ({"a": 1}, "init must be a name, .* Got dict of dtype object"),
            (np.zeros((15, 40), "M8[s]"), "init holds dates or times"),
            (sp.coo_array(np.zeros(40)), r"init: a sparse matrix of 2 dimensions was expected"),
        ],
        ids=str,
    )
    def test_start_vectors_of_a_wrong_kind(self, init, message, xy):
        with pytest.raises(ValueError, match=message):
            OvALinearXC(init=init).fit(*xy)

    @pytest.mark.parametrize("name", ["class_weight"])
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(14), r"has shape \(14,\), expected \(15,\): one for each label"),
            (np.r_[-1.5, np.ones(14)], r"must be positive, label 0 has -1\.5"),
            (np.full(15, np.nan), "contains NaN at entry 0"),
            (sp.csr_array(np.ones((1, 15))), "must be a float"),
        ],
    )
    def test_label_weights_that_are_none(self, weight, message, name, xy):
        with pytest.raises(ValueError, match=f"{name}.*{message}"):
            OvALinearXC(**{name: weight}).fit(*xy)
