"""The data sets at several sizes of the training set, with label texts, and as classes.

A claim about a default must hold for few rows as well as many, and for one class a row as well as
label sets. So each set comes with a sixteenth, a quarter or all of its training rows, drawn once
and nested; texts are vectorized anew at each size, as a user with so many rows would do it.
"""

import pickle
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import (
    cache_folder,
    find_text_files,
    keep,
    load_parts,
    load_set,
    save_parts,
    text_vectorizer,
)
from asv_bench.common.debian import find_debian, read_debian
from asv_bench.common.equal_sets import equal_sets
from asv_bench.embedding.label_texts import read_label_texts
from sklearn_xc.datasets import load_tate_subjects, load_text_dataset

#: Shares of the training rows, by the name of the size.
SIZES = {"1/16": 1 / 16, "1/4": 1 / 4, "all": 1.0}
#: Sets of label sets.
LABEL_SETS = (
    "bibtex", "delicious", "cooking_stackexchange", "tate", "gutenberg_subjects", "english_wordnet",
    "citeulike_t", "yso_finna_en",
)  # fmt: skip
#: Sets of classes: the first label of each row, and in yso_sets equal label sets as one class.
CLASS_SETS = (
    "bibtex:first", "delicious:first", "cooking_stackexchange:first", "english_wordnet:first",
    "yso_sets",
)  # fmt: skip
#: Sets that had no part in any choice of a default, by whether a row has one class; see ``debian``.
NEW_SETS = {"debian_tags": False, "debian_depends": False, "debian_maintainers": True}
#: Sets that are left out at some sizes: too large for a table of many fits.
LARGE = {"yso_finna_en": ("1/16", "1/4"), "yso_sets": ("1/16", "1/4")}

_LABEL_COLUMNS = {
    "yso_finna_en": ["name"],
    "english_wordnet": ["name", "definition"],
    "gutenberg_subjects": ["name"],
}
_COOKING_TRAIN = 12_404
_DTYPE = np.float32


class SizedSet(NamedTuple):
    """A data set with some of its training rows.

    Attributes
    ----------
    name : str
        One of ``LABEL_SETS``, ``CLASS_SETS`` or ``NEW_SETS``.
    X_train, X_test : csr_array or csr_matrix of shape (n, n_features), float32
        Rows of Euclidean norm 1 (0 for a row without features).
    Y_train, Y_test : csr_array of shape (n, n_labels), int8
        Labels; exactly one in each row if `one_class`. Every label of the whole set has its column.
    Z : csr_matrix of shape (n_labels, n_features) or None
        Label texts under the vectorizer of the training texts; None where labels have no texts.
    one_class : bool
        Whether each row has one class.
    texts_train, texts_test, label_texts : list of str or None
        None for bags of words.
    """

    name: str
    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any
    Z: Any
    one_class: bool
    texts_train: list[str] | None
    texts_test: list[str] | None
    label_texts: list[str] | None

    @property
    def y_train(self) -> np.ndarray:
        """Classes of the training rows, if ``one_class``."""
        return self.Y_train.indices

    @property
    def target(self) -> Any:
        """What ``fit`` takes: classes or the indicator."""
        return self.y_train if self.one_class else self.Y_train


def documents_of(name: str) -> str:
    """Return the name of the set whose documents a set has: not its own for sets of classes."""
    return "yso_finna_en" if name == "yso_sets" else name.split(":")[0]


def sizes_of(name: str) -> tuple[str, ...]:
    """Return the sizes at which a set is measured."""
    return LARGE.get(name, tuple(SIZES))


def load_sized_set(name: str, size: str, data: Any, *, cache: Any = None) -> SizedSet:
    """Load a data set with some of its training rows.

    Parameters
    ----------
    name : str
        One of ``LABEL_SETS``, ``CLASS_SETS`` or ``NEW_SETS``.
    size : {"1/16", "1/4", "all"}
        Share of the training rows. All test rows stay.
    data : path-like or None
        Folder with a folder per data set.
    cache : path-like, default=None
        Folder where loaded sets are kept; nothing notices a change of the files in `data`.

    Returns
    -------
    SizedSet

    Raises
    ------
    FileNotFoundError
        If `data` does not hold the files; the message names them.
    ValueError
        For an unknown name or size.
    """
    if name not in (*LABEL_SETS, *CLASS_SETS, *NEW_SETS):
        known = ", ".join((*LABEL_SETS, *CLASS_SETS, *NEW_SETS))
        raise ValueError(f"No data set is called {name!r}, expected one of {known}.")
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}. Got {size!r}.")
    if cache is None:
        return _read(name, size, data)
    folder = cache_folder(f"{name}@{size}".replace("/", "_").replace(":", "_"), cache, _DTYPE)
    if not folder.is_dir():
        keep(folder, partial(_save, _read(name, size, data)))
    X_train, Y_train, X_test, Y_test = load_parts(folder)
    Z = sp.load_npz(folder / "Z.npz") if (folder / "Z.npz").is_file() else None
    texts = pickle.loads((folder / "texts.pickle").read_bytes())
    return SizedSet(name, X_train, Y_train, X_test, Y_test, Z, _one_class(name), *texts)


def _one_class(name: str) -> bool:
    return name in CLASS_SETS or NEW_SETS.get(name, False)


def _save(sized: SizedSet, folder: Path) -> None:
    save_parts(sized, folder)
    if sized.Z is not None:
        sp.save_npz(folder / "Z.npz", sized.Z, compressed=False)
    texts = (sized.texts_train, sized.texts_test, sized.label_texts)
    (folder / "texts.pickle").write_bytes(pickle.dumps(texts))


def _read(name: str, size: str, data: Any) -> SizedSet:
    base = documents_of(name)
    if base in ("bibtex", "delicious", "citeulike_t"):
        split, label_texts, texts = load_set(base, data), None, None
        Y_train, Y_test = split.Y_train, split.Y_test
    else:
        texts, Y_train, Y_test, label_texts = _read_texts(base, data)
    if _one_class(name):
        to_classes = equal_sets if name == "yso_sets" else _first_labels
        (of_train, Y_train), (of_test, Y_test) = to_classes(Y_train, Y_test)
        label_texts = None if name == "yso_sets" else label_texts
    else:
        of_train, of_test = np.arange(Y_train.shape[0]), np.arange(Y_test.shape[0])
    n = len(of_train)
    n_rows = max(1, round(SIZES[size] * n))
    drawn = np.sort(np.random.default_rng(0).permutation(n)[:n_rows])
    Y_train, of_train = Y_train[drawn], of_train[drawn]
    if texts is None:
        X_train, X_test = split.X_train[of_train], split.X_test[of_test]
        return SizedSet(
            name, X_train, Y_train, X_test, Y_test, None, _one_class(name), None, None, None
        )
    train, test = (
        [part[i] for i in rows] for part, rows in zip(texts, (of_train, of_test), strict=True)
    )
    vectorizer = text_vectorizer(_DTYPE)
    X_train, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
    Z = None if label_texts is None else vectorizer.transform(label_texts)
    for matrix in (X_train, X_test, Z):
        if matrix is not None:
            matrix.sort_indices()
    return SizedSet(
        name, X_train, Y_train, X_test, Y_test, Z, _one_class(name), train, test, label_texts
    )


def _read_texts(name: str, data: Any) -> tuple[Any, Any, Any, list[str]]:
    """Return the texts of both parts, their labels, and the label texts."""
    if name == "tate":
        parts: list[Any] = [load_tate_subjects("train"), load_tate_subjects("test")]
        train, test = parts
        return (train.data, test.data), train.target, test.target, list(train.label_names)
    if name in NEW_SETS:
        return read_debian(name, find_debian(data))
    if name == "cooking_stackexchange":
        (path,) = find_text_files(name, data)
        read = load_text_dataset(path, format="fasttext")
        cut = _COOKING_TRAIN
        texts = (read.data[:cut], read.data[cut:])
        names = [tag.replace("-", " ") for tag in read.label_names]
        return texts, read.target[:cut], read.target[cut:], names
    train_path, test_path, labels = find_text_files(name, data)
    label_texts = read_label_texts(labels, _LABEL_COLUMNS[name])
    layout = {"yso_finna_en": {"format": "text_labels"}}.get(name, {"format": "tsv"})
    columns = {
        "english_wordnet": ["members", "definition"], "gutenberg_subjects": ["title", "author"],
    }.get(name)  # fmt: skip
    train, test = (
        load_text_dataset(path, n_labels=len(label_texts), text_columns=columns, **layout)
        for path in (train_path, test_path)
    )
    return (train.data, test.data), train.target, test.target, label_texts


def _first_labels(Y_train: Any, Y_test: Any) -> list[tuple[np.ndarray, Any]]:
    """Return the rows with labels of both parts, and an indicator of the first label of each."""
    return [_indicator(Y, *_first_of(Y)) for Y in (Y_train, Y_test)]


def _first_of(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    Y = sp.csr_array(Y)
    Y.sort_indices()
    rows = np.flatnonzero(np.diff(Y.indptr))
    return rows, Y.indices[Y.indptr[rows]]


def _indicator(Y: Any, rows: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, Any]:
    shape = (len(rows), Y.shape[1])
    ones = np.ones(len(rows), np.int8)
    return rows, sp.csr_array((ones, classes, np.arange(len(rows) + 1)), shape=shape)
