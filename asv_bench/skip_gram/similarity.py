"""Word vectors against the judgement of people, beside gensim's, at equal CPU seconds.

``DecompMIPSSkipGram`` and skip-gram of gensim (negative sampling with 5 and with 15 samples,
hierarchical softmax) get the same lists of tokens, dimension, window, least count and subsampling
(of which gensim's formula keeps slightly more), and one thread. CPU seconds are those of the whole
call, counting of words included. The measures are Spearman's correlation with thirteen sets of word
similarities, and the share of Google's analogies that 3CosAdd completes; pairs and questions with
an unknown word are left out. Vectors are the input vectors, or the sum of input and output vectors:
as ``vectors="sum"`` of ours makes it, and of gensim each kind divided by its mean norm
(hierarchical softmax has no output vectors of words). Needs
``pip install gensim``::

    python -m asv_bench word_similarity --data DIR --out reports

With ``--out``, each row is kept in word_similarity.jsonl as soon as it is measured, and a run that
was stopped goes on from there.
"""

import argparse
from ast import literal_eval
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import RowLog
from asv_bench.skip_gram.corpora import (
    CORPORA,
    Judged,
    Sentence,
    read_analogies,
    read_corpus,
    read_similarities,
)
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.skip_gram import analogy_accuracy, spearman_of_pairs

WINDOW, MIN_COUNT, SUBSAMPLE = 8, 5, 1e-4
#: gensim's skip-gram: its parameters, by what it is called in the table.
GENSIM = {
    "gensim, negative=5": {"hs": 0, "negative": 5},
    "gensim, negative=15": {"hs": 0, "negative": 15},
    "gensim, hs": {"hs": 1, "negative": 0},
}
#: Kinds of vectors, as of ``DecompMIPSSkipGram``.
KINDS = ("input", "sum")
#: Parameters of ours.
OURS = ("gradient=sampled",)
#: A set with fewer known pairs does not count in the mean.
_FEW = 10
#: Sentences of a warm-up, which compiles.
_WARM_UP = 200

_SUMMARY = [
    Column("corpus", "corpus"),
    Column("system", "system"),
    Column("trained", "trained for"),
    Column("vectors", "vectors"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("mean", "mean rho", ".3f"),
    Column("mean_sd", "sd", ".3f"),
    Column("by_pairs", "mean by pairs", ".3f"),
    Column("by_pairs_sd", "sd", ".3f"),
    Column("analogies", "analogies %", ".2f"),
    Column("analogies_sd", "sd", ".2f"),
]


class Run(NamedTuple):
    """A system, and how long it trains.

    Attributes
    ----------
    system : str
        Parameters of ours, such as "alpha=30,window=5", or a key of ``GENSIM``.
    amount : int
        Iterations of ours, or epochs.
    """

    system: str
    amount: int

    @property
    def is_ours(self) -> bool:
        """Whether it is DecompMIPSSkipGram."""
        return self.system not in GENSIM

    @property
    def trained(self) -> str:
        """How long, in words."""
        unit = "iteration" if self.is_ours else "epoch"
        return f"{self.amount} {unit}{'s' * (self.amount > 1)}"


class Judges(NamedTuple):
    """What vectors are held against.

    Attributes
    ----------
    similarities : dict of str to Judged
    analogies : list of list of str
    """

    similarities: dict[str, Judged]
    analogies: list[Sentence]

    def of(self, words: np.ndarray, vectors: np.ndarray) -> dict[str, Any]:
        """Return the measures of some vectors, and how many pairs and questions are known."""
        rho, n_pairs = {}, {}
        for name, judged in self.similarities.items():
            rho[name], n_pairs[name] = spearman_of_pairs((words, vectors), *judged)
        enough = [name for name, n in n_pairs.items() if n >= _FEW and np.isfinite(rho[name])]
        rhos = [rho[name] for name in enough]
        analogies, n_questions = analogy_accuracy((words, vectors), self.analogies)
        return {
            "rho": rho, "n_pairs": n_pairs, "n_questions": n_questions,
            "mean": float(np.mean(rhos)) if enough else np.nan,
            "by_pairs": (
                float(np.average(rhos, weights=[n_pairs[name] for name in enough]))
                if enough else np.nan
            ),
            "analogies": 100 * analogies,
        }  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--corpora", nargs="+", default=("brown_wikitext",), choices=tuple(CORPORA))
    parser.add_argument("--epochs", nargs="+", type=int, default=(1, 5, 15), metavar="N",
                        help="of gensim")  # fmt: skip
    parser.add_argument("--iterations", nargs="+", type=int, default=(5, 10, 20), metavar="N",
                        help="of DecompMIPSSkipGram")  # fmt: skip
    parser.add_argument("--ours", nargs="+", default=OURS, metavar="PARAMETERS",
                        help='of DecompMIPSSkipGram: "alpha=30,window=5"')  # fmt: skip
    parser.add_argument("--dim", type=int, default=100, help="of vectors (100)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (3)")


def main(
    data: Any = None,
    *,
    corpora: Sequence[str] = ("brown_wikitext",),
    epochs: Sequence[int] = (1, 5, 15),
    iterations: Sequence[int] = (5, 10, 20),
    ours: Sequence[str] = OURS,
    dim: int = 100,
    seeds: int = 3,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Train both, and compare their vectors.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    corpora : sequence of str
        Keys of ``CORPORA``.
    epochs, iterations : sequence of int
        Of gensim and of ours: a training from the start for each.
    ours : sequence of str
        Parameters of ours, which is trained with each.
    dim : int, default=100
        Dimension of the vectors.
    seeds : int, default=3
        Runs of each training.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each corpus, training, kind of vectors and seed.

    Raises
    ------
    SystemExit
        If gensim is not installed.
    """
    if epochs and find_spec("gensim") is None:
        raise SystemExit(
            "word_similarity compares with gensim, which is not here: pip install gensim"
        )
    report = report or Report("word_similarity")
    log = RowLog(None if report.out is None else report.out / "word_similarity.jsonl")
    judges = Judges(read_similarities(data), read_analogies(data))
    runs = [Run(parameters, n) for parameters in ours for n in iterations]
    runs += [Run(system, n) for system in GENSIM for n in epochs]
    rows = []
    for corpus in corpora:
        sentences = read_corpus(corpus, data)
        n_tokens = sum(map(len, sentences))
        report.line(f"{corpus}: {n_tokens:,} tokens in {len(sentences):,} sentences")
        for parameters in ours:
            _ours(Run(parameters, 1), sentences[:_WARM_UP], dim, 0, min_count=1)
        of_corpus = []
        for run in runs:
            for seed in range(seeds):
                task = {
                    "corpus": corpus, "n_tokens": n_tokens, "system": run.system,
                    "amount": run.amount, "dim": dim, "seed": seed,
                }  # fmt: skip
                row = log.find(task)
                if row is None:
                    row = _measure(run, sentences, dim, seed, judges)
                    log.add(task, row)
                known = task | {"trained": run.trained, "n_words": row["n_words"]}
                told = known | {"cpu_s": row["cpu_s"]}
                of_corpus += [told | {"vectors": kind} | row[kind] for kind in KINDS if kind in row]
                last = of_corpus[-1]
                report.line(
                    f"  {run.system}, {run.trained}, seed {seed}: {row['cpu_s']:.1f} CPU s, "
                    f"mean rho {last['mean']:.3f}, analogies {last['analogies']:.2f} %"
                )
        _show(of_corpus, corpus, report)
        rows += of_corpus
    return rows


def _measure(
    run: Run, sentences: list[Sentence], dim: int, seed: int, judges: Judges
) -> dict[str, Any]:
    train: Callable[..., Any] = _ours if run.is_ours else _gensim
    (words, vectors), seconds = cpu_seconds(train, run, sentences, dim, seed)
    of_kinds = {kind: judges.of(words, found) for kind, found in vectors.items()}
    return {"n_words": len(words), "cpu_s": seconds, **of_kinds}


def _ours(
    run: Run, sentences: list[Sentence], dim: int, seed: int, min_count: int = MIN_COUNT
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return words, and their vectors of each kind."""
    model = DecompMIPSSkipGram(
        dim, max_iter=run.amount, window=WINDOW, min_count=min_count, subsample=SUBSAMPLE, n_jobs=1,
        random_state=seed,
    ).set_params(**_parameters(run.system)).fit(sentences)  # fmt: skip
    return model.words_, {"input": model.input_vectors_, "sum": model.vectors_}


def _parameters(text: str) -> dict[str, Any]:
    """Return the parameters that a text such as "alpha=30,gradient=mips" sets."""
    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = literal_eval(value.strip())
        except (ValueError, SyntaxError):
            found[name.strip()] = value.strip()
    return found


def _gensim(
    run: Run, sentences: list[Sentence], dim: int, seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return words, and their vectors of each kind that there is."""
    model = import_module("gensim.models").Word2Vec(
        sentences, vector_size=dim, window=WINDOW, min_count=MIN_COUNT, sample=SUBSAMPLE, sg=1,
        epochs=run.amount, workers=1, seed=seed + 1, **GENSIM[run.system],
    )  # fmt: skip
    words = np.array(model.wv.index_to_key, dtype=object)
    found = {"input": model.wv.vectors}
    if model.negative:
        both = model.wv.vectors, model.syn1neg
        found["sum"] = sum(one / np.linalg.norm(one, axis=1).mean() for one in both)
    return words, found


def _show(rows: list[dict[str, Any]], corpus: str, report: Report) -> None:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["system"], row["trained"], row["vectors"]), []).append(row)
    shown = []
    for group in groups.values():
        values = {
            **{key: [row[key] for row in group] for key in ("mean", "by_pairs", "analogies")},
            **{name: [row["rho"][name] for row in group] for name in group[0]["rho"]},
        }
        shown.append(
            group[0]
            | {"cpu_s": float(np.mean([row["cpu_s"] for row in group]))}
            | {key: float(np.mean(found)) for key, found in values.items()}
            | {f"{key}_sd": _deviation(found) for key, found in values.items()}
        )
    shown.sort(key=lambda row: row["cpu_s"])
    first = rows[0]
    n_seeds = len({row["seed"] for row in rows})
    of_runs = f"mean and standard deviation (sd) of {n_seeds} runs" if n_seeds > 1 else "one run"
    report.table(
        f"Similarities and {first['n_questions']:,} analogies, {corpus}: {first['n_words']:,} "
        f"words, {first['n_tokens']:,} tokens, {first['dim']} dimensions; {of_runs}",
        shown, _SUMMARY,
    )  # fmt: skip
    sets = [name for name, n in first["n_pairs"].items() if n >= _FEW]
    columns = _SUMMARY[1:5]
    for name in sets:
        columns.append(Column(name, f"{name} ({first['n_pairs'][name]:,})", ".3f"))
        if n_seeds > 1:
            columns.append(Column(f"{name}_sd", "sd", ".3f"))
    few = [f"{name} ({n})" for name, n in first["n_pairs"].items() if n < _FEW]
    left_out = f"; left out for fewer than {_FEW} known pairs: {', '.join(few)}" if few else ""
    report.table(f"Spearman's rho by set (known pairs), {corpus}{left_out}", shown, columns)


def _deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation, or None of one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
