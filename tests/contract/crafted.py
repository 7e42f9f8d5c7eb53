"""Saved models changed by hand, with checksums that fit."""

import copy
import hashlib
import json
import os
import pickle
import shutil

import numpy as np

from sklearn_xc.storage.array_files import TENSORS, ArrayFile, write_array, write_file
from sklearn_xc.storage.folder import META
from sklearn_xc.storage.tensor_files import parts_of, tensors_in


class Crafted:
    """What a model's folder says, to be changed and written anew.

    Attributes
    ----------
    meta : dict
        What meta.json says, but for its checksum and the files.
    arrays : dict of str to ndarray
        By the name of the file as it was read; of a file of several, its bytes.
    """

    def __init__(self, folder):
        self.meta = json.loads((folder / META).read_bytes())
        del self.meta["sha256"]
        self.files = self.meta.pop("files")
        self.arrays = {
            name: np.fromfile(folder / name, np.uint8)
            if name.endswith(TENSORS)
            else np.load(folder / name)
            for name in self.files
        }
        self._folder = folder

    def copied(self):
        """Return another, whose changes are its own."""
        other = copy.copy(self)
        other.meta, other.arrays = pickle.loads(pickle.dumps(self.meta)), dict(self.arrays)
        return other

    def write(self, folder, array_of=None, change=None):
        """Write the model; the arrays of `array_of` under the names of those that they replace.

        `change` is called with all that meta.json is about to say.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        files = dict(self.files)
        for name in self.files:
            if name not in (array_of or {}):
                os.link(self._folder / name, folder / name)
        for name, array in (array_of or {}).items():
            if name.endswith(TENSORS):
                parts = (memoryview(array.tobytes()),)
                written, size, sha256 = write_file(parts, folder, "crafted", TENSORS)
                file = ArrayFile("|u1", (size,), False, size, sha256)
            else:
                written, file = write_array(array, folder, "crafted")
            os.replace(folder / written, folder / name)
            files[name] = file.as_json()
        meta = {**self.meta, "files": copy.deepcopy(files)}
        if change is not None:
            change(meta)
        body = json.dumps(meta, indent=1).encode().removesuffix(b"\n}")
        digest = hashlib.sha256(body).hexdigest().encode()
        (folder / META).write_bytes(body + b',\n "sha256": "' + digest + b'"\n}\n')


def spoilt(array):
    """Return arrays that cannot stand where one did, by what is wrong with them."""
    made = {"texts": np.full(array.shape, "x"), "deeper": array[None]}
    if array.ndim:
        made["longer"] = np.concatenate([array, array[-1:] if len(array) else np.ones_like(array)])
        made["much longer"] = np.concatenate([array] * 50)
        made["rows in a row"] = array.reshape(-1, 1)
        if len(array):
            made["shorter"], made["none"] = array[:-1], array[:0]
        if array.ndim > 1 and min(array.shape) > 1:
            made["narrower"], made["wider"] = array[:, :-1].copy(), np.tile(array, 3)
            made["columns"] = np.asfortranarray(array)
    if array.dtype.kind in "iu":
        made["other dtype"] = array.astype(np.int32 if array.dtype == np.int64 else np.int64)
        if array.size:
            for what, number in {"below 0": -7, "large": 2**30, "past the end": None}.items():
                other = array.copy()
                number = int(array.max()) + 1 if number is None else number
                if np.iinfo(array.dtype).min <= number <= np.iinfo(array.dtype).max:
                    other.flat[array.size // 2] = number
                    made[what] = other
    if array.dtype.kind == "f":
        made["other dtype"] = array.astype(np.float16)
        if array.size:
            for number in (np.nan, np.inf):
                made[str(number)] = array.copy()
                made[str(number)].flat[array.size // 2] = number
    return made


def spoilt_tensors(data):
    """Return files in which one array of several is spoilt, by its name and what is wrong."""
    arrays, made = tensors_in(data, "file"), {}
    for name, array in arrays.items():
        for what, other in spoilt(array).items():
            if other.dtype.kind != "U":  # which the format has not
                parts = parts_of({**arrays, name: other})
                made[f"{name}: {what}"] = np.frombuffer(b"".join(parts), np.uint8)
    return made
