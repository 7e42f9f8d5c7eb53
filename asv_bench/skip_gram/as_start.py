"""Word vectors as a start of other models: precision with and without, by training rows.

Few labelled texts, and many without labels: vectors of words are learnt on the texts of the whole
training file, or on other text, and the models on some of its rows. ``DecompMIPSClassifier`` and
``NGAMEEmbeddingXC``, this with and without the texts of labels, start at random or at the vectors
(``embedding_init``), with the same dimension. Tf-idf is that of the whole file: the columns are the
same for all sizes, and so are the test rows, and the propensities, which are of all training rows.
CPU seconds are those of ``fit``, in one thread; vectors are learnt once, which is told beside::

    python -m asv_bench vectors_as_start --data DIR --out reports

With ``--out``, each row is kept in vectors_as_start.jsonl as soon as it is measured, and a run that
was stopped goes on from there; with ``--cache``, sets and vectors are kept in a folder.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import find_text_files, text_vectorizer
from asv_bench.common.measure import cpu_seconds, quietly
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import RowLog
from asv_bench.embedding.label_texts import LabelledSet, load_labelled_set
from asv_bench.skip_gram.corpora import read_corpus
from sklearn_xc import DecompMIPSClassifier, DecompMIPSSkipGram, NGAMEEmbeddingXC
from sklearn_xc.datasets import load_text_dataset
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

#: How the training file of each set is read.
_LAYOUTS: dict[str, dict[str, Any]] = {
    "english_wordnet": {"format": "tsv", "text_columns": ["members", "definition"]},
    "yso_finna_en": {"format": "text_labels"},
}
RANDOM, OWN, SEEN = "random", "own texts", "seen words"
#: Where models start: at random, or at vectors of the words of these texts; "seen words" leaves out
#: those of own texts that no training row has.
STARTS = (RANDOM, OWN, "brown_wikitext", SEEN)
MODELS = ("decomposition", "ngame", "ngame_texts")
_NAMES = {
    "decomposition": "DecompMIPSClassifier",
    "ngame": "NGAMEEmbeddingXC",
    "ngame_texts": "NGAMEEmbeddingXC, label texts",
}
#: Rows of a warm-up, which compiles.
_WARM_UP = 300
_MEASURES = ("P@1", "PSP@1")

_COLUMNS = [
    Column("model", "model"),
    Column("n", "training rows", ",d"),
    Column("start", "start"),
    *(
        column
        for name in _MEASURES
        for column in (
            Column(name, name, ".2f"),
            Column(f"{name} gain", "gain", "+.2f"),
            Column(f"{name} sd", "sd of gain", ".2f"),
        )
    ),
    Column("cpu_s", "CPU s", ",.1f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=tuple(_LAYOUTS), choices=tuple(_LAYOUTS))
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--starts", nargs="+", default=STARTS[:3], choices=STARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=(500, 2000, 5000, 20_000),
                        metavar="N", help="training rows")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3, help="draws of training rows (3)")
    parser.add_argument("--dim", type=int, default=100, help="of vectors and models (100)")
    parser.add_argument("--test", type=int, default=5000, help="test rows, at most (5,000)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="folder for sets and vectors")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = tuple(_LAYOUTS),
    models: Sequence[str] = MODELS,
    starts: Sequence[str] = STARTS[:3],
    sizes: Sequence[int] = (500, 2000, 5000, 20_000),
    seeds: int = 3,
    dim: int = 100,
    test: int = 5000,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Train from each start, and compare.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets : sequence of {"english_wordnet", "yso_finna_en"}
    models : sequence of {"decomposition", "ngame", "ngame_texts"}
    starts : sequence of {"random", "own texts", "brown_wikitext", "seen words"}
    sizes : sequence of int
        Training rows.
    seeds : int, default=3
        Draws of the training rows, which are also seeds of the models.
    dim : int, default=100
        Of vectors and models.
    test : int, default=5000
        Test rows, if there are more.
    cache : path-like, default=None
        Folder where sets and vectors are kept; nothing notices a change of the code that learns
        them.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set, model, size, start and seed: P@1 and PSP@1 in %, cpu_s of the fit.
    """
    report = report or Report("vectors_as_start")
    log = RowLog(None if report.out is None else report.out / "vectors_as_start.jsonl")
    rows = []
    for name in sets:
        labelled = load_labelled_set(name, data, cache=cache)
        vectors = {
            start: _vectors_of(start, labelled, data, dim, cache, report)
            for start in starts
            if start != RANDOM
        }
        few = _Rows.drawn(labelled, _WARM_UP, 0, 10)
        for model in models:
            for start in starts:
                few.measure(_make(model, labelled, few.start(start, vectors), dim, 0))
        of_set = []
        for n in sizes:
            for seed in range(seeds):
                drawn = _Rows.drawn(labelled, n, seed, test)
                for model in models:
                    for start in starts:
                        task = {
                            "set": name, "n": n, "seed": seed, "model": model, "start": start,
                            "dim": dim, "n_test": drawn.X_test.shape[0],
                        }  # fmt: skip
                        row = log.find(task)
                        if row is None:
                            given = drawn.start(start, vectors)
                            row = drawn.measure(_make(model, labelled, given, dim, seed))
                            log.add(task, row)
                        of_set.append(task | row)
                        report.line(
                            f"  {_NAMES[model]}, {n:,} rows, seed {seed}, {start}: P@1 "
                            f"{row['P@1']:.2f}, PSP@1 {row['PSP@1']:.2f}, {row['cpu_s']:.1f} CPU s"
                        )
        _show(of_set, name, report)
        rows += of_set
    return rows


class _Rows:
    """Training rows and test rows of a set.

    Parameters
    ----------
    X, Y, X_test, Y_test : csr_array
    propensities : ndarray of shape (n_labels,)
    """

    def __init__(self, X: Any, Y: Any, X_test: Any, Y_test: Any, propensities: np.ndarray) -> None:
        self.X, self.Y, self.X_test, self.Y_test = X, Y, X_test, Y_test
        self.propensities = propensities

    @classmethod
    def drawn(cls, labelled: LabelledSet, n: int, seed: int, n_test: int) -> "_Rows":
        """Return some training rows, drawn with a seed, and always the same test rows."""
        at, at_test = (
            np.sort(np.random.default_rng(its_seed).permutation(X.shape[0])[:size])
            for X, size, its_seed in ((labelled.X_train, n, seed), (labelled.X_test, n_test, 0))
        )
        counts = np.asarray(labelled.Y_train.sum(axis=0)).ravel()
        return cls(
            sp.csr_array(labelled.X_train)[at], sp.csr_array(labelled.Y_train)[at],
            sp.csr_array(labelled.X_test)[at_test], sp.csr_array(labelled.Y_test)[at_test],
            propensity(counts, labelled.X_train.shape[0]),
        )  # fmt: skip

    def start(self, start: str, vectors: dict[str, np.ndarray]) -> np.ndarray | None:
        """Return what a model starts at, of the vectors by start; None for a random start."""
        found = vectors.get(start)
        if start != SEEN or found is None:
            return found
        is_seen = np.bincount(self.X.indices, minlength=self.X.shape[1]) > 0
        return np.where(is_seen[:, None], found, np.float32(0))

    def measure(self, model: Any) -> dict[str, float]:
        """Return what a model comes to, in %, and the CPU seconds of its fit."""
        _, seconds = cpu_seconds(quietly, model.fit, self.X, self.Y)
        best, _ = model.predict_topk(self.X_test, 1)
        return {
            "P@1": 100 * float(precision_at_k(self.Y_test, best, 1)),
            "PSP@1": 100 * float(psp_at_k(self.Y_test, best, 1, propensities=self.propensities)),
            "cpu_s": seconds,
        }


def _make(
    model: str, labelled: LabelledSet, vectors: np.ndarray | None, dim: int, seed: int
) -> Any:
    """Return a model that starts at some vectors, or at random."""
    if model == "decomposition":
        return DecompMIPSClassifier(
            embedding_dim=dim, embedding_init=vectors, n_jobs=1, random_state=seed
        )
    return NGAMEEmbeddingXC(
        BagOfEmbeddings(embedding_init=vectors), embedding_dim=dim,
        label_features=labelled.Z if model == "ngame_texts" else None, n_jobs=1, random_state=seed,
    )  # fmt: skip


def _vectors_of(
    start: str, labelled: LabelledSet, data: Any, dim: int, cache: Any, report: Report
) -> np.ndarray:
    """Return a vector for each feature, zeros for words that the texts do not have."""
    is_own = start in (OWN, SEEN)
    name = labelled.name if is_own else start
    path = None if cache is None else Path(cache, f"vectors_{name}_{dim}.npz")
    if path is not None and path.is_file():
        with np.load(path) as kept:
            words, vectors, seconds = kept["words"], kept["vectors"], float(kept["cpu_s"])
    else:
        sentences = _own_texts(name, data) if is_own else read_corpus(start, data)
        model = DecompMIPSSkipGram(dim, min_count=2 if is_own else 5, n_jobs=1, random_state=0)
        _, seconds = cpu_seconds(model.fit, sentences)
        words, vectors = model.words_.astype(str), model.vectors_
        if path is not None:
            np.savez(path, words=words, vectors=vectors, cpu_s=seconds)
    places = {word: at for at, word in enumerate(words.tolist())}
    names = labelled.vectorizer.get_feature_names_out()
    at = np.array([places.get(word, -1) for word in names])
    found = np.where((at >= 0)[:, None], vectors[at], np.float32(0))
    report.line(
        f"{labelled.name}: vectors of {len(words):,} words of {name} in {seconds:,.1f} CPU s; "
        f"{(at >= 0).sum():,} of {len(names):,} features have one"
    )
    return found


def _own_texts(name: str, data: Any) -> list[list[str]]:
    """Return the words of the training texts, as the vectorizer cuts them."""
    train, _, _ = find_text_files(name, data)
    cut: Callable[[str], list[str]] = text_vectorizer(np.float32).build_analyzer()
    return [cut(text) for text in load_text_dataset(train, **_LAYOUTS[name]).data]


def _show(rows: list[dict[str, Any]], name: str, report: Report) -> None:
    shown = []
    groups: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        of_group = groups.setdefault((row["model"], row["n"]), {})
        of_group.setdefault(row["start"], []).append(row)
    for (model, n), by_start in sorted(groups.items()):
        for start, runs in by_start.items():
            line = {"model": _NAMES[model], "n": n, "start": start}
            line["cpu_s"] = float(np.mean([run["cpu_s"] for run in runs]))
            for measure in _MEASURES:
                values = np.array([run[measure] for run in runs])
                line[measure] = float(values.mean())
                if start != RANDOM and RANDOM in by_start:
                    gains = values - [run[measure] for run in by_start[RANDOM]]
                    line[f"{measure} gain"] = float(gains.mean())
                    if len(gains) > 1:
                        line[f"{measure} sd"] = float(gains.std(ddof=1))
            shown.append(line)
    first, n_seeds = rows[0], len({row["seed"] for row in rows})
    report.table(
        f"{name}: {first['n_test']:,} test rows, {first['dim']} dimensions, means of {n_seeds} "
        "draws of training rows; P@1 and PSP@1 in %, gains over the random start",
        shown, _COLUMNS,
    )  # fmt: skip
