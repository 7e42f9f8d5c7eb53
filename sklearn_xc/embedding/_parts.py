"""New samplers and encoders, from a name or from an instance that a user passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.base import clone

#: What `sklearn.base.clone` asks for.
_PARAMETERS = ("get_params", "set_params")


def new_part(
    given: Any, table: Mapping[str, Callable[[], Any]], methods: Sequence[str], who: str,
    protocol: str,
) -> Any:  # fmt: skip
    """Return a part that nobody else holds.

    Parameters
    ----------
    given : str or object
        A key of `table`, or an instance, which is cloned.
    table : mapping of str to class
    methods : sequence of str
        What an instance must have besides ``get_params`` and ``set_params``.
    who : str
        How messages name the argument, such as "NGAMEEmbeddingXC: sampler".
    protocol : str
        The class that documents the methods, for messages.

    Raises
    ------
    ValueError
        If `given` is neither.
    """
    if isinstance(given, str) and given in table:
        return table[given]()
    needed = (*methods, *_PARAMETERS)
    missing = [name for name in needed if not callable(getattr(given, name, None))]
    if not isinstance(given, str | type) and not missing:
        return clone(given)
    names = ", ".join(map(repr, sorted(table)))
    if isinstance(given, type):
        got = f"the class {given.__name__}; pass an instance, such as {given.__name__}()"
    elif isinstance(given, str) or given is None:
        got = repr(given)
    else:
        got = f"{given!r} without {', '.join(missing)}"
    raise ValueError(
        f"{who} must be one of {names}, or an instance with the methods {', '.join(needed)} (see "
        f"{protocol}). Got {got}."
    )
