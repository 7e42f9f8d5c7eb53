"""The exact objective of word vectors after each iteration, against CPU seconds, by gradient.

``DecompMIPSSkipGram`` takes its iterations by ``partial_fit`` on the same counts. Each call is
timed, in one thread, without the evaluation between calls. The printed truncation is the algorithm
as the paper prints it: contexts that the search did not find count nothing, and training starts
from an epoch of negative sampling, which is counted in the first iteration. Where there are more
words than ``--scored``, the objective is that of so many words, drawn by their counts, always the
same ones; over all contexts in any case. The counts are those of a corpus, or made: Zipf's law with
planted clusters. With ``--out``, a figure beside the tables::

    python -m asv_bench skip_gram_objective --data DIR --out reports --budget 300
    python -m asv_bench skip_gram_objective --data DIR --corpora made --words 100000
"""

import argparse
from collections.abc import Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.figures import log_axis, panels, with_legend
from asv_bench.common.report import Column, Report
from asv_bench.skip_gram.corpora import CORPORA, made_counts, read_corpus
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.skip_gram import count_contexts

#: Parameters of each method, the name of its line, its colour, marker and line: Okabe and Ito's
#: colours.
METHODS: dict[str, tuple[dict[str, Any], str, tuple[str, str, str]]] = {
    "exact": ({"gradient": "exact"}, "exact", ("#000000", "o", "-")),
    "sampled": ({"gradient": "sampled"}, "sampled", ("#CC79A7", "v", "-")),
    "decomp_mips": ({"gradient": "decomp_mips"}, "decomp_mips", ("#0072B2", "D", "-")),
    "mips": ({"gradient": "mips"}, "mips", ("#E69F00", "s", "-")),
    "printed": (
        {"gradient": "decomp_mips", "n_sampled": 0, "n_negatives": 5},
        "printed truncation, n_negatives=5", ("#009E73", "^", "--"),
    ),
}  # fmt: skip
MADE = "made"
#: Words on each side whose pairs count, and words of a warm-up, which compiles.
_WINDOW, _WARM_UP = 8, 300

_SETS = [
    Column("corpus", "counts"),
    Column("words", "words", ","),
    Column("tokens", "tokens", ","),
    Column("nnz", "distinct pairs", ","),
    Column("pairs", "pairs", ",.0f"),
    Column("dim", "dimension"),
    Column("window", "window"),
]
_STEPS = [
    Column("corpus", "counts"),
    Column("method", "gradient"),
    Column("n_iter", "iterations"),
    Column("iteration_s", "CPU s an iteration", ",.2f"),
    Column("ratio", "of exact", ".3f"),
    Column("first_s", "the first, with its start", ",.2f"),
    Column("cpu_s", "CPU s in all", ",.1f"),
    Column("objective", "objective at the end", ".4f"),
    Column("least", "least", ".4f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--corpora", nargs="+", default=("brown_wikitext", MADE),
                        choices=(*CORPORA, MADE))  # fmt: skip
    parser.add_argument("--methods", nargs="+", default=tuple(METHODS), choices=tuple(METHODS))
    parser.add_argument("--words", type=int, default=20_000, help="of made counts (20,000)")
    parser.add_argument("--scored", type=int, default=5000,
                        help="words that the objective is of, at most (5,000)")  # fmt: skip
    parser.add_argument("--iterations", type=int, default=20, help="at most (20)")
    parser.add_argument("--budget", type=float, default=np.inf,
                        help="CPU seconds of a method, after which it ends")  # fmt: skip
    parser.add_argument("--dim", type=int, default=100, help="of vectors (100)")


def main(
    data: Any = None,
    *,
    corpora: Sequence[str] = ("brown_wikitext", MADE),
    methods: Sequence[str] = tuple(METHODS),
    words: int = 20_000,
    scored: int = 5000,
    iterations: int = 20,
    budget: float = np.inf,
    dim: int = 100,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Train by each method, and evaluate after each iteration.

    Parameters
    ----------
    data : path-like
        Folder of the data sets; made counts need none.
    corpora : sequence of str
        Keys of ``CORPORA``, and "made".
    methods : sequence of str
        Keys of ``METHODS``.
    words : int, default=20000
        Of made counts.
    scored : int, default=5000
        Words that the objective is of, if there are more.
    iterations : int, default=20
        The most.
    budget : float, default=inf
        CPU seconds, after which a method ends with the iteration that it is in.
    dim : int, default=100
        Dimension of the vectors.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each corpus, method and iteration.
    """
    report, rows, titles = report or Report("skip_gram_objective"), [], {}
    sizes: list[dict[str, Any]] = []
    for corpus in corpora:
        counts, text = (made_counts(words), {}) if corpus == MADE else _counts_of(corpus, data)
        sizes.append(
            {
                "corpus": corpus, "words": counts.shape[0], "nnz": counts.nnz, "dim": dim,
                "pairs": float(counts.sum(dtype=np.float64)), **text,
            }
        )  # fmt: skip
        judged, of_words = sample_of_words(counts, scored)
        name = f"{corpus}: {counts.shape[0]:,} words"
        titles[corpus] = name, f"exact objective of {of_words}"
        report.line(
            f"{name}, {counts.nnz:,} distinct pairs, {counts.sum(dtype=np.float64):,.0f} in all; "
            f"exact objective of {of_words}"
        )
        few = sp.csr_array(counts[:_WARM_UP, :_WARM_UP])
        for method in methods:
            for _ in follow(method, few, few, dim, 2, np.inf):
                pass
            for row in follow(method, counts, judged, dim, iterations, budget):
                rows.append({"corpus": corpus, "key": method, "of_words": of_words, **row})
            report.line(
                f"  {method}: {row['n_iter']} iterations, {row['cpu_s']:.1f} CPU s, objective "
                f"{row['objective']:.4f}"
            )
        _show([row for row in rows if row["corpus"] == corpus], *titles[corpus], report)
    report.table("Counts", sizes, _SETS)
    report.figure(draw(rows, titles), "skip_gram_objective")
    return rows


def follow(
    method: str, counts: Any, judged: Any, dim: int, iterations: int, budget: float
) -> Iterator[dict[str, Any]]:
    """Yield a row after each iteration.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    counts : csr_array of shape (n_words, n_words)
    judged : csr_array of the same shape
        Counts that the objective is of.
    dim, iterations, budget
        As of ``main``.

    Yields
    ------
    dict
        ``method``, ``n_iter``, ``objective``, ``cpu_s`` of all calls so far and ``last_s`` of the
        last one.
    """
    parameters, name, _ = METHODS[method]
    # Not a number, with which each call would draw the same.
    rng = np.random.RandomState(0)
    model = DecompMIPSSkipGram(dim, max_iter=1, n_jobs=1, random_state=rng, **parameters)
    seconds = 0.0
    for n_iter in range(1, iterations + 1):
        # partial_fit starts at random; only fit starts from negative sampling.
        step = model.fit if n_iter == 1 else model.partial_fit
        began = process_time()
        step(counts)
        last = process_time() - began
        seconds += last
        yield {
            "method": name, "n_iter": n_iter, "cpu_s": seconds, "last_s": last,
            "objective": model.objective(judged),
        }  # fmt: skip
        if seconds >= budget:
            return


def sample_of_words(counts: Any, n: int) -> tuple[Any, str]:
    """Return counts whose objective is nearly that of all, and what they are of.

    Parameters
    ----------
    counts : csr_array of shape (n_words, n_contexts)
    n : int
        Draws of words by their counts. Each row that remains is as heavy as it was often drawn.

    Returns
    -------
    judged : csr_array of shape (n_words, n_contexts)
        `counts`, if it has at most n words.
    of_words : str
        In words.
    """
    n_words = counts.shape[0]
    if n_words <= n:
        return counts, "all words"
    sums = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    drawn = np.random.default_rng(0).choice(n_words, n, p=sums / sums.sum())
    times = np.bincount(drawn, minlength=n_words)
    factor = np.divide(times, sums, out=np.zeros(n_words), where=sums > 0)
    judged = sp.csr_array(sp.diags_array(factor.astype(np.float32)) @ counts)
    judged.eliminate_zeros()
    distinct = np.count_nonzero(times)
    return judged, f"{n:,} words drawn by their counts, {distinct:,} distinct"


def draw(rows: Sequence[dict[str, Any]], titles: dict[str, tuple[str, str]]) -> Any:
    """Draw the objective against CPU seconds, a panel for each corpus.

    Parameters
    ----------
    rows : sequence of dict
        Of ``main``.
    titles : dict of str to (str, str)
        What is above each panel.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(len(titles))
    for ax, corpus in zip(axes, titles, strict=True):
        of_corpus = [row for row in rows if row["corpus"] == corpus]
        for key in dict.fromkeys(row["key"] for row in of_corpus):
            own = [row for row in of_corpus if row["key"] == key]
            colour, marker, style = METHODS[key][2]
            ax.plot(
                [row["cpu_s"] for row in own], [row["objective"] for row in own], style,
                color=colour, marker=marker, markersize=7 if key == "exact" else 5, linewidth=1.8,
                label=METHODS[key][1],
            )  # fmt: skip
        log_axis(ax, "x")
        ax.set_title(titles[corpus][0].replace("_", " "), fontsize=12)
        ax.set_xlabel("CPU seconds", fontsize=12)
    axes[0].set_ylabel("exact loss of a pair, nats", fontsize=12)
    return with_legend(figure, axes[0])


def _counts_of(corpus: str, data: Any) -> tuple[Any, dict[str, int]]:
    """Return the counts of a corpus, and how many words and what window they are of."""
    found = count_contexts(read_corpus(corpus, data), window=_WINDOW, n_jobs=1)
    n = len(found.words)
    counts = sp.csr_array((found.counts, found.indices, found.indptr), shape=(n, n))
    return counts, {"tokens": int(found.frequencies.sum()), "window": _WINDOW}


def _show(rows: list[dict[str, Any]], name: str, objective: str, report: Report) -> None:
    shown = []
    for key in dict.fromkeys(row["key"] for row in rows):
        own = [row for row in rows if row["key"] == key]
        later = own[1:] or own
        shown.append(
            own[-1] | {
                "iteration_s": float(np.median([row["last_s"] for row in later])),
                "first_s": own[0]["last_s"],
                "least": min(row["objective"] for row in own),
            }
        )  # fmt: skip
    exact = [row["iteration_s"] for row in shown if row["key"] == "exact"]
    for row in shown:
        row["ratio"] = row["iteration_s"] / exact[0] if exact else None
    report.table(f"{name}; {objective}, nats for a pair", shown, _STEPS)
    n_iter = sorted({row["n_iter"] for row in rows})
    by_iter = [
        {"n_iter": n} | {row["key"]: row["objective"] for row in rows if row["n_iter"] == n}
        for n in n_iter
    ]
    columns = [Column("n_iter", "iterations")]
    columns += [Column(row["key"], row["key"], ".4f") for row in shown]
    report.table(f"{name}; {objective}, after each iteration", by_iter, columns)
