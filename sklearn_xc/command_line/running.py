"""Runs a command: whatever goes wrong becomes one sentence and an exit code."""

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn_xc.command_line.arguments import make_parser
from sklearn_xc.command_line.errors import (
    BAD_INPUT,
    BROKEN_PIPE,
    BUG,
    INTERRUPTED,
    OK,
    CommandError,
    explain_os_error,
    say,
)
from sklearn_xc.command_line.outputs import give_up_standard_output

_PROGRAM = "sklearn-xc"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None for those of the process.

    Returns
    -------
    int
        0; 2 for options, tables and models that do not do; 130 after Ctrl-C; 141 where who reads
        the output went away; 1 for a defect of this package.
    """
    try:
        options = make_parser(_PROGRAM).parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return int(end.code or 0)
    code, text = OK, ""
    try:
        with warnings.catch_warnings():
            _show_warnings_as_notes(options.quiet)
            options.run(options)
            sys.stdout.flush()
    except Exception as error:
        code, text = _explain(error)
        if options.traceback:
            traceback.print_exc()
    except KeyboardInterrupt:
        out = getattr(options, "out", "-")
        code = INTERRUPTED
        text = "interrupted." if out == "-" else f"interrupted; {out} was not written."
    give_up_standard_output()
    if text:
        say(f"{_PROGRAM} {options.command}: {text}")
    return code


def _explain(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence for an error."""
    if isinstance(error, CommandError):
        return BAD_INPUT, str(error)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE, ""
    if isinstance(error, OSError):
        return BAD_INPUT, explain_os_error(error)
    if isinstance(error, MemoryError):
        return BAD_INPUT, f"the memory does not suffice. {error}".strip()
    if isinstance(error, ValueError | TypeError):  # as the estimators refuse parameters and data
        return BAD_INPUT, str(error)
    return BUG, (
        f"unexpected {type(error).__name__}: {error}. This is a defect of the program: please "
        "report it with what --traceback prints."
    )


def _show_warnings_as_notes(quiet: bool) -> None:
    told = set()

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        # Each piece of a table may be as strange as the one before.
        again = category.__name__ == "UnfamiliarTextWarning" and category in told
        told.add(category)
        if not quiet and not again:
            say(f"note: {message}")

    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning)
    # What the command line says itself, in words of its own.
    warnings.filterwarnings("ignore", message=".*pass separator=")
    warnings.filterwarnings("ignore", message=".*X and y seem to be swapped")
    warnings.showwarning = show
