"""JSON files that end in a checksum of themselves."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from sklearn_xc._atomic_files import open_atomic
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.places import open_regular

#: What stands before the checksum, and behind it.
_END = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\n\Z')


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object that is not empty, all or nothing."""
    body = json.dumps(content, indent=1, allow_nan=False).encode().removesuffix(b"\n}")
    with open_atomic(path) as stream:
        stream.write(body)
        stream.write(b',\n "sha256": "%b"\n}\n' % hashlib.sha256(body).hexdigest().encode())


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Return what ``write_json`` wrote.

    Parameters
    ----------
    path : Path
    what : str
        The value of its key "what".

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such file.
    SavedModelError
        If it is not as it was written, or something else.
    """
    with open_regular(path) as stream:
        text = stream.read()
    end = _END.search(text[-100:])
    if end is None:
        raise SavedModelError(f"{path}: is cut off, or was not written by sklearn_xc.")
    body = text[: len(text) - len(end[0])]
    if hashlib.sha256(body).hexdigest().encode() != end[1]:
        raise SavedModelError(f"{path}: is damaged, or was changed: it is not what was written.")
    try:
        content = json.loads(body + b"\n}")
        fits = content["what"] == what and type(content["format"]) is int
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise SavedModelError(f"{path}: is not {what}.")
    return content  # type: ignore[no-any-return]
