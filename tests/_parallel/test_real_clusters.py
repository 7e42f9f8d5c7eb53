"""Fits on clusters of Dask and Ray: three processes of this machine, one killed while it works."""

import os
import signal
import subprocess
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

from sklearn_xc import (
    OvALinearXC,
    OvALinearXCCV,
    StackingXC,
    topk,
)
from sklearn_xc._parallel.engines import active_engine
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import UnseenLabelWarning

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # those of dask and ray, too
]
N_WORKERS = 3
X, Y = make_xc_classification(
    n_samples=4000, n_features=3000, n_labels=1500, random_state=0, return_X_y=True
)
ESTIMATORS = {
    "one-vs-all": OvALinearXC,
    "labels along a tree": lambda: OvALinearXC(init="ovap++"),
    "C by cross-validation": lambda: OvALinearXCCV(Cs=[0.3, 1.0], cv=2),
    "stack": lambda: StackingXC(
        [("ova", OvALinearXC()), ("low", OvALinearXC(C=0.1))], cv=2, random_state=0
    ),
}


class DaskCluster:
    """Three workers with a thread each."""

    backend = "dask"

    def __init__(self):
        distributed = pytest.importorskip("dask.distributed")
        self.cluster = distributed.LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        self.client = distributed.Client(self.cluster)

    def pids(self):
        return sorted(self.client.run(os.getpid).values())

    def close(self):
        self.client.close()
        self.cluster.close()


class RayCluster:
    """Three processes."""

    backend = "ray"

    def __init__(self):
        self.ray = pytest.importorskip("ray")
        from ray.util.joblib import register_ray

        register_ray()
        self.ray.init(
            num_cpus=N_WORKERS,
            include_dashboard=False,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
        )

    def pids(self):
        """Return the processes that run tasks."""
        found = subprocess.run(
            ["pgrep", "-f", "^ray::_run"], capture_output=True, text=True, check=False
        )
        return sorted(map(int, found.stdout.split()))

    def close(self):
        self.ray.shutdown()


@pytest.fixture(scope="module", params=[DaskCluster, RayCluster])
def cluster(request):
    with pytest.MonkeyPatch.context() as patch:  # workers read classes of this file
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.setenv("RAY_worker_niceness", "0")  # or all else on the machine goes first
        found = request.param()
        yield found
        found.close()


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


def content(model):
    """Return the bytes of answers and weights."""
    labels, scores = topk(model, X[:300], k=5)
    found = [labels.tobytes(), scores.tobytes()]
    if hasattr(model, "coef_"):
        coef = model.coef_
        arrays = (coef.data, coef.indices, coef.indptr) if hasattr(coef, "indptr") else (coef,)
        found += [np.ascontiguousarray(one).tobytes() for one in arrays]
    return found


@pytest.fixture(scope="module")
def expected(name):
    return content(ESTIMATORS[name]().fit(X, Y))


def test_models_have_the_bytes_of_one_machine(cluster, name, expected):
    with joblib.parallel_config(cluster.backend):
        assert active_engine().count(None).n == N_WORKERS
        model = ESTIMATORS[name]().fit(X, Y)
    assert content(model) == expected


@pytest.mark.parametrize("name", ["one-vs-all", "stack"])
def test_a_worker_that_dies_costs_what_it_worked_on(cluster, name):
    """It is killed as soon as there is a part that another has finished."""
    expected = content(ESTIMATORS[name]().fit(X, Y))
    killed = []

    def kill():
        while not killed:
            time.sleep(0.02)
            for pid in cluster.pids()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Timer(0.3, kill)
    thread.start()
    with joblib.parallel_config(cluster.backend):
        model = ESTIMATORS[name]().fit(X, Y)
    thread.join()
    assert killed
    assert content(model) == expected


def test_warnings_come_from_workers(cluster):
    stack = StackingXC([("ova", OvALinearXC(max_iter=1, tol=1e-9))], cv=2, random_state=0)
    with joblib.parallel_config(cluster.backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stack.fit(X, Y)
    assert any("did not converge" in str(one.message) for one in caught)
    assert sum(one.category is UnseenLabelWarning for one in caught) <= 1


def test_an_interrupted_fit_leaves_the_cluster_to_others(cluster):
    from sklearn_xc._parallel.progress import Progress

    ended = Progress.ended

    def interrupt(*args, **named):
        raise KeyboardInterrupt

    with joblib.parallel_config(cluster.backend):
        Progress.ended = interrupt
        try:
            with pytest.raises(KeyboardInterrupt):
                OvALinearXC().fit(X, Y)
        finally:
            Progress.ended = ended
        expected = content(OvALinearXC().fit(X, Y))
    assert expected == content(OvALinearXC().fit(X, Y))
