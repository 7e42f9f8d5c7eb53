"""Whether the columns of texts and of labels may have been taken for one another."""

from collections import Counter
from typing import Any

from sklearn_xc.command_line.errors import CommandError, say
from sklearn_xc.command_line.labelled_rows import LabelledRows
from sklearn_xc.text.swapped_columns import label_shape

#: A share of labels that no other row has, from which on there is a note.
_FEW_SHARED = 0.5
#: A separator that stands in so many texts is one.
_MANY = 0.3
#: Characters of a label that are shown.
_MOST_SHOWN = 60


def check_columns(rows: LabelledRows, counts: Counter[str], options: Any) -> None:
    """Say that the labels look like texts, or are not shared by rows.

    A label is learnt from the rows that share it. Where nearly every row has one of its own, which
    is long besides, the columns were swapped, or the column holds something else: that is an error.
    Where only one of both is so, a note is printed.

    Parameters
    ----------
    rows : LabelledRows
    counts : Counter
        Rows with each label.
    options : argparse.Namespace
        Of ``fit``.

    Raises
    ------
    CommandError
        That shows a label, and says what to try.
    """
    shape = label_shape(counts, rows.texts)
    alone, is_longer = shape.alone, shape.is_longer
    shown = _shown(counts)
    swapped = (
        f" Are --text and --labels swapped? Try --text {options.labels} --labels {options.text[0]}."
    )
    if shape.looks_like_texts:
        raise CommandError(
            f"{options.table}: column {options.labels!r} looks like texts, not like labels: "
            f"{alone:.0%} of what it holds is in one row alone, such as {shown!r}. A label is a "
            "short name that several rows share."
            + (swapped if is_longer else " Which column holds such names (--labels)?")
        )
    if options.quiet:
        return
    if _separates_texts(rows, options.separator):
        say(
            f"note: {options.separator!r} (--separator) stands in many texts, and in no cell of "
            f"{options.labels!r}.{swapped}"
        )
    elif is_longer:
        say(
            f"note: labels of {options.labels!r} are longer than the texts on average, such as "
            f"{shown!r}.{swapped}"
        )
    elif alone >= _FEW_SHARED:
        say(
            f"note: {alone:.0%} of the labels in {options.labels!r} are in one row alone, such as "
            f"{shown!r}: from these nothing is learnt about other rows. Is it the right column?"
        )


def _separates_texts(rows: LabelledRows, separator: str | None) -> bool:
    """Return whether the separator of labels stands between words of texts instead."""
    if separator is None or any(len(names) > 1 for names in rows.labels):
        return False
    return sum(separator in text for text in rows.texts) > _MANY * len(rows.texts)


def _shown(counts: Counter[str]) -> str:
    """Return the beginning of a label that is in few rows."""
    name = min(counts, key=counts.__getitem__)
    return name if len(name) <= _MOST_SHOWN else name[:_MOST_SHOWN].rstrip() + "..."
