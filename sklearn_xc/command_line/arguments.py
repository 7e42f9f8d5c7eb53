"""What may be said on the command line."""

import argparse
import codecs
from typing import Any

from sklearn_xc.command_line.estimators import ESTIMATORS

_DESCRIPTION = """\
Learn to label texts from a table, and label others.

  {program} fit books.csv --text title --labels subjects --separator ";" --out books.model
  {program} tag books.model new.csv --out tagged.csv
  {program} evaluate books.model checked.csv

A table is CSV, TSV, JSON lines or Parquet, the first three also as .gz, .xz or .bz2; "-" is
standard input. A model is a folder of arrays; to load it runs no code from it."""


def make_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=_DESCRIPTION.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sklearn_xc {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_tag(commands)
    _add_evaluate(commands)
    _add_compile(commands)
    return parser


def _add_fit(commands: Any) -> None:
    command = commands.add_parser("fit", help="learn from a table with texts and labels")
    command.set_defaults(run=_run_fit)
    command.add_argument("table", metavar="TABLE", help='with texts and labels; "-" for stdin')
    _add_text(command, required=True)
    command.add_argument("--labels", required=True, metavar="COLUMN", help="column with the labels")
    command.add_argument("--separator", type=_not_empty, metavar="TEXT", help=_SEPARATOR)
    command.add_argument("--out", required=True, metavar="MODEL", help="folder for the model")
    command.add_argument(
        "--compact", action="store_true",
        help="round weights of one-vs-all to a byte each: the model takes a quarter of the room",
    )  # fmt: skip
    command.add_argument(
        "--holdout", type=_share, metavar="SHARE",
        help="first tell how good the model is on this share of the rows, such as 0.1, after "
        "training on the others",
    )  # fmt: skip
    command.add_argument(
        "--min-count", type=_positive, default=2, metavar="N",
        help="leave out labels in fewer rows (2; does not hold for softmax)",
    )  # fmt: skip
    kinds = "; ".join(f"{name}: {use}" for name, use in ESTIMATORS.items())
    command.add_argument("--estimator", choices=ESTIMATORS, default="ova", help=f"(ova) {kinds}")
    decisions = command.add_mutually_exclusive_group()
    decisions.add_argument(
        "--probabilities", action="store_true",
        help="learn how likely labels are to be right, which tag then writes in place of scores; "
        "what is more likely than not is predicted",
    )  # fmt: skip
    decisions.add_argument(
        "--no-thresholds", dest="thresholds", action="store_false",
        help="do not tune, on held-out rows, the scores from which on labels are predicted: takes "
        "half the time or less",
    )  # fmt: skip
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of vectorizer, classifier, thresholds or probabilities, such as "
        "classifier__C=1; may be repeated",
    )  # fmt: skip
    command.add_argument("--label-texts", metavar="TABLE", help="table with texts about labels")
    command.add_argument("--label-name", metavar="COLUMN", help="its column with their names")
    command.add_argument(
        "--label-text", action="append", metavar="COLUMN", help="its column with their texts"
    )
    command.add_argument("--jobs", type=_jobs, default=-1, metavar="N", help="threads (all cores)")
    command.add_argument("--seed", type=int, default=0, help="for what is random (0)")
    _add_common(command)


def _add_tag(commands: Any) -> None:
    command = commands.add_parser("tag", help="label the rows of a table with a model")
    command.set_defaults(run=_run_tag)
    command.add_argument("model", metavar="MODEL", help="from fit, or saved in Python")
    command.add_argument("table", metavar="TABLE", help='with texts; "-" for stdin')
    _add_text(command, required=False)
    command.add_argument("-k", type=_positive, metavar="N", help="labels for each row (5)")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--predicted", action="store_true",
        help="only labels that the model predicts, those past its tuned thresholds: often none, "
        "without -k up to 100 for a row",
    )  # fmt: skip
    which.add_argument(
        "--threshold", type=_number, metavar="SCORE",
        help="only labels with at least this score, or probability where the model has them; "
        "without -k up to 100 for a row",
    )  # fmt: skip
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--candidates", metavar="FILE", help="only labels whose names are lines of this file"
    )
    which.add_argument(
        "--exclude", metavar="FILE", help="no labels whose names are lines of this file"
    )
    which.add_argument(
        "--exclude-column", metavar="COLUMN",
        help="for each row no labels that stand in this column of the table, with --separator "
        "between them, or as a list in JSON lines",
    )  # fmt: skip
    command.add_argument(
        "--out", default="-", metavar="FILE",
        help="the table with two further columns, predicted_labels and predicted_scores (or "
        "predicted_probabilities): .csv, .tsv or .jsonl, also with .gz, .xz or .bz2; standard "
        "output where left out",
    )  # fmt: skip
    command.add_argument(
        "--out-format", choices=("csv", "tsv", "jsonl"), help="where the name does not tell"
    )
    command.add_argument("--out-delimiter", type=_one_character, default=",", help="(,)")
    command.add_argument(
        "--separator", type=_not_empty, metavar="TEXT",
        help="what stands between labels in a cell, written or read (that of fit, else ;)",
    )  # fmt: skip
    _add_common(command)


def _add_evaluate(commands: Any) -> None:
    command = commands.add_parser("evaluate", help="tell how good a model is on a labelled table")
    command.set_defaults(run=_run_evaluate)
    command.add_argument("model", metavar="MODEL", help="from fit, or saved in Python")
    command.add_argument("table", metavar="TABLE", help='with texts and true labels; "-" for stdin')
    _add_text(command, required=False)
    command.add_argument("--labels", metavar="COLUMN", help="column with the labels (that of fit)")
    command.add_argument("--separator", type=_not_empty, metavar="TEXT", help=_SEPARATOR)
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_common(command)


def _add_compile(commands: Any) -> None:
    command = commands.add_parser(
        "compile", help="compile the inner loops beforehand, such as when an image is made"
    )
    command.set_defaults(run=_run_compile)
    command.add_argument(
        "--estimator", nargs="+", choices=ESTIMATORS, default=["ova"], help="which are used (ova)"
    )
    _add_printing(command)


_SEPARATOR = 'what stands between the labels in a cell, such as ";"'


def _add_text(command: Any, required: bool) -> None:
    rest = "" if required else " (those of fit)"
    command.add_argument(
        "--text", action="append", required=required, metavar="COLUMN",
        help=f"column with the text; may be repeated, they are joined by a blank{rest}",
    )  # fmt: skip


def _add_common(command: Any) -> None:
    group = command.add_argument_group("how to read tables")
    group.add_argument(
        "--format", choices=("csv", "tsv", "jsonl", "parquet"), help="where the name does not tell"
    )
    group.add_argument("--delimiter", type=_one_character, help="between cells (detected)")
    group.add_argument("--encoding", type=_encoding, help="of text (UTF-8)")
    group.add_argument(
        "--no-quotes", dest="quotes", action="store_false", help="quotes are ordinary characters"
    )
    _add_printing(command)


def _add_printing(command: Any) -> None:
    group = command.add_argument_group("what is printed")
    group.add_argument("--quiet", action="store_true", help="only results and errors")
    group.add_argument("--traceback", action="store_true", help="where in the program errors arose")


def _run_fit(options: Any) -> None:
    from sklearn_xc.command_line.fit import fit

    fit(options)


def _run_tag(options: Any) -> None:
    from sklearn_xc.command_line.tag import tag

    tag(options)


def _run_evaluate(options: Any) -> None:
    from sklearn_xc.command_line.evaluate import evaluate

    evaluate(options)


def _run_compile(options: Any) -> None:
    from sklearn_xc.command_line.compile_kernels import compile_kernels

    compile_kernels(options)


def _version() -> str:
    import sklearn_xc

    return sklearn_xc.__version__


def _positive(text: str) -> int:
    return _checked(text, int, lambda n: n >= 1, "a whole number of at least 1")


def _number(text: str) -> float:
    return _checked(text, float, lambda x: x == x, "a number")


def _jobs(text: str) -> int:
    return _checked(text, int, lambda n: n != 0, "a number of threads, or -1 for all cores")


def _share(text: str) -> float:
    return _checked(text, float, lambda x: 0 < x < 1, "a share between 0 and 1, such as 0.1")


def _not_empty(text: str) -> str:
    return _checked(text, str, bool, 'a text such as ";"')


def _one_character(text: str) -> str:
    named = {"\\t": "\t", "tab": "\t"}.get(text, text)
    return _checked(
        named, str, lambda t: len(t) == 1 and t not in '"\r\n', 'one character, such as ";", or tab'
    )


def _encoding(text: str) -> str:
    try:
        "a".encode(text)  # refuses what is no encoding of text, such as rot13
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"there is no encoding {text!r}; usual ones are utf-8, cp1252, latin-1 and utf-16"
        ) from None


def _checked(text: str, kind: Any, holds: Any, expected: str) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not holds(value):
        raise argparse.ArgumentTypeError(f"expected {expected}. Got {text!r}")
    return value
