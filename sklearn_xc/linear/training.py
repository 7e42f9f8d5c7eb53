"""Solves the problems of all labels, in parallel over blocks of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sklearn_xc.initialisers import Initialiser
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.solvers.problem import OneVsAllProblem, check_range, sum_instances


def solve_blocks(
    problem: OneVsAllProblem,
    initialiser: Initialiser,
    group: np.ndarray,
    blocks: list[np.ndarray],
    n_workers: int,
    solve: Callable[..., Any],
    watch: Callable[[np.ndarray], None] | None = None,
) -> tuple[list[Any], np.ndarray]:
    """Call `solve` for each block of labels.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts.
    group : ndarray of int64 of shape (n_labels,)
        For each label, the label whose solution it shares.
    blocks : list of ndarray of int64
        The labels of each block; together, the members of `group`.
    n_workers : int
        Blocks at work at a time. No result depends on it.
    solve : callable
        Called as ``solve(problem, sums, initialiser, prepared, labels, stop)``: what `solve_block`
        takes. A function of a module, or a ``functools.partial`` of one: under a user's
        ``parallel_config`` it may be sent to another process.
    watch : callable, optional
        Called with the labels of each block once it is done.

    Returns
    -------
    results : list
        What `solve` returned for each block.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The place of each label, or of the one whose solution it shares, among all blocks' labels.

    Raises
    ------
    ValueError
        If the numbers are too large or too small for the arithmetic of X.
    """
    results: list[Any] = [None] * len(blocks)
    stop = StopFlag()
    with threadpool_limits(1, user_api="blas"):
        sums = sum_instances(problem)
        check_range(problem, sums)
        prepared = initialiser.prepare(problem, sums)
        done = Parallel(n_jobs=n_workers, prefer="threads", return_as="generator_unordered")(
            delayed(_numbered)(
                number, solve, problem, sums, initialiser, prepared, blocks[number], stop
            )
            for number in range(len(blocks))
        )
        try:
            for number, result in done:
                results[number] = result
                if watch is not None:
                    watch(blocks[number])
        finally:
            stop.set()
    row_of_distinct = np.empty(problem.n_labels, np.int64)
    row_of_distinct[np.concatenate(blocks)] = np.arange(sum(map(len, blocks)))
    return results, row_of_distinct[group]


def _numbered(number: int, solve: Callable[..., Any], *args: Any) -> tuple[int, Any]:
    """Return a block's number with its result: results come back in the order they finish."""
    return number, solve(*args)
