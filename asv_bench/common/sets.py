"""The data sets: ``load(name, data, size)`` reads, splits and vectorizes any of them.

Every set comes with a sixteenth, a quarter or all of its training rows, drawn once and nested, and
with all test rows. Texts are vectorized anew at each size: tf-idf with sublinear term frequencies
of the words in at least two training texts. Rows have Euclidean norm 1, or 0 without features.

* bibtex, delicious: bags of words, with the split of the Extreme Classification Repository;
* citeulike_t: tags with at least 5 items, a random fifth for the test;
* tate: the texts that the package contains; needs no files;
* cooking_stackexchange, gutenberg_subjects, english_wordnet, yso_finna_en: texts, and labels with
  names;
* debian_tags, debian_depends, debian_maintainers: names and descriptions of Debian's packages, on
  which no default was chosen; see ``debian``;
* NAME:first: the first label of each row as its class;
* kirjasto, icd10cm: texts, from which no licence allows a copy in the package, and descriptions of
  codes;
* yso_sets: equal label sets of yso_finna_en as classes; yso_rare: every other of its titles, with
  the words that at most 300 have;
* syn4k: long documents, made by ``synthetic/gen.py`` in the folder of the data.
"""

import gzip
import json
import lzma
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import normalize

from asv_bench.common.debian import DEBIAN, read_debian
from sklearn_xc.datasets import load_tate_subjects, load_xmc_file

#: Shares of the training rows.
SIZES = {"1/16": 1 / 16, "1/4": 1 / 4, "all": 1.0}
LABEL_SETS = (
    *("bibtex", "delicious", "cooking_stackexchange", "tate", "gutenberg_subjects"),
    *("english_wordnet", "citeulike_t", "yso_finna_en"),
)
CLASS_SETS = (
    *("bibtex:first", "delicious:first", "cooking_stackexchange:first", "english_wordnet:first"),
    "yso_sets",
)
#: Sets on which no default was chosen.
NEW_SETS = tuple(DEBIAN)
SETS = (*LABEL_SETS, *CLASS_SETS, *NEW_SETS, "syn4k", "kirjasto", "icd10cm", "yso_rare")
#: Too large for a table of many fits at their full size.
_LARGE = ("yso_finna_en", "yso_sets")

#: Training file, test file and table of labels; columns of texts and of label texts. Without the
#: latter, the table has no header, and its last column counts.
_TEXTS: dict[str, tuple[Sequence[str], Sequence[str], Sequence[str]]] = {
    "yso_finna_en": (("train.tsv.xz", "test.tsv.xz", "labels.tsv.gz"), (), ("name",)),
    "kirjasto": (("train.tsv.xz", "test.tsv.xz", "labels.tsv.gz"), (), ()),
    "icd10cm": (("train.tsv.xz", "test.tsv.xz", "labels.tsv.gz"), (), ()),
    "english_wordnet": (
        ("hypernym_train.tsv.gz", "hypernym_test.tsv.gz", "hypernym_labels.tsv.gz"),
        ("members", "definition"),
        ("name", "definition"),
    ),
    "gutenberg_subjects": (
        ("train.tsv.gz", "test.tsv.gz", "labels.tsv.gz"),
        ("title", "author"),
        ("name",),
    ),
}
_COOKING = "cooking.stackexchange.txt"
_COOKING_TRAIN = 12_404
_SYN4K = (
    "--n-train 15000 --n-test 3800 --n-features 5000 --n-labels 4000 --nnz 235 --labels-per-row 5.6"
    " --sig-hit 0.33 --sig-per-label 10 --confuse 0.6 --miss 0.12 --seed 1"
)
_MIN_ITEMS = 5
#: Of yso_rare: words in more of the titles are left out.
_MOST_TITLES = 300
_PARTS = ("X_train", "Y_train", "X_test", "Y_test")

#: Sizes of the sets that this process has loaded, for the records.
loaded: dict[str, dict[str, int]] = {}


class DataSet(NamedTuple):
    """A data set with its split.

    Attributes
    ----------
    name : str
        One of ``SETS``.
    X_train, X_test : csr_array of shape (n, n_features)
        Instances.
    Y_train, Y_test : csr_array of shape (n, n_labels), int8
        Labels; every label of the whole set has its column.
    Z : csr_array of shape (n_labels, n_features) or None
        Label texts under the vectorizer of the training texts.
    texts : tuple of three lists of str, or None
        Training, test and label texts; None for bags of words.
    """

    name: str
    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any
    Z: Any = None
    texts: tuple[list[str], list[str], list[str]] | None = None

    @property
    def one_class(self) -> bool:
        """Whether each row has exactly one class."""
        return self.name in CLASS_SETS or self.name == "debian_maintainers"

    @property
    def target(self) -> Any:
        """The y of ``fit``: classes, or the indicator."""
        return self.Y_train.indices if self.one_class else self.Y_train


def sizes_of(name: str) -> tuple[str, ...]:
    """Return the sizes at which a set is measured."""
    return ("1/16", "1/4") if name in _LARGE else tuple(SIZES)


def documents_of(name: str) -> str:
    """Return the name of the set that has the same documents."""
    return "yso_finna_en" if name in ("yso_sets", "yso_rare") else name.split(":")[0]


def load(
    name: str, data: Any, size: str = "all", *, cache: Any = None, dtype: Any = np.float32
) -> DataSet:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of ``SETS``.
    data : path-like or None
        Folder with a folder per data set.
    size : {"1/16", "1/4", "all"}, default="all"
        Share of the training rows.
    cache : path-like, default=None
        Folder that keeps loaded sets; changes of the files in `data` go unnoticed.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the features.

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names it.
    ValueError
        For an unknown name or size.
    """
    if name not in SETS or size not in SIZES:
        raise ValueError(
            f"Expected a set of {', '.join(SETS)} and a size of {', '.join(SIZES)}. Got {name!r} "
            f"and {size!r}."
        )
    if cache is None:
        found = _read(name, data, size, dtype)
    else:
        folder = cache_folder(name, size, cache, dtype)
        if not folder.is_dir():
            _keep(_read(name, data, size, dtype), folder)
        found = _load_kept(name, folder)
    note_size(name if size == "all" else f"{name}, {size}", found.X_train, found.Y_train)
    return found


def note_size(name: str, X: Any, Y: Any) -> None:
    """Note the size of a set, for the record of the experiment."""
    loaded[name] = {
        "n_train": X.shape[0],
        "n_features": X.shape[1],
        "n_nonzeros": int(X.nnz) if sp.issparse(X) else X.size,
        "n_labels": Y.shape[1],
        "n_pairs": int(Y.nnz),
    }


def take_labels(Y: Any, n_labels: int | None) -> np.ndarray:
    """Return all columns of Y, or `n_labels` of them drawn with seed 0, in rising order."""
    if n_labels is None or n_labels >= Y.shape[1]:
        return np.arange(Y.shape[1])
    return np.sort(np.random.default_rng(0).choice(Y.shape[1], n_labels, replace=False))


def seen_labels(Y: Any) -> np.ndarray:
    """Return the columns of Y that have an entry."""
    return np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))


def cache_folder(name: str, size: str, cache: Any, dtype: Any = np.float32) -> Path:
    """Return the folder that keeps a loaded set."""
    known = f"{name}@{size}".replace("/", "_").replace(":", "_")
    return Path(cache, f"{known}_{np.dtype(dtype).name}")


def find_files(data: Any, *files: str) -> list[Path]:
    """Return the paths of files in the folder of the data, or an error that names those missing."""
    wanted = f"{' and '.join(files)} must be in the folder that --data names"
    if data is None:
        raise FileNotFoundError(f"{wanted}; --data is missing.")
    paths = [Path(data, file) for file in files]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{wanted}; there is no {' and no '.join(missing)}.")
    return paths


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that may be compressed."""
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().rstrip("\n").split("\n")


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table with TABs and a header."""
    header, *lines = read_lines(path)
    names = header.split("\t")
    last = len(names) - 1  # TABs in the last column are part of it
    return [dict(zip(names, line.split("\t", last), strict=True)) for line in lines]


def _keep(found: DataSet, folder: Path) -> None:
    """Write a set to a folder, which appears complete or not at all."""
    unfinished = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    unfinished.mkdir(parents=True)
    for part in (*_PARTS, *(["Z"] if found.Z is not None else [])):
        sp.save_npz(unfinished / f"{part}.npz", getattr(found, part), compressed=False)
    if found.texts is not None:
        (unfinished / "texts.json").write_text(json.dumps(found.texts), encoding="utf-8")
    try:
        unfinished.rename(folder)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not folder.is_dir():  # else another process was faster
            raise


def _load_kept(name: str, folder: Path) -> DataSet:
    parts = [sp.load_npz(folder / f"{part}.npz") for part in _PARTS]
    Z = sp.load_npz(folder / "Z.npz") if (folder / "Z.npz").is_file() else None
    texts = folder / "texts.json"
    kept = tuple(json.loads(texts.read_text(encoding="utf-8"))) if texts.is_file() else None
    return DataSet(name, *parts, Z, kept)


def _read(name: str, data: Any, size: str, dtype: Any) -> DataSet:
    base, texts = documents_of(name), None
    if base in ("bibtex", "delicious", "citeulike_t", "syn4k"):
        X_train, Y_train, X_test, Y_test = _read_bags(base, data, dtype)
    else:
        texts, Y_train, Y_test = _read_texts(base, data)
    of_train, of_test = np.arange(Y_train.shape[0]), np.arange(Y_test.shape[0])
    if name == "yso_rare":
        of_train, Y_train = of_train[::2], Y_train[::2]
    if name in CLASS_SETS:
        to_classes = equal_sets if name == "yso_sets" else first_labels
        (of_train, Y_train), (of_test, Y_test) = to_classes(Y_train, Y_test)
    n_rows = max(1, round(SIZES[size] * len(of_train)))
    if n_rows < len(of_train):
        drawn = np.sort(np.random.default_rng(0).permutation(len(of_train))[:n_rows])
        Y_train, of_train = Y_train[drawn], of_train[drawn]
    if texts is None:
        return DataSet(name, X_train[of_train], Y_train, X_test[of_test], Y_test)
    train, test = ([texts[p][i] for i in rows] for p, rows in enumerate((of_train, of_test)))
    words = {"max_df": _MOST_TITLES} if name == "yso_rare" else {"min_df": 2}
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=dtype, **words)
    X_train, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
    Z = None if name in ("yso_sets", "yso_rare") else vectorizer.transform(texts[2])
    for matrix in (X_train, X_test, Z):
        if matrix is not None:
            matrix.sort_indices()
    return DataSet(name, X_train, Y_train, X_test, Y_test, Z, (train, test, texts[2]))


def _read_bags(name: str, data: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    if name == "citeulike_t":
        (path,) = find_files(data, f"{name}/{name}_all.txt.gz")
        X, Y = load_xmc_file(path, dtype=dtype)
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        Y = Y[:, np.flatnonzero(counts >= _MIN_ITEMS)]
        order = np.random.default_rng(0).permutation(X.shape[0])
        train, test = np.split(order, [int(0.8 * len(order))])
        weighting = TfidfTransformer().fit(X[train])
        X_train, X_test = (weighting.transform(X[p]).astype(dtype) for p in (train, test))
        return X_train, Y[train], X_test, Y[test]
    with TemporaryDirectory() as folder:
        if name == "syn4k":
            (script,) = find_files(data, "synthetic/gen.py")
            command = [sys.executable, str(script.resolve()), "--out", str(Path(folder, name))]
            subprocess.run([*command, *_SYN4K.split()], check=True, stdout=subprocess.DEVNULL)
            paths = [Path(folder, f"{name}_{part}.txt") for part in ("train", "test")]
        else:
            paths = find_files(data, *(f"{name}/{name}_{p}.txt.gz" for p in ("train", "test")))
        (X, Y), (X_test, Y_test) = (load_xmc_file(path, dtype=dtype) for path in paths)
    return normalize(X), Y, normalize(X_test), Y_test


def _read_texts(name: str, data: Any) -> tuple[Any, Any, Any]:
    """Return training, test and label texts, and both parts' labels."""
    if name == "tate":
        train, test = load_tate_subjects("train"), load_tate_subjects("test")
        return (train.data, test.data, list(train.label_names)), train.target, test.target
    if name in DEBIAN:
        return read_debian(name, find_files(data, "debian/Packages.xz")[0])
    if name == "cooking_stackexchange":
        (path,) = find_files(data, f"{name}/{_COOKING}")
        return _read_cooking(path)
    files, columns, label_columns = _TEXTS[name]
    paths = find_files(data, *(f"{name}/{file}" for file in files))
    if label_columns:
        labels = [" ".join(row[c] for c in label_columns) for row in read_table(paths[2])]
    else:
        labels = [line.rpartition("\t")[2] for line in read_lines(paths[2])]
    texts, targets = [], []
    for path in paths[:2]:
        if columns:
            rows = [(" ".join(r[c] for c in columns), r["labels"]) for r in read_table(path)]
        else:
            rows = [(t, n) for t, _, n in (line.partition("\t") for line in read_lines(path))]
        texts.append([text for text, _ in rows])
        targets.append(_indicator([list(map(int, n.split())) for _, n in rows], len(labels)))
    return (*texts, labels), *targets


def _read_cooking(path: Path) -> tuple[Any, Any, Any]:
    texts, tags = [], []
    for line in read_lines(path):
        words = line.split(" ")
        n = sum(word.startswith("__label__") for word in words)
        texts.append(" ".join(words[n:]).strip())
        tags.append([word.removeprefix("__label__") for word in words[:n]])
    names = sorted({tag for of_text in tags for tag in of_text})
    number = {tag: i for i, tag in enumerate(names)}
    Y = _indicator([[number[tag] for tag in of_text] for of_text in tags], len(names))
    cut, labels = _COOKING_TRAIN, [name.replace("-", " ") for name in names]
    return (texts[:cut], texts[cut:], labels), Y[:cut], Y[cut:]


def _indicator(labels: Sequence[Sequence[int]], n_labels: int) -> Any:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in labels])])
    indices = np.array([label for row in labels for label in sorted(row)], np.int64)
    return sp.csr_array(
        (np.ones(len(indices), np.int8), indices, indptr), shape=(len(labels), n_labels)
    )


def first_labels(Y_train: Any, Y_test: Any) -> list[tuple[np.ndarray, Any]]:
    """Return the rows of both parts that have labels, and an indicator of the first label."""
    parts = []
    for Y in map(sp.csr_array, (Y_train, Y_test)):
        Y.sort_indices()
        rows = np.flatnonzero(np.diff(Y.indptr))
        parts.append((rows, _indicator(Y.indices[Y.indptr[rows], None], Y.shape[1])))
    return parts


def equal_sets(Y_train: Any, Y_test: Any) -> list[tuple[np.ndarray, Any]]:
    """Return the rows of both parts whose label set two training rows have, and it as a class."""
    keys = []
    for Y in map(sp.csr_array, (Y_train, Y_test)):
        Y.sort_indices()
        ends = zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
        keys.append([Y.indices[a:b].astype(np.int32).tobytes() for a, b in ends])
    counts: dict[bytes, int] = {}
    for key in keys[0]:
        counts[key] = counts.get(key, 0) + 1
    frequent = [key for key, count in counts.items() if count >= 2 and key]
    numbers = {key: [number] for number, key in enumerate(frequent)}
    rows = [np.array([i for i, key in enumerate(p) if key in numbers], np.int64) for p in keys]
    return [
        (of_part, _indicator([numbers[part[i]] for i in of_part], len(numbers)))
        for of_part, part in zip(rows, keys, strict=True)
    ]
