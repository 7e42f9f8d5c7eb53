"""The exact objective of word vectors by iterations and CPU seconds, for each gradient (figure 3).

``DecompMIPSSkipGram`` is fitted anew with more and more iterations, on one thread; the evaluation
is not timed. Where there are more words than --scored, the objective is that of so many words,
drawn by their counts, always the same ones, over all contexts. The counts are those of a corpus, or
made: Zipf's law with planted clusters.
"""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.figures import lines
from asv_bench.common.measure import cpu_seconds, quietly
from asv_bench.common.report import Report
from asv_bench.skip_gram.corpora import made_counts, read_corpus
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.decomposition.skip_gram import count_contexts

GRADIENTS = ("exact", "sampled", "decomp_mips", "mips")
#: Words on each side whose pairs count, and words of a warm-up, which compiles.
_WINDOW, _WARM_UP = 8, 300


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    known = ("brown_wikitext", "made")
    parser.add_argument("--corpora", nargs="+", default=known, choices=known)
    parser.add_argument("--gradients", nargs="+", default=GRADIENTS, choices=GRADIENTS)
    parser.add_argument("--words", type=int, default=20_000, help="of made counts (20,000)")
    parser.add_argument("--scored", type=int, default=5000, help="words of the objective (5,000)")
    parser.add_argument("--iterations", type=int, default=8, help="at most (8)")
    parser.add_argument("--dim", type=int, default=100, help="of vectors (100)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Train by each gradient; return a row for each corpus, gradient and number of iterations."""
    rows = []
    for corpus in options.corpora:
        if corpus == "made":
            counts = made_counts(options.words)
        else:
            found = count_contexts(read_corpus(options.data), window=_WINDOW, n_jobs=1)
            n = len(found.words)
            counts = sp.csr_array((found.counts, found.indices, found.indptr), shape=(n, n))
        name = f"{corpus}: {counts.shape[0]:,} words, {counts.nnz:,} distinct pairs"
        scored = sample_of_words(counts, options.scored)
        few = sp.csr_array(counts[:_WARM_UP, :_WARM_UP])
        for gradient in options.gradients:
            model = DecompMIPSSkipGram(options.dim, gradient=gradient, n_jobs=1, random_state=0)
            quietly(model.set_params(max_iter=1).fit, few)
            for n_iter in range(1, options.iterations + 1):
                _, seconds = cpu_seconds(quietly, model.set_params(max_iter=n_iter).fit, counts)
                row = {"counts": name, "gradient": gradient, "iterations": n_iter}
                row |= {"CPU s": seconds, "CPU s an iteration": seconds / n_iter}
                rows.append(row | {"objective": float(model.objective(scored))})
            print(f"{name}, {gradient}: measured", flush=True)
    report.table("Exact loss of a pair, nats", rows)
    figure = lines(rows, "gradient", "CPU s", ("objective",), log=("CPU s",), panels="counts")
    report.figure(figure, "skip_gram_objective")
    return rows


def sample_of_words(counts: Any, n: int) -> Any:
    """Return counts whose objective is nearly that of all: n words drawn by their counts.

    Each row that remains is as heavy as it was often drawn.
    """
    n_words = counts.shape[0]
    if n_words <= n:
        return counts
    sums = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    drawn = np.random.default_rng(0).choice(n_words, n, p=sums / sums.sum())
    times = np.bincount(drawn, minlength=n_words)
    factor = np.divide(times, sums, out=np.zeros(n_words), where=sums > 0)
    scored = sp.csr_array(sp.diags_array(factor.astype(np.float32)) @ counts)
    scored.eliminate_zeros()
    return scored
