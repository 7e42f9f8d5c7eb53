"""Long experiments: kept rows that a stopped run continues from, tasks in their own processes."""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sklearn_xc

CHECKOUT = Path(__file__).resolve().parents[2]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class RowLog:
    """The rows measured so far, a JSON line each, in a file unless `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
        text = path.read_text(encoding="utf-8") if path is not None and path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]  # a killed run may have cut the last line off
        self._repaired = whole if whole != text else None
        for line in whole.splitlines():
            entry = json.loads(line)
            self._rows.append((entry["task"], entry["row"]))

    def find(self, task: dict[str, Any], *, with_errors: bool = False) -> dict[str, Any] | None:
        """Return the last row of a task, or None; those of failed runs only `with_errors`."""
        for known, row in reversed(self._rows):
            if known == task and (with_errors or "error" not in row):
                return row
        return None

    def add(self, task: dict[str, Any], row: dict[str, Any]) -> None:
        """Keep a row."""
        self._rows.append((task, row))
        if self._path is None:
            return
        if self._repaired is not None:
            self._path.write_text(self._repaired, encoding="utf-8")
            self._repaired = None
        with self._path.open("a", encoding="utf-8") as file:
            entry = {"task": task, "row": row, "version": sklearn_xc.__version__}
            file.write(json.dumps(entry) + "\n")


def in_process(
    function: str, task: Any, *, timeout: float = 3600.0, n_threads: int = 1
) -> dict[str, Any]:
    """Return what a function makes of a task in a fresh process.

    Parameters
    ----------
    function : str
        As "module:name"; takes the task and returns a dict.
    task : object
        The argument of the function, in JSON.
    timeout : float, default=3600
        Seconds after which the process and its children are killed.
    n_threads : int, default=1
        Threads of BLAS and OpenMP.

    Returns
    -------
    dict
        The result, or ``{"error": ...}``.
    """
    environment = dict(os.environ) | dict.fromkeys(_THREADS, str(n_threads))
    with TemporaryDirectory() as folder, Path(folder, "log.txt").open("w") as log:
        Path(folder, "task.json").write_text(json.dumps([function, task]))
        process = subprocess.Popen(
            [sys.executable, "-m", "asv_bench.common.runs", folder],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            cwd=CHECKOUT,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"timed out after {timeout:,g} s"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if Path(folder, "result.json").is_file():
            return json.loads(Path(folder, "result.json").read_text())
        lines = Path(folder, "log.txt").read_text(errors="replace").strip().splitlines()
        return {"error": f"exit status {status}: {(lines or ['no output'])[-1]}"}


def row_or_error(function: Any, *arguments: Any) -> dict[str, Any]:
    """Return the result of a call, or ``{"error": ...}``."""
    try:
        return function(*arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    _function, _task = json.loads(Path(sys.argv[1], "task.json").read_text())
    _module, _, _name = _function.partition(":")
    _found = row_or_error(getattr(importlib.import_module(_module), _name), _task)
    Path(sys.argv[1], "result.json").write_text(json.dumps(_found))
