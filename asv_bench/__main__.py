"""Command line of the experiments: ``python -m asv_bench NAME --data DIR [options]``.

``python -m asv_bench --list`` names them, and ``--record FILE`` keeps what one measured.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from asv_bench import EXPERIMENTS

USAGE = "usage: python -m asv_bench NAME --data DIR [--out DIR] [--record FILE] [options]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment that the command line names, or list all of them.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The command line after the program; None takes the process's own.

    Returns
    -------
    int
        Exit status: 0, or 2 for a name that no experiment has.

    Raises
    ------
    SystemExit
        With status 2 for options that do not fit, or for missing data; the message says which.
    """
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("", "-h", "--help", "--list"):
        print("\n".join([USAGE, "", *_listing(), "", "NAME --help shows the options of one."]))
        return 0
    if name not in EXPERIMENTS:
        print(
            "\n".join([USAGE, f"No experiment is called {name!r}:", *_listing()]), file=sys.stderr
        )
        return 2
    from asv_bench.common.report import Report

    experiment = importlib.import_module(f"asv_bench.{EXPERIMENTS[name][0]}")
    parser = argparse.ArgumentParser(
        prog=f"python -m asv_bench {name}",
        description=experiment.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report and figures")
    parser.add_argument("--record", type=Path, metavar="FILE", help="file for the record, in JSON")
    parser.add_argument("--markdown", action="store_true", help="write tables as markdown")
    experiment.add_options(parser)
    options = vars(parser.parse_args(rest))
    report = Report(
        name, out=options.pop("out"), markdown=options.pop("markdown"), arguments=rest,
        record=options.pop("record"),
    )  # fmt: skip
    finished = False
    try:
        report.environment()
        experiment.main(report=report, **options)
        finished = True
    except FileNotFoundError as error:
        parser.error(str(error))
    finally:
        report.save(finished=finished)
    return 0


def _listing() -> list[str]:
    width = max(map(len, EXPERIMENTS))
    return [f"  {name:<{width}}  {summary}" for name, (_, summary) in EXPERIMENTS.items()]


if __name__ == "__main__":
    sys.exit(main())
