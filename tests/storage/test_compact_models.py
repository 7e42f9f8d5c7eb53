"""Saving and opening compact models: small, by part, and nothing that leads outside."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from test_models import X, Y, answers, mapped  # noqa: F401

import sklearn_xc
from sklearn_xc import OvALinearXC, SoftmaxUMax, ThresholdTuner
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import folder as folders
from sklearn_xc.storage import forms
from sklearn_xc.storage.folder import META, read_meta
from sklearn_xc.storage.reports import describe_model, problems_of_model


@pytest.fixture(scope="module")
def model():
    return OvALinearXC(tol=1e-2).fit(X, Y)


@pytest.fixture(scope="module")
def small(model):
    made = model.compact()
    assert len(made._weights.by_feature.columns) > 5
    return made


def sizes(folder):
    return {path.name: path.stat().st_size for path in folder.glob("weights.*")}


def test_it_is_small_and_comes_back(model, small, tmp_path, mapped):  # noqa: F811
    model.save(tmp_path / "float")
    small.save(tmp_path / "small")
    assert sum(sizes(tmp_path / "small").values()) < sum(sizes(tmp_path / "float").values()) / 3
    opened = sklearn_xc.load(tmp_path / "small")
    assert answers(opened) == answers(small)
    assert opened._weights._coef is None
    assert not opened._weights.by_feature.columns.flags.writeable
    np.testing.assert_array_equal(opened.coef_.toarray(), small.coef_.toarray())
    assert answers(pickle.loads(pickle.dumps(opened))) == answers(small)
    # Saved again, by whoever holds it, its arrays have the same bytes; one that two attributes
    # share has the name of the first.
    opened.save(tmp_path / "again")
    sklearn_xc.load(tmp_path / "float").compact().save(tmp_path / "from a file")
    known = sorted(path.read_bytes() for path in (tmp_path / "small").glob("*.npy"))
    for other in ("again", "from a file"):
        assert sorted(path.read_bytes() for path in (tmp_path / other).glob("*.npy")) == known


@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
def test_what_is_inside_is_saved_compact(model, small, tmp_path, mapped):  # noqa: F811
    model.save(tmp_path / "own", compact=True)
    small.save(tmp_path / "small", compact=True)  # is already
    for name in ("own", "small"):
        opened = sklearn_xc.load(tmp_path / name)
        assert answers(opened) == answers(small)
        assert opened._weights._coef is None
    outer = ThresholdTuner(OvALinearXC(tol=1e-2), cv=0.3, random_state=0).fit(X, Y)
    before = answers(outer)
    outer.save(tmp_path / "outer", compact=True)
    assert answers(outer) == before
    opened = sklearn_xc.load(tmp_path / "outer")
    assert answers(opened.estimator_) == answers(outer.estimator_.compact())
    np.testing.assert_array_equal(opened.thresholds_, outer.thresholds_)


def test_without_weights_of_one_vs_all(model, tmp_path):
    model.save(tmp_path)
    before = (tmp_path / META).read_bytes()
    for other in (OvALinearXC(), SoftmaxUMax(max_iter=1, random_state=0).fit(X, Y)):
        with pytest.raises(ValueError, match=rf"^{type(other).__name__}: compact=True is for wei"):
            other.save(tmp_path, compact=True)
    assert (tmp_path / META).read_bytes() == before
    assert answers(sklearn_xc.load(tmp_path)) == answers(model)


def test_the_model_itself_stays(model, small):
    assert type(small) is OvALinearXC
    assert small is not model
    assert model.coef_.data.tobytes() != small.coef_.data.tobytes()
    assert type(model.compact()._weights) is not type(model._weights)
    assert small.get_params() == model.get_params()


def test_an_opened_model_may_be_made_compact_before_it_was_read(model, small, tmp_path, mapped):  # noqa: F811
    model.save(tmp_path)
    made = sklearn_xc.load(tmp_path).compact()
    np.testing.assert_array_equal(made.n_iter_, model.n_iter_)
    assert answers(made) == answers(small)


def test_a_compact_model_is_fitted_anew(model):
    small = OvALinearXC(tol=1e-2).fit(X, Y).compact()
    assert answers(small.fit(X, Y)) == answers(model)


def test_a_prediction_checks_what_it_reads(small, tmp_path, mapped):  # noqa: F811
    small.save(tmp_path)
    opened = sklearn_xc.load(tmp_path)
    for row in range(0, 100, 50):
        assert answers(opened, X[[row]]) == answers(small, X[[row]])
    parts = opened._weights._held._parts
    assert sorted(parts) == ["columns", "packed"]
    assert not any(part.is_checked for part in parts.values())


def test_versions_before_read_models_of_full_size_and_refuse_compact_ones(
    model, small, tmp_path, monkeypatch
):
    model.save(tmp_path / "float")
    small.save(tmp_path / "small")
    assert read_meta(tmp_path / "float")["format"] == 1
    assert "OvALinearXC, format 2, " in describe_model(tmp_path / "small")[0]
    assert problems_of_model(tmp_path / "small") == []
    monkeypatch.setattr(folders, "FORMAT", 1)
    assert answers(sklearn_xc.load(tmp_path / "float")) == answers(model)
    with pytest.raises(SavedModelError, match=r"in format 2, of sklearn_xc .* Upgrade it"):
        sklearn_xc.load(tmp_path / "small")


@pytest.mark.parametrize("name", ["packed", "columns"])
def test_damage_is_refused(name, small, tmp_path, mapped):  # noqa: F811
    small.save(tmp_path)
    (path,) = tmp_path.glob(f"weights.{name}-*")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(SavedModelError, match=rf"weights\.{name}-.* is damaged between bytes"):
        sklearn_xc.load(tmp_path).predict_topk(X)


def _far(arrays):
    """Have the distances of the first list lead beyond the last label."""
    j = int(np.flatnonzero((arrays["counts"] > 1) & (arrays["widths"] > 1))[0])
    sizes = arrays["counts"] + -(-arrays["counts"] * arrays["widths"].astype(int) // 8)
    begin = int(sizes[:j].sum())
    arrays["packed"][begin + arrays["counts"][j] : begin + sizes[j]] = 255


@pytest.mark.parametrize(
    "change",
    [
        _far,
        lambda w: w["packed"].__setitem__(slice(None), 255),
        lambda w: w.update(packed=w["packed"][:-1]),
        lambda w: w.update(packed=np.append(w["packed"], np.uint8(0))),
        lambda w: w.update(packed=w["packed"].astype(np.int64)),
        lambda w: w["counts"].__setitem__(3, -5),
        lambda w: w["counts"].__setitem__(slice(None), 2**31 - 1),
        lambda w: w["counts"].__setitem__(np.flatnonzero(w["tier"] >= 16)[0], 1),
        lambda w: w["widths"].__setitem__(slice(None), 25),
        lambda w: w["widths"].__setitem__(np.argmax(w["counts"]), 24),
        lambda w: w["tier"].__setitem__(np.flatnonzero(w["tier"] < 16)[0], 16),
        lambda w: w["tier"].__setitem__(3, 200),
        lambda w: w.update(exponents=w["exponents"][:-1]),
        lambda w: w.update(highest=w["highest"].astype(np.float32)),
        lambda w: w.update(columns=w["columns"][:, :64]),
        lambda w: w.update(columns=w["columns"][:-1]),
        lambda w: w.update(columns=w["columns"].astype(np.float32)),
    ],
)
def test_numbers_that_lead_outside_of_arrays(change, small, tmp_path, monkeypatch):
    """As one would make them who wants the kernels to read what is not theirs."""
    known = forms.FORMS["CompactLabelWeights"]

    def crafted(state):
        arrays = {name: array.copy() for name, array in state["arrays"].items()}
        change(arrays)
        return known.write({**state, "arrays": arrays})

    form = forms.Form(crafted, known.read, known.format)
    monkeypatch.setitem(forms.FORMS, "CompactLabelWeights", form)
    small.save(tmp_path)
    with pytest.raises(SavedModelError, match=r"do not fit each other|labels that are not from 0"):
        sklearn_xc.load(tmp_path).predict_topk(X)
    with pytest.raises(SavedModelError, match=r"do not fit each other|labels that are not from 0"):
        _ = sklearn_xc.load(tmp_path, verify=True).coef_


def test_a_dtype_that_weights_do_not_have(small, tmp_path):
    from test_models import rewritten

    small.save(tmp_path)

    def change(meta):
        meta["model"]["state"]["_weights"]["of"]["dtype"] = "<i4"

    rewritten(tmp_path, change)
    with pytest.raises(SavedModelError, match="do not fit each other"):
        sklearn_xc.load(tmp_path).predict_topk(X)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_all_that_reads_weights(loss, tmp_path, mapped):  # noqa: F811
    """As of a model of full size whose weights are those that the codes stand for."""
    small = OvALinearXC(tol=1e-2, loss=loss).fit(X, Y).compact()
    full = pickle.loads(pickle.dumps(small))
    full._weights = type(small._weights).__mro__[1](
        small.coef_, small.intercept_, small._weights.prior, small._weights.unseen
    )
    small.save(tmp_path)
    small = sklearn_xc.load(tmp_path)
    rows = X[:20]
    assert answers(small, rows) == answers(full, rows)
    assert (small.decision_function(rows) != full.decision_function(rows)).nnz == 0
    assert (small.predict(rows) != full.predict(rows)).nnz == 0
    for few in (np.arange(5), np.arange(290)):
        found, expected = (m.predict_topk(rows, 3, candidates=few) for m in (small, full))
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)
    assert repr(small.explain(rows[[0]], 1)) == repr(full.explain(rows[[0]], 1))
    if loss == "logistic":
        assert (small.predict_proba(rows) != full.predict_proba(rows)).nnz == 0


def test_two_classes(tmp_path):
    small = OvALinearXC().fit(X, np.arange(400) % 2).compact()
    small.save(tmp_path)
    assert answers(sklearn_xc.load(tmp_path)) == answers(small)
    assert small.coef_.shape == (1, 300)
    assert sp.issparse(small.coef_)
    assert (tmp_path / META).is_file()
