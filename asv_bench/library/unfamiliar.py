"""How often texts of one set alarm a tagger of another: ``UnfamiliarTextWarning``.

What the default vectorizer learns from the training texts of a set is shown pieces of its own test
texts, in their order, none of which should alarm it; and texts drawn from the test texts of other
sets, from their names of labels in the place of texts, and from book titles in other languages.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from asv_bench.common.data import find_text_files
from asv_bench.common.report import Column, Report
from sklearn_xc.datasets import load_tate_subjects
from sklearn_xc.datasets._files import open_source
from sklearn_xc.exceptions import UnfamiliarTextWarning
from sklearn_xc.text.familiarity import KnownWords

#: Training texts, test texts, and names of labels of test texts.
TextSet = tuple[list[str], list[str], list[str]]
SETS = (
    "cooking_stackexchange", "tate", "english_wordnet", "yso_finna_en", "gutenberg_subjects",
)  # fmt: skip
#: Pieces of a set's own test texts that are shown at most, for each size.
_MOST_PIECES = 300
_LANGUAGES = ("fi", "de", "fr")
#: Training lines of cooking_stackexchange, the others are for the test.
_N_COOKING = 12_404

_COLUMNS = [
    Column("trained", "trained on"),
    Column("shown", "shown"),
    Column("texts", "texts at a time", ",d"),
    Column("times", "times", ",d"),
    Column("alarms", "alarms %", ".1f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[20, 100, 400], metavar="N",
        help="texts in a piece of a set's own (20 100 400)",
    )  # fmt: skip
    parser.add_argument("--times", type=int, default=20, metavar="N", help="drawings (20)")
    parser.add_argument("--drawn", type=int, default=200, metavar="N", help="texts of each (200)")


def main(
    *, report: Report, data: Any, sets: Sequence[str], sizes: Sequence[int], times: int, drawn: int
) -> None:
    """Run the experiment.

    Parameters
    ----------
    report : Report
    data : path-like or None
        Folder with a folder per data set.
    sets : sequence of str
        Of ``SETS``.
    sizes : sequence of int
        Texts in a piece of a set's own test texts.
    times, drawn : int
        How often texts of others are drawn, and how many.
    """
    loaded = {name: _LOADERS[name](data) for name in sets}
    shown = {name: test for name, (_, test, _) in loaded.items()}
    shown |= {f"labels of {name}": labels for name, (_, _, labels) in loaded.items()}
    if "gutenberg_subjects" in sets:
        shown |= _titles_by_language(data)
    rng = np.random.default_rng(0)
    rows = []
    for name, (train, test, _) in loaded.items():
        vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        known = KnownWords.of_fit(vectorizer, train, vectorizer.fit_transform(train))
        for size in sizes:
            starts = range(0, len(test) - size + 1, size)[:_MOST_PIECES]
            pieces = [test[start : start + size] for start in starts]
            rows.append(_row(name, "its own, in order", size, known, vectorizer, pieces))
        for other, texts in shown.items():
            if other != name:
                pieces = [[texts[at] for at in rng.choice(len(texts), drawn)] for _ in range(times)]
                rows.append(_row(name, other, drawn, known, vectorizer, pieces))
    report.table("Texts that alarm a tagger", rows, _COLUMNS)


def _row(
    trained: str, shown: str, size: int, known: Any, vectorizer: Any, pieces: list[list[str]]
) -> dict[str, Any]:
    n = 0
    for piece in pieces:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            known.warn_of_strange(vectorizer, piece, "asv_bench", 1)
        n += any(issubclass(one.category, UnfamiliarTextWarning) for one in caught)
    share = 100 * n / len(pieces) if pieces else np.nan
    return {
        "trained": trained, "shown": shown, "texts": size, "times": len(pieces), "alarms": share,
    }  # fmt: skip


def _lines(path: Any) -> list[list[str]]:
    """Return the cells of each line of a table with tabs."""
    with open_source(path) as source:
        return [line.decode().rstrip("\n").split("\t") for line in source.lines()]


def _texts_and_labels(
    rows: list[list[str]], columns: Sequence[int], names: list[str]
) -> tuple[list[str], list[str]]:
    """Return the texts of rows that end with numbers of labels, and the names of these."""
    texts = [" ".join(row[column] for column in columns) for row in rows]
    labels = ["; ".join(names[int(number)] for number in row[-1].split()) for row in rows]
    return texts, [one for one in labels if one]


def _load_tables(
    name: str, columns: Sequence[int], of_name: int, n_head: int, last: int | None = None
) -> Callable[[Any], TextSet]:
    """Return a loader of a set whose files are tables.

    Parameters
    ----------
    name : str
    columns : sequence of int
        Of the text.
    of_name : int
        Column with the name in the table of labels.
    n_head : int
        Lines before the rows.
    last : int or None
        The first column that is left out, behind that of the labels.
    """

    def load(data: Any) -> TextSet:
        train, test, labels = find_text_files(name, data)
        names = [row[of_name] for row in _lines(labels)[1:]]
        of_train = [row[:last] for row in _lines(train)[n_head:]]
        of_test = [row[:last] for row in _lines(test)[n_head:]]
        return (
            _texts_and_labels(of_train, columns, names)[0],
            *_texts_and_labels(of_test, columns, names),
        )

    return load


def _load_cooking(data: Any) -> TextSet:
    (path,) = find_text_files("cooking_stackexchange", data)
    texts, labels = [], []
    with open_source(path) as source:
        for line in source.lines():
            words = line.decode().split()
            is_label = [word.startswith("__label__") for word in words]
            texts.append(" ".join(w for w, one in zip(words, is_label, strict=True) if not one))
            names = [w[9:] for w, one in zip(words, is_label, strict=True) if one]
            labels.append("; ".join(names))
    return texts[:_N_COOKING], texts[_N_COOKING:], labels[_N_COOKING:]


def _load_tate(_: Any) -> TextSet:
    train: Any = load_tate_subjects("train")
    test: Any = load_tate_subjects("test")
    labels = [
        "; ".join(test.label_names[label] for label in test.target[[row]].indices)
        for row in range(len(test.data))
    ]
    return train.data, test.data, [one for one in labels if one]


def _titles_by_language(data: Any) -> dict[str, list[str]]:
    _, test, _ = find_text_files("gutenberg_subjects", data)
    rows = _lines(test)[1:]
    return {
        f"titles in {language}": [row[1] for row in rows if row[3] == language]
        for language in _LANGUAGES
    }


_LOADERS: dict[str, Callable[[Any], TextSet]] = {
    "cooking_stackexchange": _load_cooking,
    "tate": _load_tate,
    "english_wordnet": _load_tables("english_wordnet", [3], 2, 1, last=5),
    "yso_finna_en": _load_tables("yso_finna_en", [0], 2, 0),
    "gutenberg_subjects": _load_tables("gutenberg_subjects", [1], 1, 1),
}
