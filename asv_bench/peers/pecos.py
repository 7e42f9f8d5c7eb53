"""PECOS XR-Linear, in an interpreter of its own: libpecos needs an older numpy than we do."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.data import SplitSet
from asv_bench.peers.meter import Usage
from asv_bench.peers.outcome import K, Outcome

_SCRIPT = Path(__file__).with_name("pecos_script.py")


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Train and predict.

    Parameters
    ----------
    split : SplitSet
        The data.
    task : mapping
        ``n_jobs``; ``pecos_python``, the interpreter; ``matrices``, the folder from which it reads
        the data, see :func:`~asv_bench.common.data.load_set`.

    Returns
    -------
    Outcome
        Memory is that of the other interpreter.

    Raises
    ------
    RuntimeError
        If it fails, with its last line.
    """
    with TemporaryDirectory() as folder:
        job = {"matrices": task["matrices"], "folder": folder, "n_jobs": task["n_jobs"], "k": K}
        try:
            done = subprocess.run(
                [task["pecos_python"], str(_SCRIPT), json.dumps(job)], capture_output=True,
                text=True,
            )  # fmt: skip
        except OSError as error:
            raise RuntimeError(f"--pecos-python cannot be started: {error}") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise RuntimeError(f"with --pecos-python {task['pecos_python']}: {last}")
        result = json.loads(Path(folder, "result.json").read_text())
        topk = np.load(Path(folder, "topk.npy"))
    return Outcome(
        usage=Usage(*result["usage"]),
        topk=topk,
        predict_ms_per_row=result["predict_ms_per_row"],
        model_bytes=result["model_bytes"],
        model_in="files",
        n_threads=task["n_jobs"],
    )
