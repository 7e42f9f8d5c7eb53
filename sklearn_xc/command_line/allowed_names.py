"""The labels that a table may be tagged with: by a file of names, or by a column of each row."""

from typing import Any

from sklearn_xc.command_line.cells import as_text, names_of
from sklearn_xc.command_line.delimited import Row
from sklearn_xc.command_line.errors import CommandError, nearest, say
from sklearn_xc.command_line.sources import open_source


def read_allowed_names(model: Any, options: Any) -> dict[str, Any]:
    """Return the arguments of ``predict_topk`` that say which labels may be returned, or none.

    Parameters
    ----------
    model : TextClassifierXC
        Fitted.
    options : argparse.Namespace
        With ``candidates`` and ``exclude``, a file or None each, and ``encoding``. A line of a file
        is a name; names that the model does not have are left out, with a note.

    Raises
    ------
    CommandError
        If a file has no name that the model knows.
    """
    for argument, path in (("candidates", options.candidates), ("exclude", options.exclude)):
        if path is None:
            continue
        with open_source(path) as source:
            given = dict.fromkeys(line.strip() for line in source.lines(options.encoding))
        given.pop("", None)
        known = _known_names(model)
        unknown = [name for name in given if name not in known]
        if len(unknown) == len(given):
            first = next(iter(given), None)
            raise CommandError(
                f"--{argument} {path}: expected a name of a label in each line. "
                + ("The file is empty." if first is None else
                   f"The model knows none of these, such as {first!r}.{nearest(first, known)}")
            )  # fmt: skip
        if unknown and not options.quiet:
            say(
                f"note: {path}: the model does not know {len(unknown):,} of {len(given):,} names, "
                f"such as {unknown[0]!r}.{nearest(unknown[0], known)}"
            )
        return {argument: [known[name] for name in given if name in known]}
    return {}


class OwnNames:
    """The labels that rows have already, in a column of their table: they are not given again.

    Parameters
    ----------
    model : TextClassifierXC
        Fitted.
    column : str
    separator : str
        Of the names in a cell.
    """

    def __init__(self, model: Any, column: str, separator: str) -> None:
        self._known = _known_names(model)
        self._column, self._separator = column, separator
        self._n_names, self._n_unknown, self._unknown = 0, 0, ""

    def of(self, rows: list[Row]) -> dict[str, Any]:
        """Return the argument of ``predict_topk`` that excludes what some rows have."""
        excluded = []
        for row in rows:
            names = names_of(row.get(self._column), self._separator)
            own = [self._known[name] for name in names if name in self._known]
            self._n_names += len(names)
            self._n_unknown += len(names) - len(own)
            if len(own) < len(names) and not self._unknown:
                self._unknown = next(name for name in names if name not in self._known)
            excluded.append(own)
        return {"exclude": excluded}

    def tell_unknown(self) -> None:
        """Print a note where the model did not know some of the names so far."""
        if not self._n_unknown:
            return
        text = (
            f"note: column {self._column!r}: the model does not know {self._n_unknown:,} of "
            f"{self._n_names:,} names to exclude, such as {self._unknown!r}."
            f"{nearest(self._unknown, self._known)}"
        )
        if self._n_unknown == self._n_names:
            text += f" Is it the right column, and {self._separator!r} its --separator?"
        say(text)


def _known_names(model: Any) -> dict[str, Any]:
    """Return the labels of a model by what they are called in tables of text."""
    return {as_text(name): name for name in model.classes_.tolist()}
