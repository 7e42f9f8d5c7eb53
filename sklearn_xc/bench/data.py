"""The data sets of the experiments, as training and test matrices with rows of unit length."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from sklearn_xc.datasets import load_tate_subjects, load_xmc_files


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


def load_set(name: str, data: Any, *, dtype: Any = np.float32) -> SplitSet:
    """Load a data set.

    Parameters
    ----------
    name : {"bibtex", "delicious", "tate"}
        bibtex and delicious are bags of words with the split of the Extreme Classification
        Repository; tate is tf-idf of the texts that come with the package (words of at least two
        works), so that it needs no files.
    data : path-like or None
        Folder with a folder per data set.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the features.

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
    return SETS[name](name, data, dtype)


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


def _load_repository_set(name: str, data: Any, dtype: Any) -> SplitSet:
    names = [f"{name}/{name}_{part}.txt.gz" for part in ("train", "test")]
    wanted = (
        f"The data set {name} needs {names[0]} and {names[1]}, in the text format of the Extreme "
        "Classification Repository, in the folder that --data names"
    )
    if data is None:
        raise FileNotFoundError(f"{wanted}; --data is missing.")
    missing = [path for path in (Path(data, each) for each in names) if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{wanted}; there is no {' and no '.join(map(str, missing))}.")
    files = load_xmc_files(Path(data, names[0]), Path(data, names[1]), dtype=dtype)
    return SplitSet(
        name, normalize(files.X_train), files.Y_train, normalize(files.X_test), files.Y_test
    )


def _load_tate(name: str, data: Any, dtype: Any) -> SplitSet:
    train_texts, Y_train = load_tate_subjects("train", return_X_y=True)
    test_texts, Y_test = load_tate_subjects("test", return_X_y=True)
    vectorizer = TfidfVectorizer(dtype=dtype, min_df=2)
    X_train = vectorizer.fit_transform(train_texts)
    return SplitSet(name, X_train, Y_train, vectorizer.transform(test_texts), Y_test)


SETS: dict[str, Callable[[str, Any, Any], SplitSet]] = {
    "bibtex": _load_repository_set,
    "delicious": _load_repository_set,
    "tate": _load_tate,
}
