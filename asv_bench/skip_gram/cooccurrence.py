"""Seconds, tokens per second and peak memory of ``count_contexts``.

Each call is alone in a fresh process, in which a toy call has compiled the kernels before. The
corpus comes as a file and as lists of tokens, which are in memory before the call; a made file has
words drawn by Zipf's law::

    python -m asv_bench cooccurrence --data DIR
    python -m asv_bench cooccurrence --data DIR --tokens 100000000 --sources made --max-memory 1GB
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from asv_bench.common.measure import peak_bytes, reset_peak
from asv_bench.common.report import Column, Report
from asv_bench.library.large import in_fresh_process
from asv_bench.skip_gram.corpora import read_corpus, write_made_text, write_text

SOURCES = ("file", "lists", "made")
_CORPUS = "brown_wikitext"
_MIB = 2**20

_COLUMNS = [
    Column("corpus", "corpus"),
    Column("source", "given as"),
    Column("n_tokens", "tokens", ",d"),
    Column("n_words", "words", ",d"),
    Column("nnz", "distinct pairs", ",d"),
    Column("wall_s", "s", ",.2f"),
    Column("cpu_s", "CPU s", ",.2f"),
    Column("tokens_per_s", "tokens a second", ",.0f"),
    Column("tokens_per_cpu_s", "tokens a CPU second", ",.0f"),
    Column("before_mib", "RSS before, MiB", ",.0f"),
    Column("grown_mib", "grown by, MiB", ",.0f"),
    Column("result_mib", "of these the result", ",.0f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sources", nargs="+", default=SOURCES, choices=SOURCES)
    parser.add_argument("--tokens", type=int, default=5_000_000, help="of the made file")
    parser.add_argument("--words", type=int, default=200_000,
                        help="that the made file draws from (200,000)")  # fmt: skip
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--max-memory", default=None, help='as "1GB"; half of what is free')
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")


def main(
    data: Any = None,
    *,
    sources: Sequence[str] = SOURCES,
    tokens: int = 5_000_000,
    words: int = 200_000,
    window: int = 8,
    max_memory: str | None = None,
    jobs: int = 1,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Count each source.

    Parameters
    ----------
    data : path-like
        Folder of the data sets; the made file needs none.
    sources : sequence of str
        Of ``SOURCES``.
    tokens, words : int
        Of the made file: tokens, and words from which they are drawn.
    window : int, default=8
    max_memory : str, default=None
        What counting may take, as of ``DecompMIPSSkipGram``.
    jobs : int, default=1
        Threads.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each source.

    Raises
    ------
    RuntimeError
        If a call failed.
    """
    from sklearn_xc.parallel.memory import parse_bytes

    report, rows = report or Report("cooccurrence"), []
    allowed = None if max_memory is None else parse_bytes(max_memory, "--max-memory")
    with TemporaryDirectory() as folder:
        for source in sources:
            path = Path(folder, f"{source}.txt")
            if source == "made":
                write_made_text(path, tokens, words)
            else:
                write_text(path, read_corpus(_CORPUS, data))
            row = in_fresh_process(measure_counting, path, source == "lists", window, allowed, jobs)
            path.unlink()
            if "error" in row:
                raise RuntimeError(f"{source}: {row['error']}")
            named = {
                "corpus": "made" if source == "made" else _CORPUS,
                "source": "lists" if source == "lists" else "a file",
            }
            rows.append(named | row)
            report.line(f"{source}: {row['tokens_per_s']:,.0f} tokens a second")
    report.table(f"count_contexts, window={window}, threads: {jobs}", rows, _COLUMNS)
    return rows


def measure_counting(
    path: Path, as_lists: bool, window: int, allowed: int | None, jobs: int
) -> dict[str, Any]:
    """Count the words of a file in this process, a fresh one.

    Parameters
    ----------
    path : Path
        A sentence to a line.
    as_lists : bool
        Whether to read it into lists of tokens beforehand.
    window : int
    allowed : int or None
        Bytes.
    jobs : int
        Threads.

    Returns
    -------
    dict
        A row.
    """
    from sklearn_xc.skip_gram import count_contexts

    toy = path.with_suffix(".toy")
    write_text(toy, [["some", "words", "of", "a", "toy"]] * 20)
    for given in (toy, [line.split() for line in toy.read_text("utf-8").splitlines()]):
        count_contexts(given, window=window, n_jobs=jobs)
    given = path
    if as_lists:
        with path.open(encoding="utf-8") as lines:
            given = [line.split() for line in lines]
    reset_peak()
    before = peak_bytes()
    began, began_cpu = perf_counter(), process_time()
    found = count_contexts(given, window=window, allowed_bytes=allowed, n_jobs=jobs)
    seconds, cpu = perf_counter() - began, process_time() - began_cpu
    grown = peak_bytes() - before
    with path.open(encoding="utf-8") as lines:
        n_tokens = sum(len(line.split()) for line in lines)
    result = sum(array.nbytes for array in found[2:])
    return {
        "n_tokens": n_tokens, "n_words": len(found.words), "nnz": len(found.counts),
        "wall_s": seconds, "cpu_s": cpu, "tokens_per_s": n_tokens / seconds,
        "tokens_per_cpu_s": n_tokens / cpu,
        "before_mib": before / _MIB, "grown_mib": grown / _MIB, "result_mib": result / _MIB,
    }  # fmt: skip
