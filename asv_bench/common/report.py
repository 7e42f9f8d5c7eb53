"""The output of an experiment: tables as aligned text or markdown, notes, figures, a record.

The record is a JSON file with the command, versions, processor, sizes of the sets, seconds, peak
memory, tables and notes.
"""

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import sklearn_xc
from asv_bench.common.measure import peak_bytes
from asv_bench.common.sets import loaded

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
#: Options whose value belongs to one machine; those of the results are left out of the record.
_PLACES, _RESULTS = ("--data", "--cache"), ("--out", "--record")


def format_number(value: Any) -> str:
    """Return a cell: integers with separators, other numbers with four digits or more."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    size = abs(value)
    if size and not size >= 1e-3:
        return f"{value:.2e}"
    digits = 3 - math.floor(math.log10(size)) if size else 1
    return f"{value:,.{min(max(digits, 0), 4)}f}"


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys of all rows in the order of their first appearance, but hidden ones.

    A key that begins with "_" is hidden.
    """
    return [key for key in dict.fromkeys(key for row in rows for key in row) if key[0] != "_"]


def format_table(rows: Sequence[Mapping[str, Any]], *, markdown: bool = False) -> str:
    """Return rows as a table, whose columns are the keys of the rows.

    Parameters
    ----------
    rows : sequence of mapping
        A row without a key leaves that cell empty.
    markdown : bool, default=False
        Whether to draw the table with pipes.

    Examples
    --------
    >>> from asv_bench.common.report import format_table
    >>> print(format_table([{"init": "msi", "CPU s": 0.5}, {"init": "zero", "CPU s": 1.14}]))
    init  CPU s
    ----  ------
    msi   0.5000
    zero  1.140
    """
    columns = columns_of(rows)
    lines = [columns, *([format_number(_plain(row.get(c))) for c in columns] for row in rows)]
    if markdown:
        lines.insert(1, ["---"] * len(columns))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


class Report:
    """Prints tables and notes as they come, and keeps them in a folder if there is one.

    Parameters
    ----------
    name : str, default="report"
        Name of the experiment, and of the files.
    out : path-like, default=None
        Folder for the text, the figures and the record; None keeps nothing.
    markdown : bool, default=False
        Whether tables are markdown.
    arguments : sequence of str, default=()
        The command line after the experiment's name, for the record.
    record : path-like, default=None
        File of the record; None for NAME.json in the folder, if there is one.
    """

    def __init__(
        self,
        name: str = "report",
        *,
        out: Any = None,
        markdown: bool = False,
        arguments: Sequence[str] = (),
        record: Any = None,
    ) -> None:
        self.name, self.markdown = name, markdown
        self.out = None if out is None else Path(out)
        self._record = record if record or self.out is None else self.out / f"{name}.json"
        self._command = " ".join(["python -m asv_bench", name, *_without_places(arguments)])
        self._began, self._cpu_began = perf_counter(), _cpu_seconds()
        self._lines: list[str] = []
        self._tables: list[dict[str, Any]] = []
        self._notes: list[str] = []
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)

    def _print(self, text: str) -> None:
        print(text, flush=True)
        self._lines.append(text)

    def line(self, text: str) -> None:
        """Print a line of text."""
        self._print(text)
        self._notes.append(text)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print a table under its title; see :func:`format_table`."""
        columns = columns_of(rows)
        plain = [{column: _plain(row.get(column)) for column in columns} for row in rows]
        names = {column: column for column in columns}
        self._tables.append({"title": title, "columns": names, "rows": plain})
        heading = f"### {title}" if self.markdown else title
        self._print(f"\n{heading}\n\n{format_table(rows, markdown=self.markdown)}\n")

    def figure(self, figure: Any, name: str) -> None:
        """Write a matplotlib figure to the folder, if there is one."""
        if self.out is not None:
            figure.savefig(self.out / f"{name}.png", dpi=150)

    def save(self, *, finished: bool = True) -> None:
        """Write the text and the record; `finished` is part of the latter."""
        if self.out is not None:
            path = self.out / f"{self.name}.{'md' if self.markdown else 'txt'}"
            path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
        if self._record is None:
            return
        content = {
            "command": self._command,
            "finished": finished,
            "environment": environment(),
            "sets": loaded,
            "wall_s": round(perf_counter() - self._began, 1),
            "cpu_s": round(_cpu_seconds() - self._cpu_began, 1),
            "peak_mib": round((peak_bytes() or 0) / 2**20),
            "tables": self._tables,
            "notes": self._notes,
        }
        path = Path(self._record)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def environment() -> dict[str, Any]:
    """Return versions, processor, cores, memory, system and date."""
    versions = {"sklearn_xc": sklearn_xc.__version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "(unknown)"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "versions": versions,
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
    }


def _without_places(arguments: Sequence[str]) -> list[str]:
    """Return arguments without paths of this machine."""
    kept: list[str] = []
    values = iter(arguments)
    for argument in values:
        name, equals, _ = argument.partition("=")
        if name in (*_PLACES, *_RESULTS):
            if not equals:
                next(values, None)
            kept += [name, "DIR"] if name in _PLACES else []
        else:
            kept.append(Path(argument).name if os.path.isabs(argument) else argument)
    return kept


def _plain(value: Any) -> Any:
    """Return a cell as JSON has it; None for what is not finite."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
