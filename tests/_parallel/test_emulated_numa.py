"""Pages and threads on emulated machines with NUMA nodes; ``emulated/machine.py`` has its needs.

``SKLEARN_XC_KERNEL`` is the folder of an unpacked Linux kernel. A fit compiles loops on an emulated
processor: ten minutes.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "emulated"
KERNEL = os.environ.get("SKLEARN_XC_KERNEL")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        KERNEL is None or shutil.which("qemu-system-x86_64") is None,
        reason="needs QEMU, and SKLEARN_XC_KERNEL, an unpacked kernel",
    ),
]


@pytest.mark.parametrize(("n_nodes", "options"), [(2, "--fit"), (4, "")])
def test_copies_lie_on_their_nodes_and_pages_are_spread(n_nodes, options, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    from machine import run

    root = HERE.parents[2]
    command = (  # its /tmp is the emulated machine's own
        f"cd {shlex.quote(str(root))} && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "
        f"PYTHONPATH={shlex.quote(str(root))} NUMBA_CACHE_DIR=/tmp/compiled "
        f"{shlex.quote(sys.executable)} {shlex.quote(str(HERE / 'look.py'))} {options}"
    )
    said, status = run(KERNEL, n_nodes, command, timeout=3600)
    print(said)
    assert status == 0, said
    assert f"each of {n_nodes} NUMA nodes has a copy" in said
    assert f"is spread over {n_nodes} NUMA nodes" in said
    assert "taken over from other nodes" in said
    assert ("the same bytes: True" in said) == bool(options)
