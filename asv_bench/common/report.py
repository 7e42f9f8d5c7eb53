"""What an experiment shows: tables as aligned text or markdown, notes, figures, a record."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from asv_bench.common.environment import environment_lines
from asv_bench.common.record import Record


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    key : str
        Where a row holds the value; a row without it, or with None, leaves the cell empty.
    header : str
        What stands above it.
    spec : str
        Format specification, as ".2f". Text goes to the left, all else to the right.
    """

    key: str
    header: str
    spec: str = ""


def format_table(
    rows: Sequence[Mapping[str, Any]], columns: Iterable[Column], *, markdown: bool = False
) -> str:
    """Return rows as a table.

    Parameters
    ----------
    rows : sequence of mapping
        One mapping per row; what `columns` does not name is left out.
    columns : iterable of Column
        What to show, from left to right.
    markdown : bool, default=False
        Whether to draw the table with pipes.

    Returns
    -------
    str
        Lines of equal width, without a newline at the end.

    Examples
    --------
    >>> from asv_bench.common.report import Column, format_table
    >>> rows = [{"init": "msi", "cpu_s": 0.5}, {"init": "zero", "cpu_s": 1.14}]
    >>> print(format_table(rows, [Column("init", "init"), Column("cpu_s", "CPU s", ".2f")]))
    init  CPU s
    ----  -----
    msi    0.50
    zero   1.14
    """
    columns = list(columns)
    cells = [[_cell(row.get(column.key), column.spec) for column in columns] for row in rows]
    left = [all(isinstance(row.get(c.key), str | None) for row in rows) for c in columns]
    lines = [[column.header for column in columns], *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    if markdown:
        widths = [max(3, width) for width in widths]
    aligned = [
        [
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ]
        for line in lines
    ]
    if not markdown:
        rule = ["-" * width for width in widths]
        return "\n".join("  ".join(line).rstrip() for line in [aligned[0], rule, *aligned[1:]])
    rule = [
        "-" * width if to_left else "-" * (width - 1) + ":"
        for width, to_left in zip(widths, left, strict=True)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [aligned[0], rule, *aligned[1:]])


def _cell(value: Any, spec: str) -> str:
    return "" if value is None else format(value, spec)


class Report:
    """Prints what an experiment has to say as it comes, and keeps it in a folder if there is one.

    Parameters
    ----------
    name : str, default="report"
        Name of the experiment, and of the files.
    out : path-like, default=None
        Folder for the text and the figures, made if needed. None keeps nothing.
    markdown : bool, default=False
        Whether tables are markdown.
    arguments : sequence of str, default=()
        The command line after the experiment's name, for the record.
    record : path-like, default=None
        File of the record, which is JSON; None for NAME.json in the folder, if there is one.
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
        self.name = name
        self._record, self._record_path = Record(name, arguments), record
        self.out = None if out is None else Path(out)
        self.markdown = markdown
        self._lines: list[str] = []
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)

    def line(self, text: str = "") -> None:
        """Print a line of text."""
        self._print(text)
        self._record.note(text)

    def _print(self, text: str = "") -> None:
        print(text, flush=True)
        self._lines.append(text)

    def environment(self) -> None:
        """Print versions, processor, threads and date."""
        for text in environment_lines():
            self._print(f"    {text}" if self.markdown else text)

    def table(
        self, title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[Column]
    ) -> None:
        """Print a table under its title; see :func:`format_table`."""
        columns = list(columns)
        self._record.table(title, rows, columns)
        self._print()
        self._print(f"### {title}" if self.markdown else title)
        self._print()
        self._print(format_table(rows, columns, markdown=self.markdown))

    def figure(self, figure: Any, name: str) -> Path | None:
        """Write a matplotlib figure as PNG and close it.

        Parameters
        ----------
        figure : matplotlib.figure.Figure
            The figure.
        name : str
            Name of the file without its ending.

        Returns
        -------
        Path or None
            Where it went; None without a folder.
        """
        if self.out is None:
            return None
        path = self.out / f"{name}.png"
        figure.savefig(path, dpi=150)
        self._print()
        self._print(f"![{name}]({path.name})" if self.markdown else f"Figure: {path}")
        return path

    def save(self, *, finished: bool = True) -> None:
        """Write all that was printed to the folder, as NAME.txt or NAME.md, and the record.

        Parameters
        ----------
        finished : bool, default=True
            Whether the experiment came to its end; the record says so.
        """
        record = self._record_path
        if self.out is not None and self._lines:
            path = self.out / f"{self.name}.{'md' if self.markdown else 'txt'}"
            path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
            record = record or self.out / f"{self.name}.json"
        if record is not None:
            self._record.write(Path(record), finished=finished)
