"""NUMA nodes: as Linux lists them, and threads pinned to them with copies of the data.

This machine may have one node: others are folders like those of Linux, and real processors.
"""

import os
import sys
import threading

import joblib
import numpy as np
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc._parallel import engines
from sklearn_xc._parallel.engines import Engine, active_engine, numa
from sklearn_xc._parallel.engines.numa import SYSFS, Node, NumaEngine, find_nodes
from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.datasets import make_xc_classification

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists nodes and pins threads"),
]
MINE = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
#: Two nodes; on a machine with one processor both have it.
TWO = [Node(0, (MINE[0],), 1 << 40), Node(1, (MINE[-1],), 1 << 40)]


def make_sysfs(folder, cpus, online, free=1 << 20):
    folder.mkdir()
    (folder / "online").write_text(online + "\n")
    for number, listed in cpus.items():
        node = folder / f"node{number}"
        node.mkdir()
        (node / "cpulist").write_text(listed + "\n")
        (node / "meminfo").write_text(
            f"Node {number} MemTotal:       9999999 kB\nNode {number} MemFree:        {free} kB\n"
            f"Node {number} FilePages:      500 kB\nNode {number} Shmem:          200 kB\n"
        )
    return folder


@pytest.mark.parametrize(
    ("cpus", "online", "allowed", "expected"),
    [
        ({0: "0-1,4-5", 1: "2-3"}, "0-1", range(6), [(0, (0, 1, 4, 5)), (1, (2, 3))]),
        ({0: "0-3", 1: "4-7"}, "0-1", [1, 2], [(0, (1, 2))]),
        ({0: "0-1", 2: "2-3", 5: ""}, "0,2,5", range(4), [(0, (0, 1)), (2, (2, 3))]),
    ],
)
def test_nodes_are_read_from_the_files_of_linux(tmp_path, cpus, online, allowed, expected):
    found = find_nodes(make_sysfs(tmp_path / "node", cpus, online), allowed)
    assert [(node.number, node.cpus) for node in found] == expected
    assert all(node.free == 1024 * ((1 << 20) + 300) for node in found)


@pytest.mark.skipif(not SYSFS.exists(), reason="this machine lists no nodes")
def test_the_nodes_of_this_machine():
    assert sorted(cpu for node in find_nodes() for cpu in node.cpus) == MINE


class Shared:
    def __init__(self):
        self.array, self.stop = np.arange(1000.0), StopFlag()


def observe(shared, number, both_nodes):
    """Wait until threads of both nodes are here, and return what this one sees."""
    both_nodes.wait(60)
    name = threading.current_thread().name[:5]
    return id(shared), id(shared.stop), shared.array.sum(), os.sched_getaffinity(0), name, number


def test_each_node_has_a_copy_and_threads_of_its_own(capsys):
    shared, before, barrier = Shared(), os.sched_getaffinity(0), threading.Barrier(2)
    with NumaEngine(TWO, is_verbose=True).sharing(shared, "SomeXC") as place:
        found = dict(place.run(observe, ((i, (i, barrier)) for i in range(2)), 2))
    assert "[SomeXC] each of 2 NUMA nodes has a copy of 7.8 KiB" in capsys.readouterr().out
    assert os.sched_getaffinity(0) == before
    assert [found[i][5] for i in range(2)] == [0, 1]
    seen = {name: (copy, affinity) for copy, _, _, affinity, name, _ in found.values()}
    assert {name: affinity for name, (_, affinity) in seen.items()} == {
        "node0": {MINE[0]},
        "node1": {MINE[-1]},
    }
    assert len({copy for copy, _ in seen.values()} | {id(shared)}) == 3
    assert {stop for _, stop, *_ in found.values()} == {id(shared.stop)}, "one flag stops all"
    assert {total for _, _, total, *_ in found.values()} == {shared.array.sum()}


def test_nothing_is_copied_or_pinned_where_a_node_has_no_room():
    shared, barrier = Shared(), threading.Barrier(1)
    with NumaEngine([TWO[0], Node(1, TWO[1].cpus, 100)]).sharing(shared, "SomeXC") as place:
        ((_, found),) = place.run(observe, [(0, (0, barrier))], 2)
    assert found[0] == id(shared)
    assert found[3] == set(MINE)


@pytest.fixture
def two_nodes(monkeypatch, tmp_path):
    folder = make_sysfs(tmp_path / "node", {0: str(MINE[0]), 1: str(MINE[-1])}, "0-1", 1 << 30)
    monkeypatch.setattr(engines, "_NODES", folder)
    monkeypatch.setattr(numa, "find_nodes", lambda: find_nodes(folder))


def test_several_threads_of_joblib_are_pinned_if_wanted(two_nodes):
    assert type(active_engine("auto", 2)) is NumaEngine
    for arguments in (("auto",), ("auto", 1), (False, 2)):
        assert type(active_engine(*arguments)) is Engine
    assert type(active_engine("auto", 2, may_copy=False)) is Engine
    with joblib.parallel_config("loky"):
        assert type(active_engine("auto", 2)) is Engine


def test_the_model_is_the_same(two_nodes, capsys):
    X, Y = make_xc_classification(
        n_samples=1500, n_features=800, n_labels=300, random_state=0, return_X_y=True
    )
    for init in ("msi", "ovap++"):
        plain = OvALinearXC(init=init, numa=False, n_jobs=2).fit(X, Y)
        assert not capsys.readouterr().out
        pinned = OvALinearXC(init=init, n_jobs=2, verbose=1).fit(X, Y)
        assert "has a copy" in capsys.readouterr().out
        assert plain.coef_.data.tobytes() == pinned.coef_.data.tobytes()
        assert plain.coef_.indices.tobytes() == pinned.coef_.indices.tobytes()
        assert plain.intercept_.tobytes() == pinned.intercept_.tobytes()
