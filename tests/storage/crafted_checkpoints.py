"""Fits with crafted checkpoint folders: ``python crafted_checkpoints.py FOLDERS FIRST LAST``.

Prints the number of each mutation before it is tried, and how the fit ended after it.
"""

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import socket
import sys
import warnings
from pathlib import Path

import numpy as np

from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, OvALinearXCCV
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import loops
from sklearn_xc.storage.checkpoints import Checkpoints

X, Y = make_xc_classification(n_samples=120, n_features=60, n_labels=150, random_state=0)
NGAME = {"embedding_dim": 8, "max_iter": 4, "classifier_max_iter": 3, "random_state": 0}
ESTIMATORS = {
    "ova": lambda folder: OvALinearXC(tol=1e-2, checkpoint_dir=folder),
    "cv": lambda folder: OvALinearXCCV(Cs=3, cv=2, tol=1e-2, checkpoint_dir=folder),
    "ngame": lambda folder: NGAMEEmbeddingXC(**NGAME, checkpoint_dir=folder),
    "ance": lambda folder: NGAMEEmbeddingXC(**NGAME, sampler="ance", checkpoint_dir=folder),
    "tas": lambda folder: NGAMEEmbeddingXC(
        **NGAME, sampler="tas", n_shards=2, checkpoint_dir=folder
    ),
}  # fmt: skip
#: Mutations after which a fit may end in another model: their numbers may be those of a training.
MAY_CHANGE = {"values", "swapped", "renamed", "json"}

DTYPES = ["|S0", "|V0", "|O", "<U9", "<f4", "<f8", "<f2", ">f8", "<i8", "<u8", "|b1", "<c16", "x",
          7, None, "f8,f8", {"names": ["a"], "formats": ["O"]}, "<M8[s]", "|u1\0",
          [["a", "<f8"]]]  # fmt: skip
SHAPES = [[], [0], [1], [-1], [2**31], [2**62], [2**62, 4], [10**30], [0, 10**30], [1] * 65, [1.5],
          ["1"], None, "11", {"0": 1}, [[1]], [True], [0] * 64]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 1e30,
           1e300]  # fmt: skip
NODES = [None, True, False, -1, 0, 1, 2**31, 2**62, 10**30, 1.5, float("nan"), float("inf"), "",
         "\0", "a" * 10**6, "\ud800", [], [[]], {}, {"tuple": []},
         {"class": "os.system"}]  # fmt: skip


class Stopped(BaseException):
    """Ends a fit anywhere."""


class Runs:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch code-ran",)


def dotted():
    """Return a pickle that runs a command by classes that a module of the package imports."""
    code = compile("__import__('os').system('touch code-ran')", "x", "eval")
    held = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals,
            code.co_stacksize, code.co_flags, code.co_code, code.co_consts, code.co_names,
            code.co_varnames, code.co_filename, code.co_name, code.co_qualname,
            code.co_firstlineno, code.co_linetable, code.co_exceptiontable, code.co_freevars,
            code.co_cellvars)  # fmt: skip

    def name(text):
        return b"\x8c" + bytes([len(text)]) + text.encode()

    def kind(text):
        return name("sklearn_xc.kernels.compiling.cache") + name(f"inspect.types.{text}") + b"\x93"

    made = kind("CodeType") + pickle.dumps(held, 3)[2:-1] + b"R"
    return b"\x80\x04" + kind("FunctionType") + b"(" + made + b"}tR)R."


def all_bytes(model):
    """Return what decides on answers."""
    return (
        model.coef_.tobytes() if isinstance(model.coef_, np.ndarray) else model.coef_.data.tobytes()
    )


def fit(name, folder):
    """Fit, each epoch being kept."""
    loops.INTERVAL = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[name](folder).fit(X, Y)


def make_folders(place):
    """Make for each estimator the folder of a fit that has ended, and of one that was stopped."""
    plain = Checkpoints.put
    for name in ESTIMATORS:
        calls, last = [], [0]

        def counted(*args, calls=calls, last=last):
            plain(*args)
            calls.append(None)
            if len(calls) == last[0]:
                raise Stopped

        Checkpoints.put = counted
        found = all_bytes(fit(name, place / f"{name}-0"))
        np.save(place / f"{name}.npy", np.frombuffer(found, np.uint8))
        last[0] = len(calls) + max(1, len(calls) // 2)
        with contextlib.suppress(Stopped):
            fit(name, place / f"{name}-1")
        Checkpoints.put = plain


def read(path):
    """Return the table of a part, and the bytes of its arrays."""
    content = path.read_bytes()
    size = int.from_bytes(content[32:40], "little")
    table, at, blobs = json.loads(content[40 : 40 + size]), 40 + size, {}
    for name, (dtype, shape, _) in table.items():
        at += -at % 64
        n_bytes = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        blobs[name], at = content[at : at + n_bytes], at + n_bytes
    return table, blobs


def write(path, table, blobs):
    """Write a part with a checksum that fits."""
    text = json.dumps(table).encode()
    body = len(text).to_bytes(8, "little") + text
    for blob in blobs.values():
        body += bytes(-(32 + len(body)) % 64) + blob
    sign(path, body)


def sign(path, body):
    """Write the content of a part behind its checksum."""
    path.write_bytes(hashlib.sha256(body).digest() + body)


def replace_file(path, rng):
    """Put something else in place of a file."""
    path.unlink()
    match rng.integers(7):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
            (path / "a").touch()
        case 2:
            path.symlink_to(path)
        case 3:
            path.symlink_to("/dev/zero")
        case 4:
            path.symlink_to(path.parent.parent / "victim")
        case 5:
            path.symlink_to(path.parent.parent / "nothing")
        case 6:
            here = os.getcwd()
            os.chdir(path.parent)  # names of sockets are short
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
            os.chdir(here)


def change_json(path, rng):
    """Change something in fit.json."""
    text = re.sub(r',\n "sha256": "[0-9a-f]{64}"\n}\n\Z', "\n}", path.read_text())
    top = json.loads(text)
    holder, keys = top, []
    while isinstance(holder, dict | list) and len(holder):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[rng.integers(len(keys))]
        if not isinstance(holder[key], dict | list) or not len(holder[key]) or rng.random() < 0.4:
            break
        holder = holder[key]
    node = NODES[rng.integers(len(NODES))]
    match rng.integers(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder["a\0b"] = holder.pop(key)
        case _:
            holder[key] = node
    body = json.dumps(top, indent=1)
    if rng.random() < 0.1:
        deep = 10 ** int(rng.integers(2, 6))
        body = body.replace("{", '{"deep": ' + "[" * deep + "]" * deep + ", ", 1)
    body = body.encode("utf-8", "surrogatepass").removesuffix(b"\n}")
    if rng.random() < 0.1:
        body = pickle.dumps(Runs())
    end = b',\n "sha256": "%b"\n}\n' % hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(body + end)


def change_values(table, blobs, rng):
    """Change numbers of an array."""
    name = list(table)[rng.integers(len(table))]
    array = np.frombuffer(blobs[name], table[name][0]).copy()
    at = rng.integers(len(array), size=int(rng.integers(1, 4))) if len(array) else []
    with np.errstate(all="ignore"):
        match rng.integers(4):
            case 0:
                array[at] = np.array(NUMBERS[rng.integers(len(NUMBERS))]).astype(array.dtype)
            case 1:
                array[:] = np.array(NUMBERS[rng.integers(len(NUMBERS))]).astype(array.dtype)
            case 2:
                array = np.frombuffer(rng.bytes(array.nbytes), array.dtype)
            case 3:
                array = rng.permutation(array)
    blobs[name] = array.tobytes()


def mutate(folder, rng):
    """Change a folder, and return what kind of change it was."""
    paths = sorted(folder.glob("*.part"))
    kinds = ["pickle", "table", "table", "values", "values", "values", "cut", "swapped", "no file",
             "renamed", "json", "json", "flipped"]  # fmt: skip
    kind = kinds[rng.integers(len(kinds))]
    path = paths[rng.integers(len(paths))]
    if kind == "json":
        change_json(folder / "fit.json", rng)
        return kind
    if kind == "no file":
        replace_file(folder / "fit.json" if rng.random() < 0.2 else path, rng)
        return kind
    table, blobs = read(path)
    name = list(table)[rng.integers(len(table))]
    match kind:
        case "pickle":
            held = pickle.dumps(Runs(), protocol=int(rng.integers(2, 6)))
            held = dotted() if rng.random() < 0.5 else held
            if rng.random() < 0.5:
                sign(path, held)
            else:
                table["objects"], blobs["objects"] = ["|u1", [len(held)], "C"], held
                write(path, table, blobs)
        case "table":
            what = int(rng.integers(3))
            values = (DTYPES, SHAPES, ["F", "A", "K", "", None, 1])[what]
            table[name][what] = values[rng.integers(len(values))]
            write(path, table, blobs)
        case "values":
            change_values(table, blobs, rng)
            write(path, table, blobs)
        case "cut":
            body = path.read_bytes()[32:]
            end = int(rng.integers(len(body)))
            sign(path, body[:end] if rng.random() < 0.7 else body + rng.bytes(end))
        case "swapped":
            other = paths[rng.integers(len(paths))]
            a, b = path.read_bytes(), other.read_bytes()
            path.write_bytes(b), other.write_bytes(a)
        case "renamed":
            other = ["", "a\0", "0.labels", "1.labels", "end", "9" * 5000 + ".labels", "x" * 10**5]
            new = [*other, *table][rng.integers(len(table) + len(other))]
            table = {new if key == name else key: value for key, value in table.items()}
            blobs = {new if key == name else key: value for key, value in blobs.items()}
            if rng.random() < 0.3:
                table.pop(new), blobs.pop(new)
            write(path, table, blobs)
        case "flipped":
            body = bytearray(path.read_bytes()[32:])
            for at in rng.integers(min(len(body), 400), size=3):
                body[at] ^= 1 << int(rng.integers(8))
            sign(path, bytes(body))
    return kind


def attempt(folders, number):
    """Return how a fit ends with a mutated folder: a kind of mutation, and a word."""
    rng = np.random.default_rng(number)
    names = list(ESTIMATORS)
    name, state = names[number % len(names)], int(rng.integers(2))
    place = folders / f"try-{number}"
    place.mkdir()
    os.chdir(place)
    (place / "victim").write_text("mine")
    shutil.copytree(folders / f"{name}-{state}", place / "fit")
    kind = mutate(place / "fit", rng)
    try:
        model = fit(name, place / "fit")
    except SavedModelError:
        ended = "refused"
    except Exception as error:
        ended = f"{type(error).__name__}: {str(error)[:200]!r}"
    else:
        same = all_bytes(model) == np.load(folders / f"{name}.npy").tobytes()
        ended = "same" if same else "other"
    if (place / "code-ran").exists() or (place / "fit" / "code-ran").exists():
        ended = "code ran"
    if (place / "victim").read_text() != "mine" or (place / "nothing").exists():
        ended = "wrote elsewhere"
    os.chdir(folders)
    shutil.rmtree(place, ignore_errors=True)
    return f"{name} {kind}", ended


if __name__ == "__main__":
    folders, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", 0), write_through=True)
    if first < 0:
        make_folders(folders)
    for number in range(max(0, first), last):
        print(f"try {number}")
        kind, ended = attempt(folders, number)
        print(f"end {number}\t{kind}\t{ended}")
