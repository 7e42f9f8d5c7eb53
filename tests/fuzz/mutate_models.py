"""Saved models with anything changed, and checksums that fit: ``python mutate_models.py N SEED``.

A model is opened, shown, cloned and asked for two rows. Opening it works, or raises a
SavedModelError. An opened model answers with labels that exist and without NaN, or with an error of
a documented kind. An input that takes more than 30 s ends the process.
"""

import copy
import faulthandler
import json
import os
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.base import clone

import sklearn_xc
from sklearn_xc.exceptions import MemoryBudgetError, SavedModelError

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "_state"), str(TESTS / "contract")]
from crafted import Crafted, spoilt  # noqa: E402
from make_golden import TEXTS, data  # noqa: E402

#: Errors of a model that was opened.
DOCUMENTED = (SavedModelError, ValueError, TypeError, MemoryBudgetError)
_VALUES = [
    *(None, True, 0, 1, -1, 13, 10**6, -(10**9), 2**63, 0.5, -1.0, 1e300, "", "x", [], {}),
    {"float": "nan"},
    {"tuple": []},
    {"dict": {}},
    {"type": "int"},
    {"type": "os.system"},
    {"scalar": "<i8", "value": 3},
    {"object": "os.system", "state": {}},
    {"object": "OvALinearXC", "state": {}},
    {"object": "Pipeline", "state": {"steps": []}},
    {"pairs": [[{"tuple": [1]}, 2]]},
    {"objects": [1, "a", None], "shape": [3]},
    [[[[[[[[1]]]]]]]],
]
#: Parameters that would read files, and shapes that would need much memory.
_HARMFUL = {
    "input": ["filename", "file"],
    "analyzer": [{"type": "int"}, "x"],
    "tokenizer": [{"type": "int"}, "x"],
    "shape": [[1] * 65, [2**62, 4, 0], [-1], "x"],
    "max_memory": [1, "1B", "x"],
    "state": [{}, [], {"predict": 1}],
    "file": ["../x", "/etc/passwd", 3],
    "format": [0, 2, "1"],
}


def places(node, path=()):
    """Yield the keys that lead to each node."""
    items = node.items() if type(node) is dict else enumerate(node) if type(node) is list else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def change_node(rng, meta):
    """Change, remove or replace a random node."""
    where = list(places(meta))
    path = where[rng.integers(len(where))]
    holder = meta
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.2:
        del holder[path[-1]]
        return
    known = _HARMFUL.get(path[-1], _VALUES)
    holder[path[-1]] = copy.deepcopy(known[rng.integers(len(known))])


def replace_file(rng, folder):
    """Put something that is no regular file in place of a file."""
    path = sorted(folder.iterdir())[rng.integers(2)]
    path.unlink()
    (
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: path.symlink_to(path),
        lambda: path.symlink_to("/dev/zero"),
    )[rng.integers(4)]()


def ask(model, rows):
    """Ask a model for two rows, and raise an error for answers that no model gives."""
    repr(model)
    clone(model)
    labels, scores = model.predict_topk(rows, 3)
    assert labels.shape == scores.shape == (2, 3)
    assert labels.min() >= -1
    assert labels.max() < len(model.classes_), "labels that do not exist"
    assert not np.isnan(scores).any(), "scores that are NaN"
    model.predict(rows)


def attempt(rng, crafted, folder, rows):
    """Change a model, and return how opening and asking it ended."""
    arrays, names, n_nodes = {}, sorted(crafted.arrays), int(rng.integers(3))
    for _ in range(rng.integers(not n_nodes, 3)):
        name = names[rng.integers(len(names))]
        made = spoilt(crafted.arrays[name])
        arrays[name] = made[sorted(made)[rng.integers(len(made))]]

    def change(meta):
        for _ in range(n_nodes):
            change_node(rng, meta)

    crafted.write(folder, arrays, change)
    if rng.random() < 0.05:
        replace_file(rng, folder)
    opened = None
    try:
        opened = sklearn_xc.load(folder, verify=bool(rng.integers(2)))
        ask(opened, rows)
    except SavedModelError:
        return "refused"
    except DOCUMENTED:
        if opened is None:
            raise
        return "an error"
    except AssertionError as error:
        if "NaN" not in str(error):
            raise
        return "an error"  # floats are read by `verify` alone
    return "answered"


def main(n, seed):
    """Try random changes; print the outcomes as JSON."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    forbidden, ran = {"os.system", "os.exec", "subprocess.Popen", "socket.connect"}, []

    def watch(event, arguments):
        if event in forbidden or (event == "open" and TEXTS[0] in str(arguments[0])):
            ran.append(f"{event}: {arguments}")

    place = Path(tempfile.mkdtemp())
    seeds = []
    for path in sorted((TESTS / "_state" / "golden").glob("*.zip")):
        with zipfile.ZipFile(path) as file:
            file.extractall(place / path.stem)
        rows = TEXTS[:2] if path.stem == "TextClassifierXC" else data()[0][:2]
        ask(sklearn_xc.load(place / path.stem / "model"), rows)
        seeds.append((Crafted(place / path.stem / "model"), rows))
    sys.addaudithook(watch)
    rng, ended, failed = np.random.default_rng(seed), Counter(), []
    for number in range(n):
        crafted, rows = seeds[rng.integers(len(seeds))]
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            ended[attempt(rng, crafted, place / "crafted", rows)] += 1
        except Exception:
            failed.append((number, traceback.format_exc()[-3000:]))
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"ended": ended, "failed": failed, "ran": ran}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
