"""The data sets whose labels have texts, both sides vectorized alike."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from asv_bench.common.data import (
    cache_folder,
    keep,
    load_parts,
    save_parts,
    text_vectorizer,
    vectorize_texts,
)
from sklearn_xc.datasets._files import open_source

#: Columns of the table of labels that make up a label's text, by set.
_TEXT_COLUMNS = {"yso_finna_en": ["name"], "english_wordnet": ["name", "definition"]}
_DTYPE = np.float32


class LabelledSet(NamedTuple):
    """A data set with its split, and texts of its labels.

    Attributes
    ----------
    name : str
    X_train, X_test : csr_matrix of shape (n, n_features), float32
        Tf-idf, as :func:`~asv_bench.common.data.load_set` gives it.
    Y_train, Y_test : csr_array of shape (n, n_labels), int8
        Labels.
    Z : csr_matrix of shape (n_labels, n_features), float32
        Tf-idf of the label texts by the same vectorizer; rows of Euclidean norm 1, or 0 for a text
        without a known word.
    label_texts : list of str
    vectorizer : TfidfVectorizer
        Fitted to the training texts, not to those of the labels.
    """

    name: str
    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any
    Z: Any
    label_texts: list[str]
    vectorizer: TfidfVectorizer


def load_labelled_set(name: str, data: Any, *, cache: Any = None) -> LabelledSet:
    """Load a data set whose labels have texts.

    Parameters
    ----------
    name : {"yso_finna_en", "english_wordnet"}
        The text of a label is its name, in english_wordnet its words and gloss. Labels of
        english_wordnet are synsets, as its instances are: an instance may itself be a label of
        others, with the same text, but never one of its own labels.
    data : path-like or None
        Folder with a folder per data set.
    cache : path-like, default=None
        Folder where loaded sets are kept, beside those of ``load_set``; nothing notices a change of
        the files in `data`.

    Returns
    -------
    LabelledSet

    Raises
    ------
    FileNotFoundError
        If `data` does not hold the files; the message names them.
    DataFormatError
        If the table of labels is not numbered 0, 1, 2 ...
    ValueError
        For an unknown name.
    """
    if name not in _TEXT_COLUMNS:
        raise ValueError(
            f"No data set with label texts is called {name!r}, expected one of "
            f"{', '.join(_TEXT_COLUMNS)}."
        )
    if cache is None:
        return _read(name, data)
    folder = cache_folder(f"{name}_with_labels", cache, _DTYPE)
    if folder.is_dir():
        return _load(name, folder)
    labelled = _read(name, data)
    keep(folder, partial(_save, labelled))
    return labelled


def _read(name: str, data: Any) -> LabelledSet:
    split, vectorizer, table = vectorize_texts(name, data, _DTYPE)
    texts = read_label_texts(table, _TEXT_COLUMNS[name])
    Z = vectorizer.transform(texts)
    Z.sort_indices()
    return LabelledSet(*split, Z, texts, vectorizer)


def read_label_texts(path: Path, columns: list[str]) -> list[str]:
    """Return the joined fields of some columns of a table, one text for each row."""
    with open_source(path) as source:
        lines = source.stream.read().decode("utf-8").rstrip("\n").split("\n")
        names = lines[0].split("\t")
        texts = []
        for label, line in enumerate(lines[1:]):
            fields = dict(zip(names, line.split("\t", len(names) - 1), strict=False))
            if fields["label"] != str(label) or len(fields) < len(names):
                message = f"expected label {label} and {len(names)} fields."
                raise source.error(label + 2, line, message)
            texts.append(" ".join(fields[column] for column in columns))
    return texts


def _save(labelled: LabelledSet, folder: Path) -> None:
    save_parts(labelled, folder)
    sp.save_npz(folder / "Z.npz", labelled.Z, compressed=False)
    # Words and weights, no pickle of a vectorizer: it would bind the cache to one scikit-learn.
    texts = {
        "label_texts": labelled.label_texts,
        "vocabulary": labelled.vectorizer.get_feature_names_out().tolist(),
    }
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    np.save(folder / "idf.npy", labelled.vectorizer.idf_)


def _load(name: str, folder: Path) -> LabelledSet:
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    vectorizer = text_vectorizer(_DTYPE, texts["vocabulary"])
    vectorizer.idf_ = np.load(folder / "idf.npy")
    Z = sp.load_npz(folder / "Z.npz")
    X_train, Y_train, X_test, Y_test = load_parts(folder)
    return LabelledSet(name, X_train, Y_train, X_test, Y_test, Z, texts["label_texts"], vectorizer)
