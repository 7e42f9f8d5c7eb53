"""PECOS XR-Linear in the interpreter that $PECOS_PYTHON names: it needs an older numpy.

``python -m venv pecos; pecos/bin/pip install libpecos``, then ``PECOS_PYTHON=pecos/bin/python``.
"""

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp

from asv_bench.common.measure import Usage
from asv_bench.common.sets import DataSet
from asv_bench.peers import K, Outcome

_SCRIPT = Path(__file__).with_name("pecos_script.py")


def run(known: DataSet, n_jobs: int) -> Outcome:
    """Train and predict; memory is that of the other interpreter."""
    with TemporaryDirectory() as folder:
        for part in ("X_train", "Y_train", "X_test"):
            matrix = sp.csr_matrix(getattr(known, part), dtype=np.float32)
            sp.save_npz(Path(folder, f"{part}.npz"), matrix, compressed=False)
        job = json.dumps({"folder": folder, "n_jobs": n_jobs, "k": K})
        command = [os.environ.get("PECOS_PYTHON", "python"), str(_SCRIPT), job]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise RuntimeError(f"PECOS_PYTHON={command[0]}: {last}")
        result = json.loads(Path(folder, "result.json").read_text())
        topk = np.load(Path(folder, "topk.npy"))
    return Outcome(Usage(*result["usage"]), topk, result["ms_per_row"], result["model_bytes"])
