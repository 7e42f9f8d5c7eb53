"""A real data set that comes with the package: subjects of works in the Tate collection."""

import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch

_DATA = Path(__file__).parent / "data"


def load_tate_subjects(
    subset: str = "train", *, return_X_y: bool = False
) -> Bunch | tuple[list[str], Any]:
    """Load texts about works of art and the subjects shown in them.

    The data are 58,801 works of the Tate collection with 16,455 subjects, 6.15 per work. They come
    with the package, under CC0; nothing is downloaded.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 47,119 training works, the 11,682 test works, or all, training works first.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        ``data`` : list of str, length n_samples
            Title, artist, medium, classification, date and group, joined by spaces.
        ``target`` : csr_array of shape (n_samples, 16455) and type int8
            The subjects of each work; the columns are the same in every subset.
        ``target_names`` : list of str, length 16455
            A unique name for each subject: its path in the subject tree, followed by Tate's
            subject number if a path occurs twice.
        ``label_names``, ``label_paths`` : list of str, length 16455
            The bare name and the bare path of each subject; some occur more than once.
        ``accession`` : list of str, length n_samples
            The accession number of each work.
        ``DESCR`` : str
            Source, licence, shape and caveats.
    (data, target) : tuple
        If `return_X_y` is True.

    Raises
    ------
    ValueError
        If `subset` is not one of the three.

    Notes
    -----
    27% of the test texts occur verbatim in the training set, and over half of the works are by
    Turner; see ``DESCR`` for more.

    Examples
    --------
    >>> from sklearn_xc.datasets import load_tate_subjects
    >>> tate = load_tate_subjects("test")
    >>> tate.data[0]
    'Six Drawings of Figures with Outstretched Arms Robert Blake Graphite on paper on paper,
     unique date not known'
    >>> tate.target.shape
    (11682, 16455)
    >>> [tate.target_names[label] for label in tate.target[[0]].indices]
    ['people > adults > figure', ...]
    """
    if not isinstance(subset, str) or subset not in ("train", "test", "all"):
        raise ValueError(
            f"load_tate_subjects: subset must be 'train', 'test' or 'all'. Got {subset!r}."
        )
    data, accession, labels = [], [], []
    for own, number, *texts, subjects in _read("works"):
        if subset in (own, "all"):
            data.append(" ".join(filter(None, texts)))
            accession.append(number)
            labels.append(np.array(subjects.split(" "), np.int32))
    ids, paths = zip(*_read("labels"), strict=True)
    indices = np.concatenate(labels)
    indptr = np.cumsum([0, *map(len, labels)], dtype=np.int32)
    target = csr_array(
        (np.ones(len(indices), np.int8), indices, indptr), shape=(len(data), len(paths))
    )
    target.sort_indices()
    if return_X_y:
        return data, target
    times = Counter(paths)
    return Bunch(
        data=data,
        target=target,
        target_names=[
            path if times[path] == 1 else f"{path} [{number}]"
            for number, path in zip(ids, paths, strict=True)
        ],
        label_names=[path.rsplit(" > ", 1)[1] for path in paths],
        label_paths=list(paths),
        accession=accession,
        DESCR=(_DATA / "tate_subjects.DESCR.rst").read_text(encoding="utf-8"),
    )


def _read(name: str) -> Iterator[list[str]]:
    """Yield the fields of each line but the first, the column names."""
    path = _DATA / f"tate_subjects.{name}.tsv.xz"
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        for line in lines:
            yield line.removesuffix("\n").split("\t")
