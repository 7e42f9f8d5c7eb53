"""Models on disk, with what the command line must know of the table they came from."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from sklearn_xc.command_line.errors import CommandError

#: The attribute of a saved model that holds a `Columns` as a dictionary.
_ATTRIBUTE = "command_line_"


@dataclass(frozen=True)
class Columns:
    """Columns of the table that a model was fitted on.

    Attributes
    ----------
    text : list of str
    labels : str
    separator : str or None
    """

    text: list[str]
    labels: str
    separator: str | None


def check_place(path: str) -> None:
    """Raise an error if a model cannot be saved there: before long work, not after it.

    Raises
    ------
    CommandError
        That says what stands in the way.
    """
    from sklearn_xc.storage.models import check_folder

    if path == "-":
        raise CommandError("--out: a model is a folder, and cannot go to standard output. Got '-'.")
    try:
        check_folder(path)
    except OSError as error:
        raise CommandError(f"--out: {error}") from error


def save_model(model: Any, columns: Columns, path: str, *, compact: bool) -> int:
    """Save a model, all or nothing, and return its bytes."""
    setattr(model, _ATTRIBUTE, asdict(columns))
    model.save(path, compact=compact)
    return sum(entry.stat().st_size for entry in os.scandir(path))


def load_model(path: str) -> tuple[Any, Columns | None]:
    """Load a model, and what is known of its table.

    Returns
    -------
    model : TextClassifierXC
    columns : Columns or None
        None for a model that was fitted in Python.

    Raises
    ------
    CommandError
        For what is no model.
    """
    from sklearn_xc import TextClassifierXC, load
    from sklearn_xc.exceptions import SavedModelError

    try:
        model = load(path)
    except SavedModelError as error:
        raise CommandError(
            f"{error} Models are made by: sklearn-xc fit TABLE ... --out MODEL."
        ) from error
    if not isinstance(model, TextClassifierXC) or not hasattr(model, "classifier_"):
        raise CommandError(
            f"{path}: holds no fitted TextClassifierXC. Got {type(model).__name__}. Models are "
            "made by: sklearn-xc fit TABLE ... --out MODEL."
        )
    known = getattr(model, _ATTRIBUTE, None)
    return model, None if known is None else Columns(**known)


def text_columns(given: list[str] | None, columns: Columns | None) -> list[str]:
    """Return the columns with the texts: those given, else those of the fit.

    Raises
    ------
    CommandError
        If neither is known.
    """
    if given:
        return given
    if columns is None:
        raise CommandError("--text COLUMN: which column holds the texts? The model does not know.")
    return columns.text
