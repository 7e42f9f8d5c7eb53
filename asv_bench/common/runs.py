"""Long experiments: rows that a stopped run goes on from, and tasks in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sklearn_xc

#: Where `asv_bench` is importable.
CHECKOUT = Path(__file__).resolve().parents[2]


class RowLog:
    """The rows measured so far, a JSON line each.

    Parameters
    ----------
    path : Path or None
        The file; None keeps nothing beyond this process. Reading alone does not change it: another
        process may be writing.

    Raises
    ------
    ValueError
        If a line is not what this experiment writes.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
        text = path.read_text(encoding="utf-8") if path is not None and path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]
        #: What the file is to hold before the next line: the last one was cut off.
        self._mended = whole if whole != text else None
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                self._rows.append((entry["task"], entry["row"]))
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"{path}, line {number}: expected an object with task and row. Got "
                    f"{line[:60]!r}."
                ) from None

    def find(self, task: dict[str, Any], *, with_errors: bool = False) -> dict[str, Any] | None:
        """Return the last row of a task, or None; those of failed runs only if asked for."""
        for known, row in reversed(self._rows):
            if known == task and (with_errors or "error" not in row):
                return row
        return None

    def add(self, task: dict[str, Any], row: dict[str, Any]) -> None:
        """Keep a row."""
        self._rows.append((task, row))
        if self._path is not None:
            if self._mended is not None:
                self._path.write_text(self._mended, encoding="utf-8")
                self._mended = None
            entry = {"task": task, "row": row, "version": sklearn_xc.__version__}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def run_worker(
    task: dict[str, Any],
    work: Path,
    environment: dict[str, str],
    timeout: float,
    module: str = "asv_bench.peers.worker",
) -> dict[str, Any]:
    """Run the worker on a task and return what it wrote.

    Parameters
    ----------
    task : dict
        What the worker asks for, see :func:`asv_bench.peers.worker.run`.
    work : Path
        An empty folder for the files between the processes.
    environment : dict
        Variables of the new process.
    timeout : float
        Seconds after which the process, and those that it has started, are ended.
    module : str, default="asv_bench.peers.worker"
        The worker: takes the paths of the task and of the result, for :func:`answer_task`.

    Returns
    -------
    dict
        The result, or ``{"error": ...}`` where there is none.
    """
    (work / "task.json").write_text(json.dumps(task))
    command = [sys.executable, "-m", module]
    with (work / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [*command, str(work / "task.json"), str(work / "result.json")],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
            start_new_session=True, cwd=CHECKOUT,
        )  # fmt: skip
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"timed out after {timeout:,g} s"}
        finally:
            _end(process)
    if (work / "result.json").is_file():
        return json.loads((work / "result.json").read_text())
    lines = (work / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return {"error": f"ended with status {status}: {(lines or ['it printed nothing'])[-1]}"}


def answer_task(
    run: Callable[[dict[str, Any]], dict[str, Any]], task_path: str, result_path: str
) -> None:
    """Run a task that :func:`run_worker` has written, and write the result: what a worker does.

    Parameters
    ----------
    run : callable
        Takes the task and returns the result.
    task_path, result_path : str
        JSON files.
    """
    task = json.loads(Path(task_path).read_text())
    Path(result_path).write_text(json.dumps(row_or_error(run, task)))


def row_or_error(run: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Return what a call returns, or a row ``{"error": ...}`` that says why it failed."""
    try:
        return run(*arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _end(process: subprocess.Popen) -> None:
    """End a process, if it still runs, with all that it has started."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own
    else:
        process.kill()
    process.wait()
