"""Saved models changed by hand, with checksums that fit."""

import copy
import hashlib
import json
import shutil

import numpy as np

from sklearn_xc._state.files import META, read_arrays, write_arrays


class Crafted:
    """The content of a model's folder, to be changed and written anew.

    Attributes
    ----------
    meta : dict
        Content of meta.json, without its checksum.
    arrays : dict of str to ndarray
    """

    def __init__(self, folder):
        self.meta = json.loads((folder / META).read_bytes())
        del self.meta["sha256"]
        self.arrays, _ = read_arrays(folder / self.meta["arrays"]["file"])

    def write(self, folder, arrays=None, change=None):
        """Write the model with some other arrays; `change` is called with meta.json's content."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        meta = copy.deepcopy(self.meta)
        path = folder / meta["arrays"]["file"]
        meta["arrays"]["sha256"] = write_arrays(path, {**self.arrays, **(arrays or {})})
        if change is not None:
            change(meta)
        digest = hashlib.sha256(json.dumps(meta).encode()).hexdigest()
        (folder / META).write_text(json.dumps({**meta, "sha256": digest}))


def spoilt(array):
    """Return arrays that must not take the place of one, by what is wrong with them."""
    made = {"deeper": array[None]}
    if array.ndim:
        made["longer"] = np.concatenate([array, array[-1:] if len(array) else np.ones_like(array)])
        made["much longer"] = np.concatenate([array] * 50)
        made["rows in a row"] = array.reshape(-1, 1)
        if len(array):
            made["shorter"], made["none"] = array[:-1], array[:0]
        if array.ndim > 1 and min(array.shape) > 1:
            made["narrower"], made["wider"] = array[:, :-1].copy(), np.tile(array, 3)

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
    return made
