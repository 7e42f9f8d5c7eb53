"""What a saved model is, and whether it is whole, told without making it."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.parallel.memory import format_bytes
from sklearn_xc.storage.array_files import TENSORS, ArrayFile, StoredArray
from sklearn_xc.storage.folder import META, read_meta
from sklearn_xc.storage.models import load_model
from sklearn_xc.storage.nodes import said_of

#: Parameters as long as this are cut.
_LONGEST = 60
#: Of lines.
_WIDTH = 100


def describe_model(path: str | os.PathLike[str]) -> list[str]:
    """Return lines that say what a folder holds; only its meta.json is read."""
    folder = Path(os.fspath(path))
    meta = read_meta(folder)
    files: dict[str, ArrayFile] = meta["files"]
    size = sum(file.size for file in files.values()) + (folder / META).stat().st_size
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items())
    with said_of(()):
        objects = list(_objects(meta["model"], "", 0))
    lines = [
        f"{folder}: {_class_of(meta['model'])}, format {meta['format']}, {format_bytes(size)} in "
        f"{len(files) + 1} files",
        f"saved by {versions}",
        "",
        *objects,
        "",
    ]
    rows = [
        (name, *_dtype_and_shape(name, file), format_bytes(file.size))
        for name, file in sorted(files.items(), key=lambda item: -item[1].size)
    ]  # fmt: skip
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    lines += [
        "  ".join(
            cell.rjust(width) if i == 3 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return lines


def problems_of_model(path: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with a saved model, after reading all of it; nothing if it is whole.

    Raises
    ------
    SavedModelError
        If there is no model, or its meta.json is damaged: then nothing else can be told.
    """
    folder = Path(os.fspath(path))
    found = []
    for name, file in read_meta(folder)["files"].items():
        try:
            StoredArray(folder / name, file).checked()
        except SavedModelError as error:
            found.append(str(error))
    if not found:
        try:
            load_model(folder, verify=True)
        except SavedModelError as error:
            found.append(str(error))
    return found


def _dtype_and_shape(name: str, file: ArrayFile) -> tuple[str, str]:
    if name.endswith(TENSORS):
        return "tensors", ""
    return file.dtype.lstrip("<|=>"), " x ".join(f"{n:,}" for n in file.shape) or "1"


def _class_of(node: Any) -> str:
    return str(node.get("object", "?")).rpartition(".")[2] if type(node) is dict else "?"


def _objects(node: Any, name: str, depth: int) -> Iterator[str]:
    """Yield a line for each object in a node, and lines for its parameters."""
    if type(node) is list:
        for i, held in enumerate(node):
            yield from _objects(held, f"{name}.{i}", depth)
        return
    if type(node) is not dict:
        return
    if "object" not in node:
        for held in node.values():
            yield from _objects(held, name, depth)
        return
    indent = "  " * depth
    yield f"{indent}{name}{': ' if name else ''}{_class_of(node)}{_size(node)}"
    given = [
        f"{key}={_short(held)}"
        for key, held in node.get("parameters", {}).items()
        if not (type(held) is dict and "object" in held)
    ]
    margin = f"{indent}    "
    yield from textwrap.wrap(
        ", ".join(given), _WIDTH, initial_indent=margin, subsequent_indent=margin,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    for group in ("parameters", "state"):
        for key, held in node.get(group, {}).items():
            yield from _objects(held, key, depth + 1)


def _size(node: dict[str, Any]) -> str:
    """Return how many instances and features an estimator was fitted to."""
    state = node.get("state", {})
    known = [
        f"{state[key]:,} {what}"
        for key, what in (("n_samples_fit_", "instances"), ("n_features_in_", "features"))
        if type(state.get(key)) is int
    ]
    return f" ({', '.join(known)})" if known else ""


def _short(node: Any) -> str:
    """Return a parameter's value in few characters."""
    if type(node) is dict:
        what, held = next(iter(node.items()))
        text = f"({', '.join(map(_short, held))})" if what == "tuple" else f"<{what}>"
        if what in ("float", "type"):
            text = str(held)
    elif type(node) is list:
        text = f"[{', '.join(map(_short, node))}]"
    else:
        text = repr(node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
