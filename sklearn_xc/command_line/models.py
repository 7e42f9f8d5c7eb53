"""Saved models, with the columns of the table that they were fitted on."""

from typing import Any, NamedTuple

from sklearn_xc.command_line.tables import CommandError

#: The attribute of a saved model that holds a `Columns` as a dictionary.
_ATTRIBUTE = "command_line_"


class Columns(NamedTuple):
    """Columns of the table that a model was fitted on, and the separator of its labels."""

    text: list[str]
    labels: str
    separator: str | None


def check_folder(path: str) -> None:
    """Raise CommandError if no model can be saved in a folder: before long work, not after it."""
    from sklearn_xc._state import files

    if path == "-":
        raise CommandError("--out: a model is a folder, and cannot go to standard output. Got '-'.")
    try:
        files.check_folder(path)
    except OSError as error:
        raise CommandError(f"--out: {error}") from error


def save_model(model: Any, columns: Columns, path: str, *, compact: bool) -> None:
    """Save a model, all or nothing."""
    setattr(model, _ATTRIBUTE, columns._asdict())
    model.save(path, compact=compact)


def load_model(options: Any) -> tuple[Any, list[str], str | None, str | None]:
    """Return a model, and the columns of texts and labels and the separator to use with it.

    Raises
    ------
    CommandError
        If there is no such model, or neither it nor ``--text`` names the columns of texts.
    """
    from sklearn_xc import TextClassifierXC, load
    from sklearn_xc.exceptions import SavedModelError

    try:
        model = load(options.model)
    except SavedModelError as error:
        raise CommandError(f"{error} Models are made by: sklearn-xc fit.") from error
    if not isinstance(model, TextClassifierXC) or not hasattr(model, "classifier_"):
        raise CommandError(
            f"{options.model}: expected a fitted TextClassifierXC. Got {type(model).__name__}."
        )
    known = Columns(**getattr(model, _ATTRIBUTE, {"text": [], "labels": "", "separator": None}))
    texts = options.text or known.text
    if not texts:
        raise CommandError("--text COLUMN: which column holds the texts? The model does not say.")
    labels = getattr(options, "labels", None) or known.labels or None
    return model, texts, labels, options.separator or known.separator
