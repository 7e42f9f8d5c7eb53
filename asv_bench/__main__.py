"""Command line of the experiments: ``python -m asv_bench NAME --data DIR [options]``.

``python -m asv_bench --list`` names them, and ``--record FILE`` keeps what one measured.
"""

import argparse
import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asv_bench import EXPERIMENTS
from asv_bench.common.report import Report, environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment that the command line names, or list all; return the exit status."""
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--list"]
    if name in EXPERIMENTS:
        run(name, *rest)
        return 0
    usage = "usage: python -m asv_bench NAME --data DIR [--out DIR] [--record FILE] [options]"
    listing = [f"  {known:<20} {_summary(module)}" for known, module in EXPERIMENTS.items()]
    is_asked = name in ("-h", "--help", "--list")
    known = [usage, "", *listing, "", "NAME --help shows the options of one."]
    unknown = [usage, f"No experiment is called {name!r}:", *listing]
    print("\n".join(known if is_asked else unknown), file=None if is_asked else sys.stderr)
    return 0 if is_asked else 2


def run(name: str, *arguments: str) -> list[dict[str, Any]]:
    """Run an experiment with the options of its command line, and return its rows.

    Raises
    ------
    SystemExit
        With status 2 for wrong options, or for missing data; the message names them.
    """
    experiment = importlib.import_module(f"asv_bench.{EXPERIMENTS[name]}")
    parser = argparse.ArgumentParser(
        prog=f"python -m asv_bench {name}",
        description=experiment.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="folder that keeps loaded sets")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report and figures")
    parser.add_argument("--record", type=Path, metavar="FILE", help="file for the record, in JSON")
    parser.add_argument("--markdown", action="store_true", help="write tables as markdown")
    experiment.add_options(parser)
    options = parser.parse_args(arguments)
    report = Report(
        name,
        out=options.out,
        markdown=options.markdown,
        arguments=arguments,
        record=options.record,
    )
    for key, value in environment().items():
        print(f"{key}: {value}")
    finished = False
    try:
        rows = experiment.main(options, report)
        finished = True
    except FileNotFoundError as error:
        parser.error(str(error))
    finally:
        report.save(finished=finished)
    return rows


def _summary(module: str) -> str:
    """Return the first line of a module's docstring, without importing it."""
    path = Path(__file__).parent / f"{module.replace('.', '/')}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
