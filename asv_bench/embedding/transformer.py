"""A transformer as the encoder of NGAMEEmbeddingXC, beside the bag of words and one-vs-all.

On data sets whose labels have texts. The transformer is all-MiniLM-L6-v2 unless ``--model`` says
otherwise: six layers, 384 dimensions, 22 million parameters.

* frozen: the encoder as it was pretrained, with trained classifiers and fusion; beside it the bag
  of words, one-vs-all, and the stack of all three. P@1, PSP@1, recall@10 of labels that no training
  instance has, CPU seconds of ``fit`` and of embedding the texts.
* tuned: the six layers fine-tuned on few instances, with NGAME's mini-batches and with random ones
  for as many steps, by seed; P@1 of the embedding alone and of the whole model, the share of the
  hardest negatives of an instance that are in its mini-batch, CPU seconds.
* cost: seconds and memory per 1,000 texts by length: embedding, and training; memory of training
  the classifiers of many labels on embeddings that are kept on the disk.

::

    python -m asv_bench transformer --data DIR --out reports
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from asv_bench.common.data import find_text_files, text_vectorizer
from asv_bench.common.measure import cpu_seconds, peak_bytes, quietly, reset_peak
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import CHECKOUT, RowLog
from asv_bench.embedding.label_texts import LabelledSet, load_labelled_set
from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC, OvALinearXC, StackingXC, topk
from sklearn_xc.datasets import load_text_dataset
from sklearn_xc.encoders import TransformerEncoder
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k
from sklearn_xc.samplers import NgameSampler

PARTS = ("frozen", "tuned", "cost")
#: How the files of each set are read.
_LAYOUTS: dict[str, dict[str, Any]] = {
    "english_wordnet": {"format": "tsv", "text_columns": ["members", "definition"]},
    "yso_finna_en": {"format": "text_labels"},
}
SETS = tuple(_LAYOUTS)
#: Training rows, at most: of the part frozen, and of the part tuned.
MANY_ROWS, FEW_ROWS = 100_000, 5_000
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
#: Systems of the part frozen.
SYSTEMS = ("one-vs-all", "bag", "frozen", "frozen, no features", "stack")
#: Of the part tuned: what it compares, and which negatives of an instance count as hardest.
TUNINGS = ("frozen", "random batches", "NGAME batches")
BEST = 10
#: Labels that are looked at for recall.
_FOUND = 10
#: Tokens, and labels and dimensions, of the part cost.
LENGTHS, MANY_LABELS = (16, 32, 128), 100_000

_FROZEN_COLUMNS = [
    Column("system", "system"),
    Column("P@1", "P@1", ".2f"),
    Column("P@5", "P@5", ".2f"),
    Column("PSP@1", "PSP@1", ".2f"),
    Column("unseen", f"recall@{_FOUND} unseen", ".1f"),
    Column("cpu_s", "fit, CPU s", ",.0f"),
    Column("embed_s", "of which embedding", ",.0f"),
]
_TUNED_COLUMNS = [
    Column("system", "encoder"),
    Column("seed", "seed"),
    Column("embedding P@1", "P@1, embedding", ".2f"),
    Column("P@1", "P@1", ".2f"),
    Column("PSP@1", "PSP@1", ".2f"),
    Column("unseen", f"recall@{_FOUND} unseen", ".1f"),
    Column("hits", "hardest in the batch", ".2%"),
    Column("violations", "violations", ".2%"),
    Column("cpu_s", "fit, CPU s", ",.0f"),
]
_COST_COLUMNS = [
    Column("what", "what"),
    Column("length", "tokens"),
    Column("cpu_s", "CPU s per 1,000", ",.1f"),
    Column("mib", "MiB beyond the model", ",.0f"),
]


class Texts(NamedTuple):
    """Training and test rows of a set as texts, and the texts of its labels.

    Attributes
    ----------
    name : str
    train, test : list of str
    Y_train, Y_test : csr_array of int8 of shape (n, n_labels)
    labels : list of str
    """

    name: str
    train: list[str]
    Y_train: Any
    test: list[str]
    Y_test: Any
    labels: list[str]

    @property
    def propensities(self) -> np.ndarray:
        """Of the labels, by their training rows."""
        counts = np.asarray(self.Y_train.sum(axis=0)).ravel()
        return propensity(counts, len(self.train))


class HitSampler(NgameSampler):
    """NGAME's mini-batches, or random ones, that tell how many of the hardest negatives they hold.

    Before the last epoch: the share of the ten labels of the highest scores, true ones left out,
    that are true labels of another instance of the mini-batch.
    """

    reads: tuple[str, ...] = ("last_seen", "instances", "labels")  # type: ignore[assignment]
    #: What each epoch of a training found, and the CPU seconds that this took; copies share it.
    found: list[tuple[float, float]] = []  # noqa: RUF012

    def __init__(
        self, refresh_interval: int = 1, cluster_size: int | None = None, is_random: bool = False
    ) -> None:
        super().__init__(refresh_interval, cluster_size)
        self.is_random = is_random

    def refresh(self, epoch: int, state: Any) -> None:
        """Look at the embeddings; see `NgameSampler.refresh`."""
        super().refresh(epoch, state)
        self._is_random = self._is_random or self.is_random
        self._n = state.n
        if state.moves and epoch == self.n_epochs_ - 1:
            hits, seconds = cpu_seconds(_hits, list(self.batches(epoch)), state)
            self.found.append((hits, seconds))


def _hits(batches: list[np.ndarray], state: Any) -> float:
    """Return the share of the hardest negatives that are labels of the mini-batch."""
    V, Z, (indptr, labels) = state.instances(), state.labels(), state.positives
    n_hits = n_hard = 0
    for rows in batches:
        own = [labels[indptr[i] : indptr[i + 1]] for i in rows]
        scores = V[rows] @ Z.T
        for place, positives in enumerate(own):
            scores[place, positives] = -np.inf
        hard = np.argpartition(-scores, BEST - 1, axis=1)[:, :BEST]
        is_hit = np.isin(hard, np.unique(np.concatenate(own)))
        n_hits, n_hard = n_hits + int(is_hit.sum()), n_hard + hard.size
    return n_hits / n_hard


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--tunings", nargs="+", choices=TUNINGS, default=TUNINGS)
    parser.add_argument("--model", default=MODEL, help=f"folder, package or name ({MODEL})")
    parser.add_argument(
        "--train", type=int, default=MANY_ROWS, help="rows of the part frozen, at most (100,000)"
    )
    parser.add_argument("--few", type=int, default=FEW_ROWS, help="of the part tuned (5,000)")
    parser.add_argument("--epochs", type=int, default=4, help="of the part tuned (4)")
    parser.add_argument("--batch-size", type=int, default=64, help="of the part tuned (64)")
    parser.add_argument("--seeds", type=int, default=3, help="of the part tuned (3)")
    parser.add_argument("--rate", type=float, help="of the part tuned (the encoder's)")
    parser.add_argument("--precision", default="auto", help="of the layers' products (auto)")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--labels", type=int, default=MANY_LABELS, help="of the part cost (10^5)")
    parser.add_argument("--test", type=int, default=5000, help="test rows, at most (5,000)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    parser.add_argument("--cache", type=Path, help="folder for sets and embeddings")


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    sets: Sequence[str] = SETS,
    systems: Sequence[str] = SYSTEMS,
    tunings: Sequence[str] = TUNINGS,
    model: str = MODEL,
    train: int = MANY_ROWS,
    few: int = FEW_ROWS,
    epochs: int = 4,
    batch_size: int = 64,
    seeds: int = 3,
    rate: float | None = None,
    precision: str = "auto",
    lengths: Sequence[int] = LENGTHS,
    labels: int = MANY_LABELS,
    test: int = 5000,
    jobs: int = 1,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like
        Folder of the data sets; the part cost needs none.
    parts : sequence of {"frozen", "tuned", "cost"}
    sets : sequence of {"english_wordnet", "yso_finna_en"}
    systems, tunings : sequence of str
        Of the parts frozen and tuned.
    model : str
        Of the transformer.
    train : int
        Training rows of the part frozen, at most.
    few, epochs, batch_size, seeds, rate
        Of the part tuned: training rows, epochs and instances of a mini-batch, draws of rows, and
        learning rate, None for the encoder's.
    precision : str
        Of the transformer.
    lengths, labels
        Of the part cost.
    test : int
        Test rows, at most.
    jobs : int
        Threads.
    cache : path-like, default=None
        Folder for loaded sets and for embeddings. With embeddings that are there already, CPU
        seconds are those without embedding.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts, with the part in "part" and the set in "set".
    """
    report = report or Report("transformer")
    log = RowLog(None if report.out is None else report.out / "transformer.jsonl")
    encoder = {"model": model, "precision": precision}
    found: list[dict[str, Any]] = []
    for name in sets if set(parts) - {"cost"} else ():
        if "frozen" in parts:
            found += measure_frozen(
                load_texts(name, data, train, 0, test, cache), systems, encoder, cache, jobs,
                log, report,
            )  # fmt: skip
        if "tuned" in parts:
            how = {"epochs": epochs, "batch_size": batch_size, "rate": rate}
            found += measure_tuned(
                name, data, few, tunings, how, encoder, seeds, test, cache, jobs, log, report
            )
    if "cost" in parts:
        found += measure_cost(lengths, labels, encoder, jobs, report)
    return found


def load_texts(name: str, data: Any, n: int, seed: int, n_test: int, cache: Any) -> Texts:
    """Return a set as texts: training rows drawn with a seed, and always the same test rows."""
    labelled: LabelledSet = load_labelled_set(name, data, cache=cache)
    n_labels = len(labelled.label_texts)
    files = find_text_files(name, data)[:2]
    parts: list[tuple[list[str], Any]] = []
    for file, size, its_seed in zip(files, (n, n_test), (seed, 0), strict=True):
        read = load_text_dataset(file, n_labels=n_labels, **_LAYOUTS[name])
        at = np.sort(np.random.default_rng(its_seed).permutation(len(read.data))[:size])
        parts.append(([read.data[i] for i in at], sp.csr_array(read.target)[at]))
    return Texts(name, *parts[0], *parts[1], labelled.label_texts)


# Frozen


def measure_frozen(
    texts: Texts, systems: Sequence[str], encoder: dict[str, Any], cache: Any, jobs: int,
    log: RowLog, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Measure a frozen encoder beside other systems."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        kept = folder if cache is None else Path(cache) / "embeddings"
        frozen = TransformerEncoder(**encoder, frozen=True, cache_dir=kept)
        makers = _systems(texts, frozen, jobs)
        for system in systems:
            task = {"part": "frozen", "set": texts.name, "n": len(texts.train), "system": system,
                    "n_test": len(texts.test), **encoder}  # fmt: skip
            row = log.find(task)
            if row is None:
                embed_s = _embedded(frozen, texts, jobs) if system.startswith("frozen") else 0.0
                row = _measured(makers[system], texts)
                row |= {"embed_s": embed_s, "cpu_s": row["cpu_s"] + embed_s}
                log.add(task, row)
            rows.append(task | row)
            report.line(f"  {texts.name}, {system}: {row}")
    report.table(
        f"{texts.name}: {len(texts.train):,} training texts, {len(texts.labels):,} labels, "
        f"{len(texts.test):,} test texts", rows, _FROZEN_COLUMNS,
    )  # fmt: skip
    return rows


def _systems(texts: Texts, frozen: TransformerEncoder, jobs: int) -> dict[str, Callable[[], Any]]:
    """Return what makes each system: a classifier of texts."""
    labels = LabelFeatures(texts.labels)
    vectorizer = FrozenEstimator(text_vectorizer(np.float32).fit(texts.train))
    threads = {"n_jobs": jobs}

    def one_vs_all() -> Any:
        return make_pipeline(vectorizer, OvALinearXC(**threads))

    def bag() -> Any:
        model = NGAMEEmbeddingXC(
            label_features=labels, label_vectorizer=vectorizer, random_state=0, **threads
        )
        return make_pipeline(vectorizer, model)

    def transformer(**how: Any) -> Any:
        return NGAMEEmbeddingXC(
            encoder=frozen, label_features=labels, random_state=0, **how, **threads
        )

    def stack() -> Any:
        members = [("one-vs-all", one_vs_all()), ("bag", bag()), ("frozen", transformer())]
        return StackingXC(members, random_state=0)

    return {
        "one-vs-all": one_vs_all,
        "bag": bag,
        "frozen": transformer,
        "frozen, no features": lambda: transformer(vectorizer=None),
        "stack": stack,
    }


def _embedded(frozen: TransformerEncoder, texts: Texts, jobs: int) -> float:
    """Embed all texts, which are kept; return the CPU seconds."""
    every = np.array([text for text in [*texts.train, *texts.labels] if text], object)
    encoder = TransformerEncoder(**frozen.get_params())
    began = process_time()
    encoder.start(every[:1], encoder.default_dim(), 0)
    encoder.encode(every, jobs)
    return process_time() - began


def _measured(make: Callable[[], Any], texts: Texts) -> dict[str, float]:
    """Return what a system comes to, in %, and the CPU seconds of its fit."""
    began = process_time()
    model = quietly(make().fit, texts.train, texts.Y_train)
    seconds = process_time() - began
    return _quality(model, texts) | {"cpu_s": seconds}


def _quality(model: Any, texts: Texts, **component: str) -> dict[str, float]:
    topk_of = getattr(model, "predict_topk", None)
    if topk_of is None:
        found = topk(model, texts.test, _FOUND)[0]
    else:
        found = topk_of(texts.test, _FOUND, **component)[0]
    of, label = texts.Y_test.nonzero()
    unseen = np.asarray(texts.Y_train.sum(axis=0)).ravel()[label] == 0
    hits = (found[of] == label[:, None]).any(axis=1)
    return {
        "P@1": 100 * precision_at_k(texts.Y_test, found, k=1),
        "P@5": 100 * precision_at_k(texts.Y_test, found, k=5),
        "PSP@1": 100 * psp_at_k(texts.Y_test, found, k=1, propensities=texts.propensities),
        "unseen": 100 * float(hits[unseen].mean()) if unseen.any() else float("nan"),
    }


# Tuned


def measure_tuned(
    name: str, data: Any, n: int, tunings: Sequence[str], how: dict[str, Any],
    encoder: dict[str, Any], seeds: int, n_test: int, cache: Any, jobs: int, log: RowLog,
    report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Measure an encoder that learns from few instances, by its mini-batches."""
    rows = []
    for seed in range(seeds):
        texts = load_texts(name, data, n, seed, n_test, cache)
        for system in tunings:
            task = {"part": "tuned", "set": name, "n": n, "seed": seed, "system": system,
                    "n_test": len(texts.test), **how, **encoder}  # fmt: skip
            row = log.find(task)
            if row is None:
                row = _tuned(system, texts, how, encoder, seed, jobs)
                log.add(task, row)
            rows.append(task | row)
            report.line(f"  {name}, {n:,} rows, seed {seed}, {system}: {row}")
    report.table(f"{name}: {n:,} training texts", rows, _TUNED_COLUMNS)
    return rows


def _tuned(
    system: str, texts: Texts, how: dict[str, Any], encoder: dict[str, Any], seed: int, jobs: int
) -> dict[str, float]:
    is_frozen = system == "frozen"
    HitSampler.found.clear()
    model = NGAMEEmbeddingXC(
        encoder=TransformerEncoder(**encoder, frozen=is_frozen),
        label_features=LabelFeatures(texts.labels),
        sampler="ngame" if is_frozen else HitSampler(is_random=system == "random batches"),
        batch_size=how["batch_size"], max_iter=how["epochs"], random_state=seed, n_jobs=jobs,
        learning_rate="auto" if how["rate"] is None else how["rate"],
    )  # fmt: skip
    began = process_time()
    quietly(model.fit, texts.train, texts.Y_train)
    seconds = process_time() - began - sum(of_hits for _, of_hits in HitSampler.found)
    is_encoder = model.fit_report_["module"] == "encoder"
    violations = model.fit_report_["violations"][is_encoder]
    return {
        **_quality(model, texts),
        "embedding P@1": _quality(model, texts, component="embedding")["P@1"],
        "hits": HitSampler.found[-1][0] if HitSampler.found else float("nan"),
        "violations": float(violations[-1]) if len(violations) else float("nan"),
        "cpu_s": seconds,
    }


# Cost


def measure_cost(
    lengths: Sequence[int], n_labels: int, encoder: dict[str, Any], jobs: int, report: Report
) -> list[dict[str, Any]]:
    """Measure seconds and memory by length of texts, and those of many labels' classifiers."""
    rows = [
        _in_a_process("_cost_of_texts", what, length, encoder, jobs)
        for what in ("embedding", "training", "training, checkpointed")
        for length in lengths
    ]
    rows.append(_in_a_process("_cost_of_labels", n_labels, encoder, jobs))
    report.table("cost, of 1,000 texts", rows, _COST_COLUMNS)
    return [{"part": "cost", **row} for row in rows]


def _in_a_process(function: str, *arguments: Any) -> dict[str, Any]:
    """Return what a function of this module returns in a process of its own, for its memory."""
    code = (
        f"import json; from {__name__} import {function} as work; "
        f"print(json.dumps(work(*{arguments!r})))"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _texts_of(n: int, n_words: int) -> np.ndarray:
    """Return texts of so many common words, which are a token each."""
    rng = np.random.default_rng(0)
    words = ["time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child"]
    return np.array([" ".join(rng.choice(words, n_words)) for _ in range(n)], object)


def _cost_of_texts(what: str, length: int, encoder: dict[str, Any], jobs: int) -> dict[str, Any]:
    n = 1000
    texts = _texts_of(n, length - 2)
    checkpointing = what.endswith("checkpointed")
    made = TransformerEncoder(
        **encoder, max_length=length, frozen=what == "embedding",
        gradient_checkpointing=checkpointing,
    )  # fmt: skip
    made.start(texts, made.default_dim(), 0)
    rng = np.random.default_rng(0)

    def work(some: np.ndarray) -> None:
        if what == "embedding":
            made.encode(some, jobs)
            return
        for first in range(0, len(some), 128):
            passed = made.forward(some[first : first + 128], rng, jobs)
            made.learn(passed, rng.normal(size=passed.V.shape).astype(np.float32), 1e-5, jobs)

    work(texts[:64])
    reset_peak()
    before = peak_bytes()
    began = process_time()
    work(texts)
    seconds = process_time() - began
    return {"what": what, "length": length, "cpu_s": seconds * 1000 / n,
            "mib": (peak_bytes() - before) / 2**20}  # fmt: skip


def _cost_of_labels(n_labels: int, encoder: dict[str, Any], jobs: int) -> dict[str, Any]:
    """Return what the classifiers of many labels take, with embeddings kept on the disk."""
    n = 2 * n_labels
    rng = np.random.default_rng(0)
    texts = [f"{text} {i}" for i, text in enumerate(_texts_of(n, 4))]
    labels = [f"{text} {i}" for i, text in enumerate(_texts_of(n_labels, 3))]
    own = np.append(np.arange(n_labels), rng.integers(0, n_labels, n - n_labels))
    Y = sp.csr_array((np.ones(n, np.int8), own, np.arange(n + 1)), shape=(n, n_labels))
    with tempfile.TemporaryDirectory() as folder:
        frozen = TransformerEncoder(**encoder, frozen=True, max_length=8, cache_dir=folder)
        frozen.start(np.array(texts[:1], object), frozen.default_dim(), 0)
        frozen.encode(np.array([*texts, *labels], object), jobs)
        model = NGAMEEmbeddingXC(
            encoder=frozen, label_features=LabelFeatures(labels), vectorizer=None,
            classifier_max_iter=2, validation_fraction=0.0, random_state=0, n_jobs=jobs,
        )  # fmt: skip
        reset_peak()
        before, began, clock = peak_bytes(), process_time(), perf_counter()
        quietly(model.fit, texts, Y)
        seconds = process_time() - began
    return {"what": f"2 epochs of {n_labels:,} classifiers, {n:,} texts", "length": 8,
            "cpu_s": seconds * 1000 / n, "mib": (peak_bytes() - before) / 2**20,
            "wall_s": perf_counter() - clock}  # fmt: skip
