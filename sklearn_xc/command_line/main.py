"""Parses the arguments and runs a command; errors become one sentence and an exit code."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sklearn_xc.command_line.models import ESTIMATORS
from sklearn_xc.command_line.tables import CommandError, say

_PROGRAM = "sklearn-xc"
_DESCRIPTION = """\
Learn to label texts from a table, and label others.

  sklearn-xc fit books.csv --text title --labels subjects --separator ";" --out books.model
  sklearn-xc tag books.model new.csv --out tagged.csv
  sklearn-xc evaluate books.model checked.csv

A table is CSV, TSV, JSON lines or Parquet, the first three also as .gz, .xz or .bz2; "-" is
standard input. A model is a folder of arrays; to load it runs no code from it."""
_SEPARATOR = 'separates the labels in a cell, such as ";"'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None for those of the process.

    Returns
    -------
    int
        0 for success, 2 for invalid options, tables and models, 130 after Ctrl-C, 141 if the reader
        of standard output went away. Any other error is a bug and raised.
    """
    try:
        options = _parser().parse_args(argv)
    except SystemExit as end:  # argparse has printed why
        return int(end.code or 0)
    code, text = 2, ""
    try:
        with warnings.catch_warnings():
            _print_warnings_as_notes(options.quiet)
            command = import_module(f"sklearn_xc.command_line.{options.module}")
            command.run(options)
            sys.stdout.flush()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        code, text = 130, "interrupted."
    except OSError as error:
        text = f"{error.filename}: {error.strerror}." if error.filename else str(error)
    except MemoryError as error:
        text = f"out of memory. {error}".strip()
    except (CommandError, ValueError, TypeError, LookupError) as error:
        text = str(error)
    say(f"{_PROGRAM} {options.command}: {text}")
    return code


def _print_warnings_as_notes(quiet: bool) -> None:
    def show(message: Any, *_: Any, **__: Any) -> None:
        if not quiet:
            say(f"note: {message}")

    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning)
    warnings.showwarning = show


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    import sklearn_xc

    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"sklearn_xc {sklearn_xc.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_fit(commands.add_parser("fit", help="learn from a table with texts and labels"))
    _add_tag(commands.add_parser("tag", help="label the rows of a table with a model"))
    _add_evaluate(commands.add_parser("evaluate", help="metrics of a model on a labelled table"))
    _add_compile(commands.add_parser("compile", help="compile the numba kernels ahead of time"))
    return parser


def _add_fit(command: argparse.ArgumentParser) -> None:
    command.set_defaults(module="fit")
    add = command.add_argument
    add("table", metavar="TABLE", help='with texts and labels; "-" for standard input')
    _add_text(command, required=True)
    add("--labels", required=True, metavar="COLUMN", help="column with the labels")
    add("--separator", type=_not_empty, metavar="TEXT", help=_SEPARATOR)
    add("--out", required=True, metavar="MODEL", help="folder for the model")
    add(
        "--min-count",
        type=_positive,
        default=2,
        metavar="N",
        help="leave out labels in fewer rows (2; ignored by softmax)",
    )
    kinds = "; ".join(f"{name}: {use}" for name, (_, use) in ESTIMATORS.items())
    add("--estimator", choices=ESTIMATORS, default="ova", help=f"(ova) {kinds}")
    wrapper = command.add_mutually_exclusive_group()
    wrapper.add_argument(
        "--probabilities",
        dest="wrapper",
        action="store_const",
        const="probabilities",
        default="thresholds",
        help="calibrate probabilities, which tag then writes instead of scores",
    )
    wrapper.add_argument(
        "--no-thresholds",
        dest="wrapper",
        action="store_const",
        const=None,
        help="do not tune thresholds on held-out rows: takes half the time or less",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of vectorizer, classifier, thresholds or probabilities, such as "
        "classifier__C=1; may be repeated",
    )
    add("--label-texts", metavar="TABLE", help="table with texts about labels")
    add("--label-name", metavar="COLUMN", help="its column with their names")
    add("--label-text", action="append", metavar="COLUMN", help="its column with their texts")
    add("--jobs", type=int, default=-1, metavar="N", help="threads (all cores)")
    add("--seed", type=int, default=0, help="random seed (0)")
    _add_reading(command)


def _add_tag(command: argparse.ArgumentParser) -> None:
    command.set_defaults(module="tag")
    add = command.add_argument
    add("model", metavar="MODEL", help="from fit, or saved in Python")
    add("table", metavar="TABLE", help='with texts; "-" for standard input')
    _add_text(command, required=False)
    add("-k", type=_positive, metavar="N", help="labels for each row (5)")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--predicted",
        action="store_true",
        help="only labels that the model predicts, past its tuned thresholds",
    )
    which.add_argument(
        "--threshold",
        type=float,
        metavar="SCORE",
        help="only labels with at least this score, or probability if the model has them",
    )
    allowed = command.add_mutually_exclusive_group()
    allowed.add_argument("--candidates", metavar="FILE", help="only labels named in this file")
    allowed.add_argument("--exclude", metavar="FILE", help="no labels named in this file")
    add(
        "--out",
        default="-",
        metavar="FILE",
        help="the table with two more columns, predicted_labels and predicted_scores (or "
        "predicted_probabilities): .csv, .tsv or .jsonl, also with .gz, .xz or .bz2 (standard "
        "output, in the format of the input)",
    )
    add("--separator", type=_not_empty, metavar="TEXT", help=f"{_SEPARATOR} (that of fit, else ;)")
    _add_reading(command)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    command.set_defaults(module="evaluate")
    add = command.add_argument
    add("model", metavar="MODEL", help="from fit, or saved in Python")
    add("table", metavar="TABLE", help='with texts and true labels; "-" for standard input')
    _add_text(command, required=False)
    add("--labels", metavar="COLUMN", help="column with the labels (that of fit)")
    add("--separator", type=_not_empty, metavar="TEXT", help=f"{_SEPARATOR} (that of fit)")
    add("--json", action="store_true", help="print JSON")
    add("--report", metavar="FILE", help="write a page of HTML, too, with examples from the table")
    _add_reading(command)


def _add_compile(command: argparse.ArgumentParser) -> None:
    command.set_defaults(module="compile_kernels", quiet=False)
    command.add_argument(
        "--estimator", nargs="+", choices=ESTIMATORS, default=["ova"], help="those in use (ova)"
    )


def _add_text(command: argparse.ArgumentParser, required: bool) -> None:
    command.add_argument(
        "--text",
        action="append",
        required=required,
        metavar="COLUMN",
        help="column with the text; may be repeated, texts are joined by a blank"
        + ("" if required else " (those of fit)"),
    )


def _add_reading(command: argparse.ArgumentParser) -> None:
    formats = ("csv", "tsv", "jsonl", "parquet")
    command.add_argument("--format", choices=formats, help="of the table (by its name)")
    command.add_argument("--delimiter", type=_not_empty, help="between the cells of a CSV (,)")
    command.add_argument("--encoding", default="utf-8-sig", help="of text (UTF-8)")
    command.add_argument("--quiet", action="store_true", help="print only results and errors")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1. Got {text!r}")
    return int(text)


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError('expected a text such as ";". Got an empty one')
    return text
