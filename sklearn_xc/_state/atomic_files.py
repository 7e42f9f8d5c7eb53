"""Files that appear under their name only when they are complete."""

import bz2
import errno
import gzip
import lzma
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

#: Streams that compress, by suffix; equal content gives equal bytes.
_COMPRESSED: dict[str, Any] = {
    ".gz": lambda raw: gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
}


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a hidden file in the same folder, which takes the place of `path` at the end and
    keeps its mode. After an error the older file is as it was and nothing else is left; a killed
    process leaves the hidden file. A pipe or a device is written to directly. A name that ends in
    ``.gz``, ``.xz`` or ``.bz2`` compresses.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    if target.is_dir() or not target.parent.is_dir():
        number = errno.EISDIR if target.is_dir() else errno.ENOENT
        raise OSError(number, os.strerror(number), os.fspath(path))
    compressed = _COMPRESSED.get(target.suffix, nullcontext)
    if target.exists() and not target.is_file():  # a pipe or a device
        with open(target, "wb") as raw, compressed(raw) as stream:
            yield stream
        return
    scratch = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(scratch, "xb") as raw:
            with compressed(raw) as stream:
                yield stream
            raw.flush()
            if target.exists():
                os.fchmod(raw.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(raw.fileno())
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
