"""The data sets of the experiments, as training and test matrices with rows of unit length."""

import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import normalize

from asv_bench.common.equal_sets import equal_sets
from sklearn_xc.datasets import (
    load_tate_subjects,
    load_text_dataset,
    load_xmc_file,
)
from sklearn_xc.datasets._files import open_source

#: What the generator of synthetic reference sets is called with, by set.
_GENERATED = {
    "syn4k": (
        "--n-train 15000 --n-test 3800 --n-features 5000 --n-labels 4000 --nnz 235 "
        "--labels-per-row 5.6 --sig-hit 0.33 --sig-per-label 10 --confuse 0.6 --miss 0.12 --seed 1"
    )
}
#: Of yso_rare: words in more of the titles are left out.
_MOST_TITLES = 300
#: Of citeulike_t: labels with fewer items are left out.
_MIN_ITEMS = 5

#: Of the sets of texts: files of the training set, the test set and the labels, what they hold in
#: words, and how load_text_dataset reads them.
_TEXT_SETS: dict[str, tuple[Sequence[str], str, dict[str, Any]]] = {
    "yso_finna_en": (
        ("train.tsv.xz", "test.tsv.xz", "labels.tsv.gz"),
        "lines of text, TAB and label numbers, and a table of the labels",
        {"format": "text_labels"},
    ),
    "english_wordnet": (
        ("hypernym_train.tsv.gz", "hypernym_test.tsv.gz", "hypernym_labels.tsv.gz"),
        "tables of definitions and of labels",
        {"format": "tsv", "text_columns": ["members", "definition"]},
    ),
    "cooking_stackexchange": (
        ("cooking.stackexchange.txt",),
        "lines of __label__ words and text",
        {"format": "fasttext"},
    ),
    "gutenberg_subjects": (
        ("train.tsv.gz", "test.tsv.gz", "labels.tsv.gz"),
        "tables of books and of labels",
        {"format": "tsv", "text_columns": ["title", "author"]},
    ),
}

PARTS = ("X_train", "Y_train", "X_test", "Y_test")

#: Sizes of the sets that this process has loaded, for the records.
_loaded: dict[str, dict[str, int]] = {}


class SplitSet(NamedTuple):
    """A data set with its split.

    Attributes
    ----------
    name : str
        A key of ``SETS``.
    X_train, X_test : csr_array or csr_matrix of shape (n, n_features), float32 or float64
        Rows of Euclidean norm 1 (0 for a row without features).
    Y_train, Y_test : csr_array of shape (n, n_labels), int8
        Labels.
    """

    name: str
    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any


def load_set(name: str, data: Any, *, dtype: Any = np.float32, cache: Any = None) -> SplitSet:
    """Load a data set.

    Parameters
    ----------
    name : str
        A key of ``SETS``. bibtex and delicious are bags of words with the split of the Extreme
        Classification Repository. tate is tf-idf of the texts that come with the package (words of
        at least two works), so that it needs no files. yso_finna_en, english_wordnet (words and
        gloss) and gutenberg_subjects (title and author) are tf-idf, with sublinear term
        frequencies, of the words in at least two training texts. yso_sets are the rows of
        yso_finna_en whose label set two or more training rows have, equal sets as classes; yso_rare
        is every second of its training rows, with words in at most 300 of them, and yso_quarter the
        first quarter, with words in at least two of them. citeulike_t has the
        tags with 5 or more items, tf-idf, and a random fifth for the test. syn4k is made by the
        generator in the folder `data`.
    data : path-like or None
        Folder with a folder per data set.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the features.
    cache : path-like, default=None
        Folder where loaded sets are kept, a folder each: the four matrices as .npz files of scipy.
        A set that is there is not read from `data`; nothing notices a change of the files in
        `data`.

    Returns
    -------
    SplitSet

    Raises
    ------
    FileNotFoundError
        If `data` does not hold the files; the message names them.
    ValueError
        For an unknown name.
    """
    if name not in SETS:
        raise ValueError(f"No data set is called {name!r}, expected one of {', '.join(SETS)}.")
    folder = None if cache is None else cache_folder(name, cache, dtype)
    if folder is not None and folder.is_dir():
        split = SplitSet(name, *load_parts(folder))
    else:
        split = SETS[name](name, data, dtype)
        if folder is not None:
            keep(folder, partial(save_parts, split))
    note_size(name, split.X_train, split.Y_train, split.X_test)
    return split


def note_size(name: str, X_train: Any, Y_train: Any, X_test: Any = None) -> None:
    """Note how large a set is, for the record of the experiment; ``load_set`` does so.

    Parameters
    ----------
    name : str
        What it is called.
    X_train, X_test : array or sparse array of shape (n, n_features)
        Instances; X_test may be None.
    Y_train : array or sparse array of shape (n, n_labels)
        Labels.
    """
    _loaded[name] = {
        "n_train": X_train.shape[0],
        "n_test": 0 if X_test is None else X_test.shape[0],
        "n_features": X_train.shape[1],
        "n_nonzeros": int(X_train.nnz) if sp.issparse(X_train) else X_train.size,
        "n_labels": Y_train.shape[1],
        "n_pairs": int(Y_train.nnz) if sp.issparse(Y_train) else int((Y_train != 0).sum()),
    }


def loaded_sizes() -> dict[str, dict[str, int]]:
    """Return the sizes that :func:`note_size` has noted in this process, by set."""
    return dict(_loaded)


def cache_folder(name: str, cache: Any, dtype: Any = np.float32) -> Path:
    """Return where :func:`load_set` keeps a set."""
    return Path(cache, f"{name}_{np.dtype(dtype).name}")


def take_labels(Y: Any, n_labels: int | None) -> np.ndarray:
    """Return column numbers of Y in rising order: all, or `n_labels` of them drawn with seed 0.

    Parameters
    ----------
    Y : sparse array of shape (n, L)
        Labels.
    n_labels : int or None
        How many; None, or L or more, for all.

    Returns
    -------
    ndarray of int64
    """
    everything = np.arange(Y.shape[1])
    if n_labels is None or n_labels >= len(everything):
        return everything
    return np.sort(np.random.default_rng(0).choice(everything, n_labels, replace=False))


def save_parts(split: Any, folder: Path) -> None:
    """Write the four matrices of a set into a folder."""
    for part in PARTS:
        sp.save_npz(folder / f"{part}.npz", getattr(split, part), compressed=False)


def load_parts(folder: Path) -> list[Any]:
    """Return the four matrices that :func:`save_parts` wrote."""
    return [sp.load_npz(folder / f"{part}.npz") for part in PARTS]


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Have a set written to a folder of the cache; it stands there complete or not at all."""
    unfinished = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    unfinished.mkdir(parents=True)
    try:
        write(unfinished)
        unfinished.rename(folder)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not folder.is_dir():  # else another process was faster
            raise


def _find(name: str, data: Any, files: Sequence[str], layout: str) -> list[Path]:
    """Return the paths of a set's files, or raise an error that says which are missing."""
    wanted = (
        f"The data set {name} needs {' and '.join(files)}, {layout}, in the folder that --data "
        "names"
    )
    if data is None:
        raise FileNotFoundError(f"{wanted}; --data is missing.")
    paths = [Path(data, file) for file in files]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{wanted}; there is no {' and no '.join(missing)}.")
    return paths


def find_text_files(name: str, data: Any) -> list[Path]:
    """Return the files of a set of texts: of training, of test and of labels, or of all in one."""
    files, contents, _ = _TEXT_SETS[name]
    return _find(name, data, [f"{name}/{file}" for file in files], contents)


def _load_repository_set(name: str, data: Any, dtype: Any) -> SplitSet:
    files = [f"{name}/{name}_{part}.txt.gz" for part in ("train", "test")]
    layout = "in the text format of the Extreme Classification Repository"
    return _read_repository_files(name, _find(name, data, files, layout), dtype)


def _read_repository_files(name: str, paths: Sequence[Path], dtype: Any) -> SplitSet:
    (X, Y), (X_test, Y_test) = (load_xmc_file(path, dtype=dtype) for path in paths)
    return SplitSet(name, normalize(X), Y, normalize(X_test), Y_test)


def _load_tate(name: str, data: Any, dtype: Any) -> SplitSet:
    train_texts, Y_train = load_tate_subjects("train", return_X_y=True)
    test_texts, Y_test = load_tate_subjects("test", return_X_y=True)
    vectorizer = TfidfVectorizer(dtype=dtype, min_df=2)
    return _vectorize(name, vectorizer, train_texts, Y_train, test_texts, Y_test)


def _load_texts(name: str, data: Any, dtype: Any) -> SplitSet:
    return vectorize_texts(name, data, dtype)[0]


def vectorize_texts(name: str, data: Any, dtype: Any) -> tuple[SplitSet, TfidfVectorizer, Path]:
    """Return a set of texts as tf-idf, its fitted vectorizer, and the table of its labels."""
    layout = _TEXT_SETS[name][2]
    train, test, labels = find_text_files(name, data)
    n_labels = _count_labels(labels)
    of_train = load_text_dataset(train, n_labels=n_labels, **layout)
    of_test = load_text_dataset(test, n_labels=n_labels, **layout)
    vectorizer = text_vectorizer(dtype)
    split = _vectorize(
        name, vectorizer, of_train.data, of_train.target, of_test.data, of_test.target
    )
    return split, vectorizer, labels


def text_vectorizer(dtype: Any, vocabulary: Any = None) -> TfidfVectorizer:
    """Return the vectorizer of the sets of texts: of the words in at least two of them."""
    return TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=dtype, vocabulary=vocabulary)


def _vectorize(
    name: str, vectorizer: Any, train: list[str], Y_train: Any, test: list[str], Y_test: Any
) -> SplitSet:
    X_train = vectorizer.fit_transform(train)
    X_test = vectorizer.transform(test)
    X_train.sort_indices()
    X_test.sort_indices()
    return SplitSet(name, X_train, Y_train, X_test, Y_test)


def _count_labels(path: Path) -> int:
    """Return one more than the number that the last line of a table of labels begins with."""
    with open_source(path) as source:
        lines = source.stream.read().decode("utf-8").rstrip("\n").split("\n")
    return int(lines[-1].split("\t", 1)[0]) + 1


def _load_label_sets(name: str, data: Any, dtype: Any) -> SplitSet:
    split = _load_texts("yso_finna_en", data, dtype)
    parts = equal_sets(split.Y_train, split.Y_test)
    (train, Y_train), (test, Y_test) = parts
    return SplitSet(name, split.X_train[train], Y_train, split.X_test[test], Y_test)


def _load_some_titles(
    rows: Callable[[int], slice], least: int, most: float, name: str, data: Any, dtype: Any
) -> SplitSet:
    """Return some training rows of yso_finna_en, with the words that so many of them have."""
    split = _load_texts("yso_finna_en", data, dtype)
    some = rows(split.X_train.shape[0])
    X_train = split.X_train[some]
    counts = np.bincount(X_train.indices, minlength=X_train.shape[1])
    words = np.flatnonzero((counts >= least) & (counts <= most))
    return SplitSet(
        name, normalize(X_train[:, words]), split.Y_train[some],
        normalize(split.X_test[:, words]), split.Y_test,
    )  # fmt: skip


def _load_citeulike(name: str, data: Any, dtype: Any) -> SplitSet:
    files = [f"{name}/{name}_all.txt.gz"]
    layout = "in the text format of the Extreme Classification Repository"
    (path,) = _find(name, data, files, layout)
    X, Y = load_xmc_file(path, dtype=dtype)
    enough = np.bincount(Y.indices, minlength=Y.shape[1]) >= _MIN_ITEMS
    Y = Y[:, np.flatnonzero(enough)]
    order = np.random.default_rng(0).permutation(X.shape[0])
    train, test = np.split(order, [int(0.8 * len(order))])
    weighting = TfidfTransformer()
    X_train = weighting.fit_transform(X[train]).astype(dtype, copy=False)
    X_test = weighting.transform(X[test]).astype(dtype, copy=False)
    return SplitSet(name, X_train, Y[train], X_test, Y[test])


def _generate(name: str, data: Any, dtype: Any) -> SplitSet:
    script = "synthetic/gen.py"
    layout = "the generator of the synthetic reference sets"
    (path,) = _find(name, data, [script], layout)
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(path.resolve()), "--out", str(Path(folder, name))]
        done = subprocess.run(
            [*command, *_GENERATED[name].split()],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise RuntimeError(f"The data set {name}: {path} failed: {reason}")
        files = [Path(folder, f"{name}_{part}.txt") for part in ("train", "test")]
        return _read_repository_files(name, files, dtype)


SETS: dict[str, Callable[[str, Any, Any], SplitSet]] = {
    "bibtex": _load_repository_set,
    "delicious": _load_repository_set,
    "tate": _load_tate,
    "syn4k": _generate,
    "citeulike_t": _load_citeulike,
    "yso_finna_en": _load_texts,
    "english_wordnet": _load_texts,
    "gutenberg_subjects": _load_texts,
    "yso_sets": _load_label_sets,
    "yso_rare": partial(_load_some_titles, lambda n: slice(0, n, 2), 1, _MOST_TITLES),
    "yso_quarter": partial(_load_some_titles, lambda n: slice(n // 4), 2, np.inf),
}
