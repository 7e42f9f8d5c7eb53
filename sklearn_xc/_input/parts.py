"""Exchangeable parts of estimators: names, or objects with parameters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

#: Methods that `sklearn.base.clone` needs.
_PARAMETERS = ("get_params", "set_params")


def is_vectorizer(vectorizer: Any, require: Callable[[str, int], bool]) -> bool:
    """Return whether this can be the vectorizer of a saved model; see `_state.schema.Tested`."""
    words = getattr(vectorizer, "vocabulary_", None)
    has_words = not isinstance(words, dict) or require("features", len(words))
    return has_words and hasattr(vectorizer, "transform")


class ParameterizedParts(BaseEstimator):
    """Sets parameters of parts, also of a part that is None and has a default."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of a part are named ``part__parameter``.

        Parameters
        ----------
        **params : dict
            Names and values. If a part is None, its default is set first.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            For an unknown name, and for parameters of a part given by its name.
        """
        return super().set_params(**self._with_parts(params))

    def _with_parts(self, params: dict[str, Any]) -> dict[str, Any]:
        """Add defaults of parts whose parameters are set; parts by name are an error."""
        for key in list(params):
            name, nested, parameter = key.partition("__")
            if not nested or name not in self._get_param_names():
                continue
            part = params.get(name, getattr(self, name))
            if part is None:
                part = params[name] = self._default_part(name)
            if not hasattr(part, "set_params"):
                raise ValueError(
                    f"{type(self).__name__}: to set {key}, {name} must be an object with "
                    f"parameters. Got {part!r}."
                )
            known = part.get_params()
            if parameter not in known and f"estimator__{parameter}" in known:
                raise ValueError(
                    f"{type(self).__name__}: {key} must be {name}__estimator__{parameter}, because "
                    f"the {name} is a {type(part).__name__} of an estimator. Got {key}."
                )
        return params

    def _default_part(self, name: str) -> Any:
        """Return a new default of a part that is None; None if it has no default."""
        return None


def check_part(
    part: Any, caller: str, names: Iterable[str], attributes: Iterable[str], protocol: str
) -> None:
    """Raise ValueError unless a part is an instance with some attributes.

    Parameters
    ----------
    part : object
        The argument, if it is not one of the names.
    caller : str
        The argument in messages, such as "DecompMIPSClassifier: index".
    names : iterable of str
        Names that are accepted instead of an instance.
    attributes : iterable of str
        Attributes and methods that an instance must have.
    protocol : str
        The class that describes it.

    Raises
    ------
    ValueError
    """
    wanted = [*attributes]
    missing = [name for name in wanted if not hasattr(part, name)]
    if isinstance(part, type):
        got = f"the class {part.__name__}; pass an instance, such as {part.__name__}()"
    elif missing:
        got = f"{part!r} without {', '.join(missing)}"
    else:
        return
    raise ValueError(
        f"{caller} must be one of {', '.join(map(repr, sorted(names)))}, or an instance with "
        f"{', '.join(wanted)} (see {protocol}). Got {got}."
    )


def new_part(
    given: Any,
    table: Mapping[str, Callable[[], Any]],
    methods: Sequence[str],
    caller: str,
    protocol: str,
) -> Any:
    """Return a new part from its name, or a clone of an object.

    Parameters
    ----------
    given : str or object
        A key of `table`, or an instance, which is cloned.
    table : mapping of str to class
    methods : sequence of str
        Methods of an instance, in addition to ``get_params`` and ``set_params``.
    caller : str
        The argument in messages, such as "NGAMEEmbeddingXC: sampler".
    protocol : str
        The class that documents the methods, for messages.

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(given, str) and given in table:
        return table[given]()
    check_part(given, caller, table, (*methods, *_PARAMETERS), protocol)
    return clone(given)


def same_part(a: Any, b: Any) -> bool:
    """Return whether two names or objects are the same kind of part, with equal parameters.

    Parameters of an object are what ``get_params`` returns, or its attributes if it has none.
    """
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    first, second = _parameters(a), _parameters(b)
    return (
        type(a) is type(b)
        and first.keys() == second.keys()
        and all(_equal(first[name], second[name]) for name in first)
    )


def _equal(a: Any, b: Any) -> bool:
    if hasattr(a, "get_params") and hasattr(b, "get_params"):
        return same_part(a, b)
    return bool(np.array_equal(a, b))


def _parameters(part: Any) -> dict[str, Any]:
    if hasattr(part, "get_params"):
        return dict(part.get_params(deep=False))
    return dict(getattr(part, "__dict__", {}))


def default_vectorizer() -> Any:
    """Return the vectorizer of texts where none is given."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
