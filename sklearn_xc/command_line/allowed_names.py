"""The labels that a table may be tagged with, from a file of names."""

from typing import Any

from sklearn_xc.command_line.cells import as_text
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
        known = {as_text(name): name for name in model.classes_.tolist()}
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
