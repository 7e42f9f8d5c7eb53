"""Numbers in the documentation, compared with the records of the commands that printed them.

::

    python -m asv_bench.records                   the documentation against the kept records
    python -m asv_bench.records --changed DIR     the kept records against new ones in DIR

A comment above a table or paragraph of README.md or docs/ names the records that its numbers are
from, files in ``asv_bench/records`` that ``--record`` wrote, or what an example printed, as .txt::

    <!-- record: inits_table_1 -->
    <!-- record: quickstart.txt -->

Each number of that block has to be in one of these records, rounded to the digits that are shown.
Left out are code, links, the header and the first column of a table, columns whose header has the
word "paper" or "published", and numbers that the comment names: ``<!-- record: cv; not 10 5 -->``.
A large record has nearly every number somewhere. ``<!-- record: defaults; by row -->`` asks for
more: all numbers of a row of the documentation have to be in the same row of a record's table.

After a change of the code, run the commands that the records name with ``--record`` to a folder of
its own, and ``--changed`` names each cell that is no longer what it was, beyond ``--within`` for
times and memory. Copy what changed over the kept record: the first form then names each number of
the documentation that has to be renewed.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).parent / "records"

_COMMENT = re.compile(r"<!--\s*record:\s*([^;>]+?)\s*(;\s*by row)?\s*(?:;\s*not\s+([^>]*?))?\s*-->")
_NUMBER = re.compile(r"(?<![\w.,/^])[-+\N{MINUS SIGN}]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e-?\d+)?")
_CODE = re.compile(r"`[^`]*`|\$[^$]*\$|\[[^]]*\]\([^)]*\)")
_PUBLISHED = re.compile(r"\b(paper|published)\b", re.IGNORECASE)
#: Headers of columns with times, rates and memory, which no two runs have alike.
_NOISY = re.compile(
    r"\b(CPU|wall|ms|us|s|seconds?|minutes?|MiB|GiB|MB|KiB|GB|ratio|rate)\b|/s\b|/ s\b|"
    r"\btime|memory|per second|peak",
    re.IGNORECASE,
)


class Block(NamedTuple):
    """A table or paragraph that names its records.

    Attributes
    ----------
    line : int
        Where it begins.
    records : list of str
        Names of the records.
    numbers : list of (int, str)
        The numbers to be found there: their lines, and as they are written.
    by_row : bool
        Whether those of a line have to be in one row of a table.
    """

    line: int
    records: list[str]
    numbers: list[tuple[int, str]]
    by_row: bool


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a document that name records.

    Parameters
    ----------
    text : str
        Markdown.

    Yields
    ------
    Block
    """
    lines = text.split("\n")
    for start, line in enumerate(lines):
        found = _COMMENT.fullmatch(line.strip())
        if found is None:
            continue
        end = begin = start + 2 if lines[start + 1 : start + 2] == [""] else start + 1
        while end < len(lines) and lines[end].strip():
            end += 1
        left_out = set((found[3] or "").split())
        numbers = [
            (begin + i + 1, number)
            for i, part in _parts_with_numbers(lines[begin:end])
            for number in _NUMBER.findall(_CODE.sub(" ", part))
            if number.rstrip(",") not in left_out
        ]
        numbers = [(i, number.rstrip(",")) for i, number in numbers]
        yield Block(begin + 1, found[1].split(), numbers, bool(found[2]))


def _parts_with_numbers(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, and of a table the cells that are compared."""
    if not lines or not lines[0].startswith("|"):
        yield from enumerate(lines)
        return
    header = _cells(lines[0])
    for i, line in enumerate(lines[2:], start=2):
        for head, cell in list(zip(header, _cells(line), strict=False))[1:]:
            if not _PUBLISHED.search(head):
                yield i, cell


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def numbers_of(record: dict[str, Any]) -> list[float]:
    """Return all numbers of a record: of tables, notes, sizes, seconds and memory."""
    found: list[float] = [record["wall_s"], record["cpu_s"], record["peak_mib"]]
    found += [value for sizes in record["sets"].values() for value in sizes.values()]
    for text in [*record["notes"], *(table["title"] for table in record["tables"])]:
        found += _numbers_of_text(text)
    return found + [number for row in rows_of(record) for number in row]


def rows_of(record: dict[str, Any]) -> list[list[float]]:
    """Return the numbers of each row of the tables of a record."""
    return [
        [
            number
            for value in row.values()
            if value is not None
            for number in (_numbers_of_text(value) if isinstance(value, str) else [value])
        ]
        for table in record["tables"]
        for row in table["rows"]
    ]


def _numbers_of_text(text: str) -> list[float]:
    return [_value(number) for number in _NUMBER.findall(text)]


def _numbers_in(path: Path) -> list[float]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return numbers_of(json.loads(text))
    return _numbers_of_text(text)


def _value(number: str) -> float:
    return float(number.rstrip(",").replace(",", "").replace("\N{MINUS SIGN}", "-"))


def is_among(number: str, values: Iterable[float]) -> bool:
    """Tell whether a number, as it is written, is one of some values, rounded.

    Parameters
    ----------
    number : str
        As "12.3", "29,000" (which may be 28,950) or ".5".
    values : iterable of float
        A value from 0 to 1 may stand there in percent.

    Returns
    -------
    bool
    """
    shown = _value(number)
    mantissa, _, exponent = number.partition("e")
    digits = mantissa.partition(".")[2]
    step = 10.0 ** (int(exponent or 0) - len(digits))
    if not digits and not exponent and abs(shown) >= 1000:
        plain = number.replace(",", "")
        step = 10.0 ** (len(plain) - len(plain.rstrip("0")))
    most = 0.5 * step * (1 + 1e-6)
    return any(
        abs(abs(shown) - abs(scale * value)) <= most
        for value in values
        for scale in ((1, 100) if -1 <= value <= 1 else (1,))
    )


def stale(document: Path, kept: Path = KEPT) -> list[str]:
    """Return a line for each number of a document that its records do not have.

    Parameters
    ----------
    document : Path
        Markdown.
    kept : Path
        Folder of the records.

    Returns
    -------
    list of str
    """
    found = []
    for block in blocks_of(document.read_text(encoding="utf-8")):
        paths = [kept / (n if n.endswith(".txt") else f"{n}.json") for n in block.records]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            found.append(f"{document.name}:{block.line}: there is no {' and no '.join(missing)}")
            continue
        if not block.numbers:
            found.append(f"{document.name}:{block.line}: the comment stands above no number")
        values = [value for path in paths for value in _numbers_in(path)]
        for line, number in block.numbers:
            if not is_among(number, values):
                nearest = min(values, key=lambda value: abs(value - _value(number)))
                found.append(
                    f"{document.name}:{line}: {number} is not in {', '.join(block.records)}; "
                    f"nearest {nearest:,.6g}"
                )
        if block.by_row:
            records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
            rows = [row for record in records for row in rows_of(record)]
            found += [f"{document.name}:{line}" for line in _lines_of_no_row(block, rows)]
    return found


def _lines_of_no_row(block: Block, rows: list[list[float]]) -> list[str]:
    """Return what is wrong with the lines whose numbers no single row has."""
    found = []
    lines: dict[int, list[str]] = {}
    for line, number in block.numbers:
        lines.setdefault(line, []).append(number)
    for line, numbers in lines.items():
        missed = min(([n for n in numbers if not is_among(n, row)] for row in rows), key=len)
        if missed:
            found.append(
                f"{line}: no row of {', '.join(block.records)} has all its numbers; the nearest "
                f"has not {' '.join(missed)}"
            )
    return found


def changes(old: dict[str, Any], new: dict[str, Any], within: float) -> list[str]:
    """Return a line for each cell that is another one in a new record.

    Parameters
    ----------
    old, new : dict
        Records of the same command.
    within : float
        What times and memory may differ by, as a share. All other numbers have to be equal to
        three digits.

    Returns
    -------
    list of str
    """
    if [t["title"] for t in old["tables"]] != [t["title"] for t in new["tables"]]:
        return ["the tables are others"]
    found = []
    for before, after in zip(old["tables"], new["tables"], strict=True):
        if len(before["rows"]) != len(after["rows"]) or before["columns"] != after["columns"]:
            found.append(f"{before['title']}: rows or columns are others")
            continue
        for i, (was, now) in enumerate(zip(before["rows"], after["rows"], strict=True)):
            for key, header in before["columns"].items():
                limit = within if _NOISY.search(header) else 0.0
                if not _alike(was[key], now[key], limit):
                    name = next((v for v in was.values() if isinstance(v, str)), f"row {i + 1}")
                    found.append(
                        f"{before['title']}, {name}, {header}: was {was[key]}, is {now[key]}"
                    )
    return found


def _alike(was: Any, now: Any, within: float) -> bool:
    if isinstance(was, bool | str | None) or isinstance(now, bool | str | None):
        return was == now
    return abs(now - was) <= max(within, 5e-4) * abs(was) + 1e-9


def documents() -> list[Path]:
    """Return the pages whose numbers are compared."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and print what differs.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The command line; None takes the process's own.

    Returns
    -------
    int
        1 if something differs, else 0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.records",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--changed", type=Path, metavar="DIR", help="folder of new records")
    parser.add_argument("--within", type=float, default=0.3, help="for times and memory (0.3)")
    options = parser.parse_args(arguments)
    found = []
    if options.changed is None:
        n_blocks = n_numbers = 0
        for document in documents():
            blocks = list(blocks_of(document.read_text(encoding="utf-8")))
            n_blocks += len(blocks)
            n_numbers += sum(len(block.numbers) for block in blocks)
            found += stale(document)
        summary = f"{n_numbers:,} numbers in {n_blocks} tables and paragraphs"
    else:
        paths = sorted(options.changed.glob("*.json"))
        for path in paths:
            old = KEPT / path.name
            if not old.is_file():
                found.append(f"{path.name}: no such record is kept")
                continue
            was, now = (json.loads(p.read_text(encoding="utf-8")) for p in (old, path))
            found += [f"{path.name}: {line}" for line in changes(was, now, options.within)]
        summary = f"{len(paths)} records"
    print("\n".join([*found, f"{summary}; {len(found)} to renew."]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
