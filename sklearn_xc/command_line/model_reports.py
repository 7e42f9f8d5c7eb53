"""``inspect`` and ``verify``: what a model on disk is, and whether it is whole."""

from typing import Any

from sklearn_xc.command_line.errors import CommandError


def inspect(options: Any) -> None:
    """Print what a folder holds."""
    from sklearn_xc.storage.models import describe_model

    print("\n".join(describe_model(options.model)))


def verify(options: Any) -> None:
    """Read all of a model; raise a CommandError if it is damaged."""
    from sklearn_xc.exceptions import SavedModelError
    from sklearn_xc.storage.models import load_model

    try:
        load_model(options.model, verify=True)
    except SavedModelError as error:
        raise CommandError(f"{options.model}: is damaged.\n{error}") from error
    print(f"{options.model}: whole.")
