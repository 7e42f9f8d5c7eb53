"""State and answers of fitted models, in forms that can be compared to the bit."""

from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from sklearn_xc.base import XCClassifier

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def unfitted(estimator: Any, **parameters: Any) -> Any:
    """Return a copy without what was fitted, with 0 for each seed that is not given."""
    copy = clone(estimator)
    seeds = {
        name: 0
        for name, value in copy.get_params().items()
        if name.endswith("random_state") and not isinstance(value, int)
    }
    return copy.set_params(**seeds, **parameters)


def asks(model: Any) -> dict[str, Any]:
    """Return the methods of a model that answer a matrix X, by name."""
    found = {name: getattr(model, name) for name in METHODS if hasattr(model, name)}
    if hasattr(model, "predict_topk"):
        found["predict_topk"] = lambda X, k=3: model.predict_topk(X, k)
    return found


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return all answers of a model to X, by name."""
    return {name: ask(X) for name, ask in asks(model).items()}


def dense(answer: Any) -> np.ndarray:
    """Return an answer as an array."""
    return answer.toarray() if sp.issparse(answer) else np.asarray(answer)


def described(value: Any) -> str:
    """Return the type, dtype and shape of an answer, for messages."""
    kind = type(value).__name__
    if not hasattr(value, "shape"):
        return f"{kind}: {value!r}"[:200]
    return f"{kind} of {value.dtype} of shape {value.shape}"


def expect(is_so: Any, name: str, expected: str, got: Any) -> None:
    """Raise an AssertionError that says what was expected, and what came.

    Parameters
    ----------
    is_so : bool
    name : str
        Whose answer it is.
    expected : str
        A sentence without its full stop.
    got : object
        What came instead: a text, or an answer of which type and shape are told.
    """
    if not is_so:
        raise AssertionError(
            f"{name}: {expected}. Got {got if isinstance(got, str) else described(got)}."
        )


def expect_refused(name: str, what: str, call: Any, *arguments: Any, **named: Any) -> None:
    """Raise unless a call refuses its arguments with a ValueError or a TypeError.

    Parameters
    ----------
    name : str
    what : str
        Says what is wrong with them.
    call : callable
    *arguments, **named : object
        Its arguments.
    """
    try:
        call(*arguments, **named)
    except (ValueError, TypeError):
        return
    except Exception as error:
        came = f"{type(error).__name__}: {error}"
    else:
        came = "no error"
    raise AssertionError(
        f"{name}: {what} must be refused with a ValueError or a TypeError. Got {came}."
    )


def expect_same(name, when, model, expected, X, X_of_expected=None):
    """Raise unless two models give the same answers, and two objects the same attributes.

    `X_of_expected` holds the instances in the form that `expected` is asked in, by default X.
    """
    found = answers(model, X)
    right = answers(expected, X if X_of_expected is None else X_of_expected)
    for method, answer in right.items():
        differs = difference(found[method], answer)
        expect(not differs, name, f"{method} must be the same {when}", differs)
    if model is not expected:
        expect_same_state(name, when, model, expected)


def expect_same_state(name: str, when: str, model: Any, expected: Any) -> None:
    """Raise unless all public fitted attributes of two models have the same bits."""
    found, right = state(model), state(expected)
    differing = [n for n in sorted(found.keys() | right.keys()) if found.get(n) != right.get(n)]
    says = f"fitted attributes must be the same {when}"
    expect(not differing, name, says, f"others: {differing}")


def difference(answer, expected):
    """Return how an answer differs from the expected one, "" for not at all."""
    return "" if plain(answer) == plain(expected) else f"other bits, in a {described(answer)}"


def plain(value: Any, within: tuple = (), but: tuple = ()) -> Any:
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


def public(model: Any) -> list[str]:
    """Return the names of the fitted attributes that users may read."""
    names = {name for name in [*vars(model), *dir(type(model))] if name[0] != "_"}
    return sorted(name for name in names if name[-1] == "_" and hasattr(model, name))


def state(model: Any, but: tuple = ()) -> dict[str, Any]:
    """Return all public fitted attributes `but` some, by name, in a form that can be compared."""
    names = [name for name in public(model) if name not in but]
    return {name: plain(getattr(model, name), but=but) for name in names}


def fitted_names(model: Any) -> set[str]:
    """Return the attributes that training has set."""
    parameters = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
    return set(vars(model)) - set(parameters)
