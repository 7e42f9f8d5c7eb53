"""Models on disk: pickles, with what the command line must know of the table they came from."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from sklearn_xc.command_line.errors import CommandError
from sklearn_xc.command_line.outputs import open_output

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
    """Raise an error if a file cannot be written there: before long work, not after it.

    Raises
    ------
    CommandError
        That says what stands in the way.
    """
    if path == "-":
        raise CommandError("--out: a model is written to a file. Got '-'.")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a folder. Give the model a file name: --out {path}/NAME.")
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: there is no folder {folder!r}. Make it first.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise CommandError(f"{path}: not allowed to write there.")


def save_model(model: Any, columns: Columns, path: str) -> int:
    """Save a model, all or nothing, and return its bytes."""
    import joblib

    setattr(model, _ATTRIBUTE, asdict(columns))
    with open_output(path) as stream:
        joblib.dump(model, stream)
    return os.path.getsize(path)


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
        For a file that is no model.
    """
    import joblib

    from sklearn_xc import TextClassifierXC

    with open(path, "rb") as file:  # has the system say what is wrong with the name
        if not file.read(1):
            raise CommandError(f"{path}: the file is empty, and no model.")
    try:
        model = joblib.load(path)
    except MemoryError:
        raise
    except Exception as error:  # whatever the bytes of a file that is no pickle have pickle do
        raise CommandError(
            f"{path}: this is no model, or one of an incompatible version "
            f"({type(error).__name__}). Models are made by: sklearn-xc fit TABLE ... --out MODEL."
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
