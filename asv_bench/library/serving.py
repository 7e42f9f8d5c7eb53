"""A saved model behind HTTP: time until the first answer, and of requests under load.

``examples/serve.py`` runs in a process of its own on 127.0.0.1, with a model of the Tate subjects.
Clients in threads of this process ask for one text after the other, each over a connection of its
own; both share the cores. Needs ``pip install fastapi uvicorn``.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Seconds until a server must have answered.
PATIENCE = 60

_COLUMNS = [
    Column("n_clients", "clients"),
    Column("n_requests", "requests", ","),
    Column("per_s", "a second", ",.0f"),
    Column("p50_ms", "p50, ms", ".2f"),
    Column("p99_ms", "p99, ms", ".2f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--clients", type=int, nargs="+", default=(1, 4, 16), help="1 4 16")
    parser.add_argument("--requests", type=int, default=2_000, help="of all clients (2000)")
    parser.add_argument("--rows", type=int, default=None, help="to train on (all 47,119)")
    parser.add_argument("--starts", type=int, default=5, help="of the server (5)")


def main(
    data: Any = None,
    *,
    clients: Sequence[int] = (1, 4, 16),
    requests: int = 2_000,
    rows: int | None = None,
    starts: int = 5,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure a server.

    Parameters
    ----------
    data : object, default=None
        Not used.
    clients : sequence of int
        How many ask at the same time.
    requests : int
        Of all clients together.
    rows : int, default=None
        Works to train on; None for all.
    starts : int
        How often the server is started; the last one is asked.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each number of clients.
    """
    from sklearn_xc.datasets import load_tate_subjects

    report = report or Report("serving")
    texts = load_tate_subjects("test").data[:requests]
    with TemporaryDirectory() as folder:
        _save_model(f"{folder}/model", rows)
        seconds = []
        for i in range(starts):
            with _Server(f"{folder}/model") as server:
                seconds.append(server.wait(texts[0]))
                if i == starts - 1:
                    found = [_load(server, n, texts) for n in clients]
    report.line(
        f"Start of the process to its first answer: median {np.median(seconds):.2f} s of {starts} "
        f"({', '.join(f'{one:.2f}' for one in seconds)})."
    )
    report.table("POST /tags, five tags for a text", found, _COLUMNS)
    return found


def _save_model(path: str, n_rows: int | None) -> None:
    from sklearn_xc import OvALinearXC, TextClassifierXC
    from sklearn_xc.datasets import load_tate_subjects

    train = load_tate_subjects("train")
    model = TextClassifierXC(classifier=OvALinearXC(n_jobs=-1))
    names = np.array([f"subject {i}" for i in range(train.target.shape[1])])
    Y = train.target[:n_rows].tocsr()
    tags = [names[Y.indices[a:b]].tolist() for a, b in zip(Y.indptr, Y.indptr[1:], strict=False)]
    model.fit(train.data[:n_rows], tags).save(path)


class _Server:
    """A server in a process of its own."""

    def __init__(self, model: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._began = perf_counter()
        command = [
            sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "serve:app",
            "--host", "127.0.0.1", "--port", str(self.port), "--log-level", "warning",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, env={**os.environ, "XC_MODEL": model})

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def wait(self, text: str) -> float:
        """Return the seconds from the start to the first answer."""
        while True:
            try:
                with closing(self.connect()) as connection:
                    ask(connection, text)
            except OSError:
                if self._process.poll() is not None or perf_counter() - self._began > PATIENCE:
                    raise RuntimeError("the server did not answer") from None
                sleep(0.005)
            else:
                return perf_counter() - self._began


def ask(connection: http.client.HTTPConnection, text: str) -> list[dict[str, Any]]:
    """Return the tags of a text."""
    body = json.dumps({"text": text})
    connection.request("POST", "/tags", body, {"content-type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise RuntimeError(f"status {response.status}: {content[:200]!r}")
    return json.loads(content)  # type: ignore[no-any-return]


def _load(server: _Server, n_clients: int, texts: Sequence[str]) -> dict[str, Any]:
    """Return how long requests take when so many clients ask."""
    seconds: list[float] = []

    def client(own: Sequence[str]) -> None:
        with closing(server.connect()) as connection:
            for text in own:
                began = perf_counter()
                ask(connection, text)
                seconds.append(perf_counter() - began)

    team = [threading.Thread(target=client, args=(texts[i::n_clients],)) for i in range(n_clients)]
    began = perf_counter()
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    wall = perf_counter() - began
    p50, p99 = np.percentile(seconds, [50, 99])
    return {
        "n_clients": n_clients, "n_requests": len(seconds), "per_s": len(seconds) / wall,
        "p50_ms": 1e3 * p50, "p99_ms": 1e3 * p99,
    }  # fmt: skip
