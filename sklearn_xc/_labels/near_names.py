"""The known name that somebody may have meant who wrote another one."""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any

#: Names that are compared, at some 10 us each, and characters of each.
_MOST_NAMES, _MOST_READ = 100_000, 200


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """Return " Did you mean ...?" for the most similar of `names`, or nothing.

    Case and spaces at the ends make no difference. Only the first 100,000 names are compared, and
    only texts.

    Parameters
    ----------
    name : object
        The unknown name.
    names : iterable of object
        The known names.

    Returns
    -------
    str
        With a space before it, for the end of a message.

    Examples
    --------
    >>> did_you_mean("Fredrick", ["anna", "frederick", "mary"])
    " Did you mean 'frederick'?"
    """
    if isinstance(name, bool) or not isinstance(name, str | int):
        return ""
    known: dict[str, Any] = {}
    for other in islice(names, _MOST_NAMES):
        known.setdefault(_plain(other), other)
    if isinstance(name, str) and all(isinstance(one, str) for one in known.values()):
        near = difflib.get_close_matches(_plain(name), known, 1)
    else:
        near = [_plain(name)] if _plain(name) in known else []
    found = [known[one] for one in near if known[one] != name]
    return f" Did you mean {found[0]!r}?" if found else ""


def _plain(name: Any) -> str:
    return str(name)[:_MOST_READ].strip().lower()
