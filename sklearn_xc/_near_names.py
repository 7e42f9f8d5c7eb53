"""Which of the known names somebody may have meant who wrote another one."""

import difflib
import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

#: Names that difflib compares, which takes some 10 us for each.
_COMPARED = 200
#: Look-ups of a pair of characters in a name: so many take less than a second.
_LOOK_UPS = 10_000_000
#: Characters of what was written that are read, and names that are looked at.
_MOST_READ, _MOST_NAMES = 200, 500_000
#: Similarity from which on a name is told, as difflib measures it.
_CUTOFF = 0.6


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """Return " Did you mean ...?" for the most similar of `names`, or nothing.

    Upper and lower case and spaces at the ends make no difference. Of many names only those are
    compared that share most pairs of neighbouring characters, so that 200,000 take about half a
    second; beyond 500,000 none are looked at.

    Parameters
    ----------
    name : object
        What was written. Of what is neither a text nor a number nothing is similar.
    names : iterable of object
        What is known.

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
    wanted = _plain(name)
    by_plain: dict[str, Any] = {}
    for other, _ in zip(names, range(_MOST_NAMES), strict=False):
        by_plain.setdefault(_plain(other), other)
    if wanted in by_plain:
        near = by_plain[wanted]
        return f" Did you mean {near!r}?" if near != name else ""
    if not isinstance(name, str) or not all(isinstance(one, str) for one in by_plain.values()):
        return ""  # the nearest number is hardly the one that was meant
    found = difflib.get_close_matches(wanted, _likely(wanted, list(by_plain)), 1, _CUTOFF)
    return f" Did you mean {by_plain[found[0]]!r}?" if found else ""


def _plain(name: Any) -> str:
    return str(name)[:_MOST_READ].strip().lower()


def _likely(wanted: str, names: list[str]) -> list[str]:
    """Return the names that share the largest part of their pairs of characters with one."""
    if len(names) <= _COMPARED:
        return names
    # What is much longer or shorter is below the cut-off, whatever it is: 2 least / sum < cutoff.
    n, least = len(wanted), _CUTOFF / (2 - _CUTOFF)
    names = [one for one in names if n * least <= len(one) <= n / least]
    pairs = sorted({a + b for a, b in pairwise(wanted)})
    most = max(1, _LOOK_UPS // max(1, len(names)))
    pairs = pairs[:: -(-len(pairs) // most)] if pairs else [wanted]

    def shared(one: str) -> float:
        return sum([pair in one for pair in pairs]) / (n + len(one))

    return heapq.nlargest(_COMPARED, names, key=shared)
