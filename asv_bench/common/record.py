"""What an experiment measured, as a JSON file: tables, sizes, hardware, time and memory."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from asv_bench.common import data
from asv_bench.common.environment import environment
from asv_bench.common.measure import peak_bytes, peak_of_children

#: Options that say where files are; what follows them is of one machine.
_PLACES = {"--data": "DIR", "--cache": "DIR"}
#: Options that say where results go: no part of what was measured.
_RESULTS = ("--out", "--record")


class Record:
    """Collects what an experiment shows, from its first line on.

    Parameters
    ----------
    experiment : str
        Its name on the command line.
    arguments : sequence of str, default=()
        What followed the name there.
    """

    def __init__(self, experiment: str, arguments: Sequence[str] = ()) -> None:
        self._command = " ".join(["python -m asv_bench", experiment, *_without_places(arguments)])
        self._began, self._cpu_began = perf_counter(), _cpu_seconds()
        self._tables: list[dict[str, Any]] = []
        self._notes: list[str] = []

    def table(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Any]) -> None:
        """Keep a table: what its columns show of each row, before it is rounded."""
        self._tables.append(
            {
                "title": title,
                "columns": {column.key: column.header for column in columns},
                "rows": [
                    {column.key: _plain(row.get(column.key)) for column in columns} for row in rows
                ],
            }
        )

    def note(self, text: str) -> None:
        """Keep a line of text."""
        if text:
            self._notes.append(text)

    def write(self, path: Path, *, finished: bool = True) -> None:
        """Write the file.

        Parameters
        ----------
        path : Path
            Where it goes.
        finished : bool, default=True
            Whether the experiment came to its end.
        """
        content = {
            "command": self._command,
            "finished": finished,
            "environment": environment(),
            "sets": data.loaded_sizes(),
            "wall_s": round(perf_counter() - self._began, 1),
            "cpu_s": round(_cpu_seconds() - self._cpu_began, 1),
            "peak_mib": round(max(peak_bytes(), peak_of_children()) / 2**20),
            "tables": self._tables,
            "notes": self._notes,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _without_places(arguments: Sequence[str]) -> list[str]:
    """Return arguments without what holds for one machine only."""
    kept, place = [], None
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if place is not None:
            if place:
                kept.append(place)
            place = None
        elif name in _RESULTS:
            place = None if equals else ""
        elif name in _PLACES:
            kept.append(f"{name}={_PLACES[name]}" if equals else name)
            place = None if equals else _PLACES[name]
        else:
            kept.append(Path(argument).name if os.path.isabs(argument) else argument)
    return kept


def _plain(value: Any) -> Any:
    """Return a cell as what JSON has; what is not a number is None."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of those that it has started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
