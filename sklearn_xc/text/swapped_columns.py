"""Texts where labels should be, and labels where texts should be."""

import warnings
from collections.abc import Collection
from itertools import islice
from typing import Any

import scipy.sparse as sp

#: Rows that are looked at.
_N_LOOKED_AT = 2000
#: In fewer rows anything may be an accident.
_LEAST_ROWS = 20
#: A separator that stands in so many rows is one.
_MANY = 0.3
#: Names of which so many are different are no labels.
_ALL_DIFFERENT = 0.95
#: Labels of so many words are rare.
_WORDS = 3


def warn_if_swapped(X: Any, y: Any, separator: str | None, who: str, stacklevel: int) -> None:
    """Warn if X holds what looks like labels, and y what looks like texts.

    That is, if the separator stands in texts and in no label; or if almost every row has a label of
    its own, longer than its text, and of several words.

    Parameters
    ----------
    X : sequence of n texts
    y : sequence of n texts, or of n lists of names
        Anything else passes.
    separator : str or None
        Of the names in a text of y.
    who : str
        For the message.
    stacklevel : int
        Of who asked, seen from here.
    """
    if sp.issparse(y) or hasattr(y, "columns") or hasattr(X, "columns"):
        return
    if isinstance(y, str | bytes) or not (isinstance(X, Collection) and isinstance(y, Collection)):
        return  # an iterator can be read only once
    rows = list(islice(zip(X, y, strict=False), _N_LOOKED_AT))
    texts = [text for text, _ in rows if isinstance(text, str)]
    if len(texts) < _LEAST_ROWS:
        return
    cells = [cell for _, cell in rows if isinstance(cell, str)]
    if separator and cells and not any(separator in cell for cell in cells):
        if sum(separator in text for text in texts) > _MANY * len(texts):
            _warn(
                who, f"{separator!r} stands between words of X, such as {texts[0]!r}, and in no "
                f"row of y, such as {cells[0]!r}.", stacklevel,
            )  # fmt: skip
        return
    names = [name for _, cell in rows for name in _names_of(cell)]
    if len(names) < _LEAST_ROWS or len(set(names)) < _ALL_DIFFERENT * len(names):
        return
    length, of_texts = (sum(map(len, some)) / len(some) for some in (names, texts))
    n_words = sum(len(name.split()) for name in names) / len(names)
    if length > of_texts and n_words >= _WORDS:
        _warn(
            who, f"almost every row has a label of its own, such as {names[0]!r}, and labels are "
            f"longer than the texts, such as {texts[0]!r}.", stacklevel,
        )  # fmt: skip


def _names_of(cell: Any) -> list[str]:
    if isinstance(cell, str):
        return [cell]
    some = cell if isinstance(cell, list | tuple | set | frozenset) else ()
    return [name for name in some if isinstance(name, str)]


def _warn(who: str, why: str, stacklevel: int) -> None:
    warnings.warn(
        f"{who}: X and y seem to be swapped: {why} Texts come first, fit(texts, labels).",
        UserWarning,
        stacklevel=stacklevel + 2,
    )
