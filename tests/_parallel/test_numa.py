"""NUMA nodes, their memory, and threads that are pinned to them.

This machine may have one node. Others are folders as Linux has them; threads are pinned to real
processors, and pages are where the kernel says they are.
"""

import os
import sys
import threading
from functools import partial

import joblib
import numpy as np
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc._parallel import numa
from sklearn_xc._parallel.engines import engine_at_work
from sklearn_xc._parallel.engines.local import LocalEngine
from sklearn_xc._parallel.engines.numa import NumaEngine
from sklearn_xc._parallel.interrupt import StopFlag
from sklearn_xc._parallel.numa import Node, nodes, nodes_of_pages, spread
from sklearn_xc.datasets import make_xc_classification

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning")
MINE = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
linux = pytest.mark.skipif(not numa.SYSFS.exists(), reason="Linux alone tells of nodes")


def make_sysfs(folder, cpus, online=None, free=1 << 20):
    folder.mkdir()
    (folder / "online").write_text((online or f"0-{len(cpus) - 1}") + "\n")
    for number, of_node in cpus.items():
        node = folder / f"node{number}"
        node.mkdir()
        (node / "cpulist").write_text(of_node + "\n")
        (node / "meminfo").write_text(
            f"Node {number} MemTotal:       9999999 kB\nNode {number} MemFree:        {free} kB\n"
            f"Node {number} FilePages:      500 kB\nNode {number} Shmem:          200 kB\n"
        )
    return folder


@pytest.mark.parametrize(
    ("cpus", "online", "allowed", "expected"),
    [
        (
            {0: "0-3,8-11", 1: "4-7,12-15"},
            None,
            range(16),
            [(0, (0, 1, 2, 3, 8, 9, 10, 11)), (1, (4, 5, 6, 7, 12, 13, 14, 15))],
        ),
        ({0: "0-3", 1: "4-7"}, None, [1, 2, 5], [(0, (1, 2)), (1, (5,))]),
        ({0: "0-3", 1: "4-7"}, None, [1, 2], [(0, (1, 2))]),
        ({0: "0-1", 2: "2-3", 5: ""}, "0,2,5", range(4), [(0, (0, 1)), (2, (2, 3))]),
        ({0: "0"}, "0", [0], [(0, (0,))]),
    ],
)
def test_nodes_are_read_as_linux_tells_of_them(tmp_path, cpus, online, allowed, expected):
    found = nodes(make_sysfs(tmp_path / "node", cpus, online), allowed)
    assert [(node.number, node.cpus) for node in found] == expected
    assert all(node.free == 1024 * ((1 << 20) + 300) for node in found)


@linux
def test_the_nodes_of_this_machine():
    found = nodes()
    assert sorted(cpu for node in found for cpu in node.cpus) == MINE
    assert all(node.free > 0 for node in found)


@linux
def test_where_pages_lie():
    array = np.ones(1 << 20)
    at = nodes_of_pages(array)
    if (at < 0).all():
        pytest.skip("this kernel does not say")
    numbers = [node.number for node in nodes()]
    assert set(at.tolist()) <= set(numbers)
    assert len(at) >= array.nbytes // os.sysconf("SC_PAGESIZE")
    assert spread([array], numbers)
    assert set(nodes_of_pages(array).tolist()) <= set(numbers)
    assert (array == 1).all()


#: Two nodes; on a machine with one processor both have it.
TWO = [Node(0, (MINE[0],), 1 << 40), Node(1, (MINE[-1],), 1 << 40)]


class Shared:
    def __init__(self):
        self.array, self.stop = np.arange(1000.0), StopFlag()


class Meeting:
    """Where tasks wait until some of each node are there: however the system runs threads."""

    def __init__(self, n_nodes=2):
        self.n_nodes, self.there, self.all_there = n_nodes, set(), threading.Event()

    def wait(self):
        self.there.add(threading.current_thread().name.split("_")[0])
        if len(self.there) == self.n_nodes:
            self.all_there.set()
        assert self.all_there.wait(60)


meeting = Meeting()


@pytest.fixture(autouse=True)
def new_meeting(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "meeting", Meeting())


def look(shared, number=0):
    meeting.wait()
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    name = threading.current_thread().name
    return id(shared), id(shared.stop), shared.array.sum(), affinity, name, number


@linux
def test_each_node_has_a_copy_and_threads_of_its_own():
    shared, before = Shared(), os.sched_getaffinity(0)
    with NumaEngine(TWO).sharing(shared, "bench") as place:
        found = dict(place.run(look, ((i, (i,)) for i in range(40)), 2))
    assert os.sched_getaffinity(0) == before
    assert [found[i][5] for i in range(40)] == list(range(40))
    by_node = {name[:5]: (copy, affinity) for copy, _, _, affinity, name, _ in found.values()}
    assert by_node.keys() == {"node0", "node1"}
    assert by_node["node0"][1] == set(TWO[0].cpus)
    assert by_node["node1"][1] == set(TWO[1].cpus)
    assert len({copy for copy, _ in by_node.values()} | {id(shared)}) == 3
    assert {stop for _, stop, *_ in found.values()} == {id(shared.stop)}, "one flag stops all"
    assert {total for _, _, total, *_ in found.values()} == {shared.array.sum()}


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        (NumaEngine(TWO, is_verbose=True), "each of 2 NUMA nodes has a copy of 7.8 KiB"),
        (NumaEngine(TWO, may_copy=False, is_verbose=True), "7.8 KiB that all read"),
        (NumaEngine([TWO[0], Node(1, TWO[1].cpus, 100)], is_verbose=True), "7.8 KiB that all read"),
    ],
)
def test_where_it_lies_is_told(engine, says, capsys):
    shared = Shared()
    with engine.sharing(shared, "SomeXC") as place:
        found = dict(place.run(look, ((i, ()) for i in range(8)), 2))
    assert f"[SomeXC] {says}" in capsys.readouterr().out
    is_copied = "copy" in says
    assert (id(shared) in {copy for copy, *_ in found.values()}) == (not is_copied)


def test_maps_of_files_are_not_copied(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones(1 << 16))
    shared = Shared()
    shared.array = np.load(tmp_path / "x.npy", mmap_mode="r")[:100]
    with NumaEngine(TWO, is_verbose=True).sharing(shared, "bench"):
        pass
    assert "that all read" in capsys.readouterr().out


def test_a_single_thread_is_pinned_nowhere(monkeypatch, tmp_path):
    folder = make_sysfs(tmp_path / "node", {0: str(MINE[0]), 1: str(MINE[-1])})
    monkeypatch.setattr(numa, "nodes", lambda: nodes(folder))
    assert isinstance(engine_at_work("auto"), LocalEngine)
    assert isinstance(engine_at_work("auto", 1), LocalEngine)
    assert isinstance(engine_at_work("auto", 2), NumaEngine)
    assert isinstance(engine_at_work(False, 2), LocalEngine)
    with joblib.parallel_config("loky"):
        assert isinstance(engine_at_work("auto", 2), LocalEngine)


X, Y = make_xc_classification(
    n_samples=1500, n_features=800, n_labels=300, random_state=0, return_X_y=True
)


def bytes_of(model):
    coef = model.coef_
    return coef.data.tobytes(), coef.indices.tobytes(), model.intercept_.tobytes()


@pytest.mark.parametrize(
    ("make", "copies"), [(OvALinearXC, True), (partial(OvALinearXC, init="ovap++"), False)]
)
def test_the_model_is_the_same(monkeypatch, tmp_path, make, copies, capsys):
    expected = bytes_of(make(numa=False, n_jobs=2).fit(X, Y))
    cpus = {0: str(MINE[0]), 1: str(MINE[-1])}
    folder = make_sysfs(tmp_path / "node", cpus, free=1 << 30 if copies else 1)
    monkeypatch.setattr(numa, "nodes", lambda: nodes(folder))
    model = make(n_jobs=2, verbose=1).fit(X, Y)
    assert bytes_of(model) == expected
    said = "has a copy" if copies else "that all read"
    assert said in capsys.readouterr().out
    make(n_jobs=2, verbose=1, numa=False).fit(X, Y)
    assert said not in capsys.readouterr().out
    make(n_jobs=2, verbose=1, max_memory="500MB").fit(X, Y)
    assert "has a copy" not in capsys.readouterr().out
