"""Texts where labels should be, and labels where texts should be."""

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, NamedTuple

import scipy.sparse as sp

from sklearn_xc._containers import frame_columns, is_missing
from sklearn_xc._name_lists import names_in

#: Rows that are looked at first.
_N_LOOKED_AT = 2000
#: In fewer rows anything may be an accident.
_LEAST_ROWS = 20
#: A separator that stands in so many rows is one.
_MANY = 0.3
#: Names of which so many are different are no labels.
_ALL_DIFFERENT = 0.95
#: Labels of so many words are rare.
_WORDS = 3
#: Labels of which so many are in one row alone are none, if they are long besides.
_NO_LABELS = 0.8
#: A label with so many words on average is a sentence.
_SENTENCE = 5


class LabelShape(NamedTuple):
    """How labels look beside their texts.

    Attributes
    ----------
    alone : float
        The share of the labels of all rows that no other row has.
    is_longer, is_sentence : bool
        Whether a label is longer than a text on average, and whether it has five words or more.
    """

    alone: float
    is_longer: bool
    is_sentence: bool

    @property
    def looks_like_texts(self) -> bool:
        """Whether these are certainly no labels."""
        return self.alone >= _NO_LABELS and (self.is_longer or self.is_sentence)

    @property
    def looks_swapped(self) -> bool:
        """Whether these are certainly no labels, and the texts look more like some."""
        return self.looks_like_texts and self.is_longer


def label_shape(counts: Counter[str], texts: Sequence[str]) -> LabelShape:
    """Return how labels look beside their texts.

    Parameters
    ----------
    counts : Counter
        Rows with each label, at least one.
    texts : sequence of str
        At least one.
    """
    total = counts.total()
    mean_label = sum(n * len(name) for name, n in counts.items()) / total
    mean_text = sum(map(len, texts)) / len(texts)
    n_words = sum(n * len(name.split()) for name, n in counts.items()) / total
    alone = sum(n == 1 for n in counts.values()) / total
    return LabelShape(alone, mean_label > mean_text, n_words >= _SENTENCE)


def refuse_swapped(
    X: Any, y: Any, separator: str | None, who: str, *, may_be_alone: bool, stacklevel: int
) -> None:
    """Raise ValueError if X and y are certainly swapped, and warn if they seem so.

    It is certain if four fifths of the labels are in one row alone, and if labels are longer than
    texts: the command line says the same of such columns. It seems so if the separator stands in
    texts and in no label; or if almost every row has a label of its own, longer than its text, and
    of several words.

    Parameters
    ----------
    X : sequence of n texts
    y : sequence of n texts, or of n lists of names
        Anything else passes.
    separator : str or None
        Of the names in a text of y.
    who : str
        For the message.
    may_be_alone : bool
        Whether labels that one row has may be meant, since they have texts of their own: then there
        is no error.
    stacklevel : int
        Of who asked, seen from here.

    Raises
    ------
    ValueError
        That shows a label, and says what to try.
    """
    if sp.issparse(y) or frame_columns(y) is not None or frame_columns(X) is not None:
        return
    if isinstance(y, str | bytes) or not (isinstance(X, Collection) and isinstance(y, Collection)):
        return  # an iterator can be read only once
    rows = list(islice(zip(X, y, strict=False), _N_LOOKED_AT))
    texts = [text for text, _ in rows if isinstance(text, str)]
    if len(texts) < _LEAST_ROWS:
        return
    names = [name for _, cell in rows for name in _names_of(cell, separator)]
    shape = label_shape(Counter(names), texts) if len(names) >= _LEAST_ROWS else None
    if shape is not None and shape.looks_swapped and not may_be_alone:
        _refuse(X, y, separator, who)
    cells = [cell for _, cell in rows if isinstance(cell, str)]
    if separator and cells and not any(separator in cell for cell in cells):
        if sum(separator in text for text in texts) > _MANY * len(texts):
            _warn(
                who, f"{separator!r} stands between words of X, such as {texts[0]!r}, and in no "
                f"row of y, such as {cells[0]!r}.", stacklevel,
            )  # fmt: skip
        return
    if shape is None or not shape.is_longer or len(set(names)) < _ALL_DIFFERENT * len(names):
        return
    if sum(len(name.split()) for name in names) / len(names) >= _WORDS:
        _warn(
            who, f"almost every row has a label of its own, such as {names[0]!r}, and labels are "
            f"longer than the texts, such as {texts[0]!r}.", stacklevel,
        )  # fmt: skip


def _refuse(X: Any, y: Any, separator: str | None, who: str) -> None:
    """Raise ValueError if what holds for the first rows does for all."""
    counts = Counter(name for cell in y for name in _names_of(cell, separator))
    texts = [text for text in X if isinstance(text, str)]
    shape = label_shape(counts, texts)
    if not shape.looks_swapped:
        return
    one = min(counts, key=counts.__getitem__)
    raise ValueError(
        f"{who}: y must hold labels, short names that several rows share. X and y seem to be "
        f"swapped: texts come first, fit(texts, labels). Got what looks like texts: "
        f"{shape.alone:.0%} of it is in one row alone, such as {one[:60]!r}. If these are labels "
        "indeed, pass them as an indicator, which LabelBinarizerXC().fit_transform(y) makes of "
        "lists of names."
    )


def _names_of(cell: Any, separator: str | None) -> list[str]:
    if isinstance(cell, str):
        return names_in(cell, separator)
    if is_missing(cell):
        return []
    some = cell if isinstance(cell, list | tuple | set | frozenset) else ()
    return [name for name in some if isinstance(name, str)]


def _warn(who: str, why: str, stacklevel: int) -> None:
    warnings.warn(
        f"{who}: X and y seem to be swapped: {why} Texts come first, fit(texts, labels).",
        UserWarning,
        stacklevel=stacklevel + 2,
    )
