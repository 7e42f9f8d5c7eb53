"""State and answers of fitted models, in forms that can be compared to the bit."""

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from sklearn_xc.base import XCClassifier

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def asks(model):
    """Return the methods of a model that answer a matrix X, by name."""
    found = {name: getattr(model, name) for name in METHODS if hasattr(model, name)}
    if hasattr(model, "predict_topk"):
        found["predict_topk"] = lambda X, k=3: model.predict_topk(X, k)
    return found


def dense(answer):
    """Return an answer as an array."""
    return answer.toarray() if sp.issparse(answer) else np.asarray(answer)


def plain(value, within=(), but=()):
    """Return nested tuples of what a value holds, arrays as bytes; durations are left out.

    Of an estimator of this package, what it shows: parameters, and fitted attributes `but` some. Of
    others all that they hold; where they cannot be looked into, a checksum of it.
    """
    if any(value is one for one in within):
        return "itself"
    if isinstance(value, np.ndarray) and value.dtype == object:
        return "objects", value.shape, tuple(plain(v) for v in value.ravel().tolist())
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes()
    if sp.issparse(value):
        value = value.tocsr()
        return (
            type(value).__name__,
            value.shape,
            *(plain(part) for part in (value.indptr, value.indices, value.data)),
        )
    if isinstance(value, dict):
        within = (*within, value)
        return tuple(
            (str(key), plain(part, within, but))
            for key, part in sorted(value.items(), key=lambda item: str(item[0]))
            if not str(key).endswith(("seconds", "_s", "_stop_words_id"))
        )
    if hasattr(value, "_asdict"):
        return plain(value._asdict(), within, but)
    if isinstance(value, list | tuple):
        return tuple(plain(part, within, but) for part in value)
    if isinstance(value, XCClassifier):
        shown = {**value.get_params(deep=False), **state(value, but)}
        return type(value).__name__, plain(shown, (*within, value), but)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        # Of a network what files have of it, not the modules that compute.
        held = value.__getstate__()
        return type(value).__name__, plain(held, (*within, value), but)
    text = repr(value)
    return joblib.hash(value, coerce_mmap=True) if " at 0x" in text else text


def public(model):
    """Return the names of the fitted attributes that users may read."""
    names = {name for name in [*vars(model), *dir(type(model))] if name[0] != "_"}
    return sorted(name for name in names if name[-1] == "_" and hasattr(model, name))


def state(model, but=()):
    """Return all public fitted attributes `but` some, by name, in a form that can be compared."""
    names = [name for name in public(model) if name not in but]
    return {name: plain(getattr(model, name), but=but) for name in names}


def fitted_names(model):
    """Return the attributes that training has set."""
    parameters = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
    return set(vars(model)) - set(parameters)


def assert_same_model(a, b, but=()):
    """Compare all public fitted attributes to the bit, `but` for some."""
    p, q = state(a, but), state(b, but)
    assert p.keys() == q.keys()
    differing = [name for name in p if p[name] != q[name]]
    assert not differing, differing


def answers(model, X, entry=None, k=3):
    """Return all answers of a model to X, by name, in a form that can be compared."""
    found = {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}
    found["predict_topk"] = model.predict_topk(X, k)
    further = entry.answers if entry is not None else {}
    found |= {name: ask(model, X) for name, ask in further.items()}
    return {name: plain(answer) for name, answer in found.items()}


def assert_same_answers(a, b, X, entry=None, X_of_b=None):
    """Compare all answers of two models to the bit."""
    p, q = answers(a, X, entry), answers(b, X if X_of_b is None else X_of_b, entry)
    differing = [name for name in p if p[name] != q[name]]
    assert p.keys() == q.keys()
    assert not differing, differing


def assert_close_answers(a, b, X, atol=1e-5):
    """Compare scores of two models that may differ by rounding."""
    p, q = (dense(model.decision_function(X)) for model in (a, b))
    np.testing.assert_allclose(p, q, atol=atol)


class Unchanged:
    """A model as it is now, to be compared with what a call leaves of it."""

    def __init__(self, model):
        self.model, self.before = model, dict(vars(model))
        self.parameters = set(model.get_params(deep=False))
        self.values = {n: plain(v) for n, v in self.before.items() if n not in self.parameters}

    def check(self):
        """Compare names, objects, and what these hold."""
        now = vars(self.model)
        assert set(now) == set(self.before)
        for name, value in self.values.items():
            assert now[name] is self.before[name], name
            assert plain(now[name]) == value, name
