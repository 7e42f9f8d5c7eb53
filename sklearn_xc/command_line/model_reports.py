"""``inspect`` and ``verify``: what a model on disk is, and whether it is whole."""

from typing import Any

from sklearn_xc.command_line.errors import CommandError


def inspect(options: Any) -> None:
    """Print what a folder holds."""
    from sklearn_xc.storage.reports import describe_model

    print("\n".join(describe_model(options.model)))


def verify(options: Any) -> None:
    """Read all of a model, and print what is wrong with it.

    Raises
    ------
    CommandError
        If something is.
    """
    from sklearn_xc.storage.reports import problems_of_model

    problems = problems_of_model(options.model)
    if problems:
        raise CommandError("\n".join([f"{options.model}: is damaged.", *problems]))
    print(f"{options.model}: whole.")
