"""Bad input: each either works or raises an error that names what was wrong and what came."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from sklearn_xc import OvALinearXC
from sklearn_xc._sklearn import InvalidParameterError
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.parallel import memory
from sklearn_xc.solvers import newton_cg

NOT_BINARY = r"y must be a binary indicator of 0 and 1 .* row {}, column {} holds {}"


def with_value(Y, row, column, value, dtype=float):
    Y = Y.astype(dtype).tolil()
    Y[row, column] = value
    return Y.tocsr()


def with_duplicate(Y, dtype, container):
    """Return Y with its first entry stored twice: it sums to 2."""
    if container is sp.coo_array:
        Y = Y.tocoo()
        rows, columns = (np.append(c, c[0]) for c in Y.coords)
        return container((np.ones(rows.size, dtype), (rows, columns)), shape=Y.shape)
    Y = container(Y)
    indptr = np.concatenate(([0], Y.indptr[1:] + 1))
    indices = np.append(Y.indices[0], Y.indices)
    return container((np.ones(indices.size, dtype), indices, indptr), shape=Y.shape)


class TestInstances:
    @pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
    @pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
    def test_nan_and_infinity(self, value, name, make, xy):
        X, Y = xy
        model = OvALinearXC(prune=0).fit(X, Y)
        X.data[7] = value
        with pytest.raises(ValueError, match=f"Input X contains {name}"):
            OvALinearXC().fit(make(X), Y)
        for call in (model.predict, model.predict_topk, model.decision_function):
            with pytest.raises(ValueError, match=f"Input X contains {name}"):
                call(make(X))

    def test_wrong_width(self, xy):
        X, Y = xy
        model = OvALinearXC(prune=0).fit(X, Y)
        for call in (model.predict, model.predict_topk, model.decision_function):
            with pytest.raises(ValueError, match=r"X has 39 features, .* is expecting 40"):
                call(X[:, :39])

    @pytest.mark.parametrize("make", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
    def test_no_rows_and_no_columns(self, make, xy):
        X, Y = xy
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 4\)\).* by OvALinearXC"):
            OvALinearXC().fit(make(np.zeros((0, 4))), Y[:0])
        with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(120, 0\)\).* OvALinearXC"):
            OvALinearXC().fit(make(np.zeros((120, 0))), Y)
        model = OvALinearXC(prune=0).fit(X, Y)
        with pytest.raises(ValueError, match="0 sample"):
            model.predict_topk(make(np.zeros((0, 40))))

    def test_three_dimensions_and_text(self, xy):
        X, Y = xy
        with pytest.raises(ValueError, match="dim 3"):
            OvALinearXC().fit(X.toarray()[None], Y)
        with pytest.raises(ValueError, match="could not convert string to float"):
            OvALinearXC().fit(np.full((120, 2), "a"), Y)

    def test_complex(self, xy):
        X, Y = xy
        with pytest.raises(ValueError, match="Complex data not supported"):
            OvALinearXC().fit(X.toarray() * 1j, Y)


class TestTargets:
    @pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
    @pytest.mark.parametrize("value", [2, -1, 0.5])
    def test_not_binary(self, value, make, xy):
        X, Y = xy
        with pytest.raises(ValueError, match=NOT_BINARY.format(8, 3, value)):
            OvALinearXC().fit(X, make(with_value(Y, 8, 3, value)))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value, xy):
        X, Y = xy
        bad = with_value(Y, 8, 3, value)
        with pytest.raises(ValueError, match=NOT_BINARY.format(8, 3, value)):
            OvALinearXC().fit(X, bad)
        with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
            OvALinearXC().fit(X, bad.toarray())
        with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
            OvALinearXC().fit(X, np.append(np.arange(119.0), value))

    @pytest.mark.parametrize("container", [sp.coo_array, sp.csr_array, sp.csc_array])
    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float32, np.float64])
    def test_duplicate_entries_are_refused_whatever_their_dtype(self, dtype, container, xy):
        X, Y = xy
        Y = with_duplicate(Y[:, [7, 0]], dtype, container)
        place = (0, 0, "2")
        with pytest.raises(ValueError, match=NOT_BINARY.format(*place) + r".* summed"):
            OvALinearXC().fit(X, Y)

    def test_256_duplicates_of_int8_do_not_wrap_around(self, xy):
        X, _ = xy
        Y = sp.coo_array((np.ones(257, np.int8), (np.zeros(257, int),) * 2), shape=(120, 2))
        with pytest.raises(ValueError, match="row 0, column 0 holds 257"):
            OvALinearXC().fit(X, Y)

    @pytest.mark.parametrize("make", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
    def test_no_columns(self, make, xy):
        with pytest.raises(ValueError, match=r"y must have at least one label .*\(120, 0\)"):
            OvALinearXC().fit(xy[0], make(np.zeros((120, 0))))

    def test_another_number_of_rows(self, xy):
        X, Y = xy
        for y in (Y[:100], Y[:100].toarray(), np.arange(100)):
            with pytest.raises(ValueError, match="y has 100 rows and X has 120"):
                OvALinearXC().fit(X, y)

    def test_none(self, xy):
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            OvALinearXC().fit(xy[0], None)

    def test_lists_of_labels_get_advice(self, xy):
        ragged = [[1], [2, 3]] * 60
        with pytest.raises(ValueError, match=r"MultiLabelBinarizer\(sparse_output=True\)"):
            OvALinearXC().fit(xy[0], ragged)
        with pytest.raises(ValueError, match="MultiLabelBinarizer"):
            OvALinearXC().fit(xy[0], np.array(ragged, dtype=object))
        with pytest.raises(ValueError, match="MultiLabelBinarizer"):
            OvALinearXC().fit(xy[0], [("cat",), ("cat", "dog")] * 60)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.zeros((2, 120, 3)), r"y must be 1-D or 2-D. Got an array of shape \(2, 120, 3\)"),
            (7, r"y must be 1-D or 2-D. Got an array of shape \(\)"),
            (np.full((120, 2), "a"), "a 2-D y must be a binary indicator. Got dtype <U1"),
            (sp.csr_array((120, 2), dtype=complex), "a sparse y .* Got dtype complex128"),
            (
                sp.coo_array(np.ones(120)),
                r"y: a sparse matrix of 2 dimensions was expected, got shape \(120,\)",
            ),
            (np.ones(120), "y holds one class, .*1.0.*; at least two classes are needed"),
            (np.linspace(0, 1, 120), "Unknown label type: continuous"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
    def test_other_shapes_and_types(self, y, message, xy):
        with pytest.raises(ValueError, match=message):
            OvALinearXC().fit(xy[0], y)


class TestSampleWeight:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(119), r"sample_weight has shape \(119,\), expected \(120,\)"),
            (np.ones((120, 1)), r"sample_weight has shape \(120, 1\), expected \(120,\)"),
            (np.r_[np.ones(119), -0.5], "must not be negative, row 119 holds -0.5"),
            (np.zeros(120), "all entries of sample_weight are zero"),
            (np.full(120, np.nan), "sample_weight contains NaN"),
            (np.full(120, np.inf), "sample_weight contains infinity"),
        ],
    )
    def test_bad_weights(self, weight, message, xy):
        with pytest.raises(ValueError, match=message):
            OvALinearXC().fit(*xy, sample_weight=weight)


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "expected"),
        [
            ({"C": 0}, r"'C' .* range \(0.0, inf\). Got 0"),
            ({"C": -1.5}, r"'C' .* Got -1.5"),
            ({"C": np.nan}, r"'C' .* Got nan"),
            ({"loss": "hinge"}, r"'loss' .* among \{.*'squared_hinge'.* Got 'hinge'"),
            ({"init": "random"}, r"'init' .* among \{.*'msi'.*\}.* Got 'random'"),
            ({"init": object}, "'init' .* Got <class 'object'>"),
            ({"tol": 0}, "'tol' .* Got 0"),
            ({"max_iter": 0}, "'max_iter' .* Got 0"),
            ({"max_iter": 1.5}, "'max_iter' .* Got 1.5"),
            ({"fit_intercept": "yes"}, "'fit_intercept' .* Got 'yes'"),
            ({"regularize_intercept": 2}, "'regularize_intercept' .* Got 2"),
            ({"positive_weight": 0}, "'positive_weight' .* Got 0"),
            ({"positive_weight": "balanced"}, r"'propensity'.* Got 'balanced'"),
            ({"negative_weight": "propensity"}, "'negative_weight' .* Got 'propensity'"),
            ({"prune": -0.1}, "'prune' .* Got -0.1"),
            ({"top_k": 0}, "'top_k' .* Got 0"),
            ({"max_memory": 0}, "'max_memory' .* Got 0"),
            ({"max_memory": np.inf}, "'max_memory' .* Got inf"),
            ({"n_jobs": 1.5}, "'n_jobs' .* Got 1.5"),
            ({"verbose": -1}, "'verbose' .* Got -1"),
        ],
        ids=str,
    )
    def test_out_of_range(self, parameters, expected, xy):
        with pytest.raises(InvalidParameterError, match=expected):
            OvALinearXC(**parameters).fit(*xy)

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

    def test_start_intercepts_without_an_intercept(self, xy):
        with pytest.raises(
            ValueError, match=r"init must have shape \(15, 40\). Got shape \(15, 41\)"
        ):
            OvALinearXC(init=np.zeros((15, 41)), fit_intercept=False).fit(*xy)

    def test_start_vectors_with_nan(self, xy):
        for make in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match="OvALinearXC: init contains NaN or infinity"):
                OvALinearXC(init=make(np.full((15, 40), np.nan))).fit(*xy)

    @pytest.mark.parametrize(
        ("init", "message"),
        [
            (np.zeros(40), r"init must have shape .* Got shape \(40,\)"),
            (np.zeros((15, 40, 1)), r"init must have shape .* Got shape \(15, 40, 1\)"),
            (np.full((15, 40), "a"), r"init must be a name, .* Got ndarray of dtype <U1"),
            ([[1, 2], [3]], r"init is no array of shape \(15, 40\)"),
            ({"a": 1}, "init must be a name, .* Got dict of dtype object"),
            (np.zeros((15, 40), complex), "init must be a name, .* dtype complex128"),
            (np.zeros((15, 40), object), "init must be a name, .* dtype object"),
            (np.zeros((15, 40), "M8[s]"), "init holds dates or times"),
            (sp.coo_array(np.zeros(40)), r"init: a sparse matrix of 2 dimensions was expected"),
        ],
        ids=str,
    )
    def test_start_vectors_of_a_wrong_kind(self, init, message, xy):
        with pytest.raises(ValueError, match=message):
            OvALinearXC(init=init).fit(*xy)

    def test_start_vectors_that_are_masked_or_malformed(self, xy):
        with pytest.raises(TypeError, match="OvALinearXC: init is a masked array"):
            OvALinearXC(init=np.ma.zeros((15, 40))).fit(*xy)
        bad = sp.csr_array(np.ones((15, 40)))
        bad.indices[7] = 2_000_000
        with pytest.raises(ValueError, match=r"OvALinearXC: init: .* column index 2000000 is not"):
            OvALinearXC(init=bad).fit(*xy)

    @pytest.mark.parametrize("name", ["positive_weight", "negative_weight"])
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(14), r"has shape \(14,\), expected \(15,\): one for each label"),
            (np.ones((1, 15)), r"has shape \(1, 15\), expected \(15,\)"),
            (np.r_[np.ones(14), 0.0], r"must be positive, label 14 has 0\.0"),
            (np.r_[-1.5, np.ones(14)], r"must be positive, label 0 has -1\.5"),
            (np.full(15, np.nan), "contains NaN at entry 0"),
            (np.full(15, np.inf), "contains infinity"),
            (["a"] * 15, "holds .*'a'"),
            ([None] * 15, "holds None"),
            (sp.csr_array(np.ones((1, 15))), "must be a float"),
            ([], r"has shape \(0,\)"),
        ],
    )
    def test_label_weights_that_are_none(self, weight, message, name, xy):
        with pytest.raises(ValueError, match=f"{name}.*{message}"):
            OvALinearXC(**{name: weight}).fit(*xy)

    @pytest.mark.parametrize("name", ["positive_weight", "negative_weight"])
    def test_masked_label_weights(self, name, xy):
        with pytest.raises(TypeError, match=f"OvALinearXC: {name} is a masked array"):
            OvALinearXC(**{name: np.ma.ones(15)}).fit(*xy)

    @pytest.mark.parametrize(
        "parameters",
        [
            {"tol": np.nan}, {"tol": np.inf}, {"tol": "0.1"}, {"prune": np.nan}, {"prune": np.inf},
            {"C": np.inf}, {"C": True}, {"max_iter": True}, {"max_iter": 2**63},
            {"positive_weight": np.nan}, {"positive_weight": np.inf}, {"negative_weight": True},
            {"max_memory": "0"}, {"max_memory": np.nan}, {"max_memory": "inf"},
            {"max_memory": "1e400GB"}, {"max_memory": True}, {"n_jobs": 0}, {"n_jobs": True},
            {"top_k": True}, {"fit_intercept": None}, {"verbose": "a"},
        ],
        ids=str,
    )  # fmt: skip
    def test_absurd_parameters(self, parameters, xy):
        (name,) = parameters
        with pytest.raises(ValueError, match=name):
            OvALinearXC(**parameters).fit(*xy)

    def test_more_memory_than_there_is_will_do(self, xy):
        assert OvALinearXC(prune=0, max_memory="1000000000TB").fit(*xy).coef_.nnz

    @pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
    def test_k(self, k, xy):
        model = OvALinearXC(prune=0).fit(*xy)
        with pytest.raises(ValueError, match=f"k must be an integer of at least 1, got {k!r}"):
            model.predict_topk(xy[0], k)


class TestMemory:
    @pytest.mark.parametrize("size", ["plenty", "-1GB", ""])
    def test_unreadable(self, size, xy):
        with pytest.raises(ValueError, match=f"max_memory must be .* as '8GB', got {size!r}"):
            OvALinearXC(max_memory=size).fit(*xy)

    def test_too_small_is_refused_before_anything_is_allocated(self, xy, monkeypatch):
        monkeypatch.setattr(newton_cg, "_make_lanes", lambda *args: pytest.fail("allocated"))
        for init in ("msi", "ovap"):
            with pytest.raises(
                MemoryBudgetError,
                match=r"max_memory allows 1.0 KiB.*largest array is the points of a block, "
                r"2 x 1 labels x 41 \(656 bytes\).*Raise max_memory",
            ):
                OvALinearXC(max_memory="1KB", init=init).fit(*xy)

    def test_a_machine_too_small_is_refused_before_anything_is_allocated(self, xy, monkeypatch):
        monkeypatch.setattr(newton_cg, "_make_lanes", lambda *args: pytest.fail("allocated"))
        monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
        with pytest.raises(MemoryBudgetError, match=r"this machine has 1000 bytes"):
            OvALinearXC().fit(*xy)

    def test_dense_scores_beyond_the_limit(self, xy):
        X, Y = xy
        model = OvALinearXC(prune=0).fit(X, Y.toarray()).set_params(max_memory=120 * 15 * 8 - 1)
        for call in (model.decision_function, model.predict):
            with pytest.raises(MemoryBudgetError, match=r"max_memory allows .*120 instances x 15"):
                call(X)
            assert call(X[:119]).shape == (119, 15)
        assert model.predict_topk(X)[0].shape == (120, 5)

    def test_dense_scores_of_a_dense_fit(self, xy, monkeypatch):
        X, Y = xy
        model = OvALinearXC(prune=0).fit(X, Y.toarray())
        monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
        with pytest.raises(MemoryBudgetError, match=r"120 instances x 15 labels.*predict_topk"):
            model.decision_function(X)
        assert model.predict_topk(X)[0].shape == (120, 5)


class TestUnfitted:
    @pytest.mark.parametrize(
        "method", ["predict", "predict_topk", "decision_function", "score", "explain"]
    )
    def test_before_fit(self, method, xy):
        arguments = xy if method in ("score", "explain") else xy[:1]
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(OvALinearXC(), method)(*arguments)

    @pytest.mark.parametrize("name", ["coef_", "intercept_"])
    def test_attributes(self, name):
        assert not hasattr(OvALinearXC(), name)
        with pytest.raises(AttributeError, match=f"{name}: this OvALinearXC is not fitted yet"):
            getattr(OvALinearXC(), name)


@pytest.mark.parametrize("what", ["targets", "start vectors", "weights"])
def test_a_failed_fit_leaves_an_earlier_one_intact(what, xy):
    """The new X had another width, and names, before something else turned out to be wrong."""
    X, Y = xy
    model = OvALinearXC(prune=0).fit(X, Y)
    before = model.predict_topk(X, 3)
    other = pd.DataFrame(X.toarray()[:, :3], columns=list("abc"))
    if what == "start vectors":
        model.set_params(init=np.zeros((3, 2)))
    y, weight = (2 * Y if what == "targets" else Y), (-np.ones(120) if what == "weights" else None)
    with pytest.raises(ValueError, match="must"):
        model.fit(other, y, weight)
    assert model.n_features_in_ == 40
    assert not hasattr(model, "feature_names_in_")
    for a, b in zip(before, model.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)
