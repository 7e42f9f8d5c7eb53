"""Looks where threads run and pages lie on a machine with NUMA nodes; ``--fit`` trains, too.

Prints what it found, and fails if anything is elsewhere than it should be. On an emulated machine:
``python machine.py KERNEL 4 PYTHON look.py --fit``.
"""

import argparse
import os
import threading
import time
import warnings

import numpy as np

from sklearn_xc._parallel.engines.numa import NumaEngine
from sklearn_xc._parallel.numa import nodes, nodes_of_pages


class Shared:
    """Something large that tasks read."""

    def __init__(self):
        self.array = np.ones(1 << 23)


def pages_by_node(arrays, n_nodes):
    """Return how many pages each node has; of some, such as those on the way, it is not known."""
    at = np.concatenate([nodes_of_pages(array) for array in arrays])
    return np.bincount(at[at >= 0], minlength=n_nodes)


def look(shared, number):
    """Return where this thread may run, and where the pages are that it reads."""
    time.sleep(0.02)
    at = pages_by_node([shared.array], len(nodes()))
    return threading.current_thread().name, sorted(os.sched_getaffinity(0)), at


def main():
    """Look, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    there = nodes()
    print("nodes:", *(f"{node.number}: {node.cpus}, {node.free >> 20} MiB" for node in there))
    assert len(there) > 1
    for may_copy in (True, False):
        with NumaEngine(there, may_copy=may_copy, is_verbose=True).sharing(Shared(), "look") as at:
            found = dict(at.run(look, ((i, (i,)) for i in range(60)), len(os.sched_getaffinity(0))))
        by_node = {name.split("_")[0]: (cpus, pages) for name, cpus, pages in found.values()}
        for node in there:
            cpus, pages = by_node[f"node{node.number}"]
            print(f"node {node.number}: processors {cpus}, pages by node {pages.tolist()}")
            assert cpus == list(node.cpus)
            share = pages[node.number] / pages.sum()
            assert share > 0.95 if may_copy else abs(share - 1 / len(there)) < 0.1
    if given.fit:
        fit(there)


def fit(there):
    """Train with and without pinned threads: the same model, from pages of their nodes."""
    from sklearn_xc import OvALinearXC
    from sklearn_xc.datasets import make_xc_classification
    from sklearn_xc.one_vs_all import training

    warnings.simplefilter("ignore")
    X, Y = make_xc_classification(
        n_samples=3000, n_features=2000, n_labels=400, random_state=0, return_X_y=True
    )
    solve, seen = training._solve, {}

    def watched(shared, *arguments):
        X = shared.problem.instances
        pages = pages_by_node(X.arrays[1:], len(there))
        node = threading.current_thread().name.split("_")[0]
        seen.setdefault(node, []).append(pages)
        return solve(shared, *arguments)

    began = time.perf_counter()
    plain = OvALinearXC(n_jobs=2 * len(there), numa=False).fit(X, Y)
    print(f"fitted without in {time.perf_counter() - began:.0f} s, compilation included")
    training._solve = watched
    pinned = OvALinearXC(n_jobs=2 * len(there), verbose=1).fit(X, Y)  # tells who took over what
    for node, pages in sorted(seen.items()):
        total = np.sum(pages, axis=0)
        print(f"{node}: {len(pages)} blocks, pages of X by node {total.tolist()}")
        assert total[int(node.removeprefix("node"))] > 0.9 * total.sum()
    same = (plain.coef_.data.tobytes(), plain.coef_.indices.tobytes()) == (
        pinned.coef_.data.tobytes(), pinned.coef_.indices.tobytes(),
    )  # fmt: skip
    print("the same bytes:", same)
    assert same
    assert len(seen) == len(there)


if __name__ == "__main__":
    main()
