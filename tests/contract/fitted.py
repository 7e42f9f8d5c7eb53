"""What fitted models are and say, in forms that can be compared to the bit."""

import numpy as np
from checks.comparing import METHODS, dense, fitted_names, plain, public, state

__all__ = ["METHODS", "dense", "fitted_names", "plain", "public", "state"]


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
