"""OvALinearXC and the libraries beside it, each behind the same function.

A system is a module with ``run(split, task)``, which trains and predicts in this process and
returns an :class:`~asv_bench.peers.outcome.Outcome`. The worker calls one of them in a
process of its own, so that memory, CPU time and imports are that system's alone::

    worker.py       python -m asv_bench.peers.worker: one system, one set, one JSON file
        |
        +-- ours.py  liblinear.py  omikuji.py  napkinxc.py  sparse_dot_topn.py
        +-- pecos.py -> pecos_script.py     with an interpreter of its own
        +-- compile.py                      what the first use of the package costs
        v
    outcome.py      the record that all of them return
    meter.py        CPU seconds, wall seconds and peak memory of a call

To add one, write its file and give it a line in ``SYSTEMS``.
"""

from importlib.util import find_spec
from typing import NamedTuple

import sklearn_xc
from sklearn_xc.losses import LOSSES


class System(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    title : str
        Its name and setting, as shown.
    label : str
        Its name in the figure.
    module : str
        File of this folder with its ``run``.
    distribution : str or None
        What to install with pip; None for this package.
    package : str or None
        What must be importable here.
    options : dict
        Added to the task that ``run`` gets.
    """

    title: str
    label: str
    module: str
    distribution: str | None = None
    package: str | None = None
    options: dict[str, str] = {}  # noqa: RUF012


SYSTEMS: dict[str, System] = {
    "ova": System("OvALinearXC", "OvALinearXC", "ours"),
    **{
        f"ova-{loss}": System(f"OvALinearXC, {loss}", loss, "ours", options={"loss": loss})
        for loss in LOSSES
        if loss != "squared_hinge"
    },
    "ova-cv": System(
        "OvALinearXCCV", "OvALinearXCCV", "ours", options={"estimator": "OvALinearXCCV"}
    ),
    "liblinear-primal": System(
        "LIBLINEAR primal (-s 2 -e 0.01)", "LIBLINEAR primal", "liblinear", "liblinear-official",
        "liblinear", {"arguments": "-s 2 -c 1 -e 0.01 -B 1 -q"},
    ),
    "liblinear-dual": System(
        "LIBLINEAR dual (-s 1 -e 0.1)", "LIBLINEAR dual", "liblinear", "liblinear-official",
        "liblinear", {"arguments": "-s 1 -c 1 -e 0.1 -B 1 -q"},
    ),
    "pecos": System("PECOS XR-Linear", "PECOS", "pecos"),
    "omikuji": System("omikuji, 3 trees", "omikuji", "omikuji", "omikuji", "omikuji"),
    "napkinxc": System("napkinXC PLT", "napkinXC", "napkinxc", "napkinxc", "napkinxc"),
    "napkinxc-br": System(
        "napkinXC one-vs-rest", "napkinXC OvR", "napkinxc", "napkinxc", "napkinxc", {"model": "BR"}
    ),
    "sparse_dot_topn": System(
        "sparse_dot_topn on our weights", "sparse_dot_topn", "sparse_dot_topn", "sparse-dot-topn",
        "sparse_dot_topn",
    ),
}  # fmt: skip

#: What runs unless --systems names others.
DEFAULT_SYSTEMS = (
    "ova", "liblinear-primal", "liblinear-dual", "pecos", "omikuji", "napkinxc", "sparse_dot_topn"
)  # fmt: skip


def why_not(name: str, pecos_python: object = None) -> str | None:
    """Return why a system cannot run here, or None if it can.

    Parameters
    ----------
    name : str
        A key of ``SYSTEMS``.
    pecos_python : path-like or None
        The interpreter that PECOS runs in.
    """
    system = SYSTEMS[name]
    if system.module == "pecos" and pecos_python is None:
        return "not run: --pecos-python not given"
    if system.package is not None and find_spec(system.package) is None:
        return f"not installed: pip install {system.distribution}"
    estimator = system.options.get("estimator", "OvALinearXC")
    if system.module == "ours" and estimator not in sklearn_xc.__all__:
        return f"this version has no {estimator}"
    return None
