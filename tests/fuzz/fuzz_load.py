"""Saved models whose checksums fit, and whose arrays, nodes and files are changed.

An input says which of the models of ``tests/storage/golden`` is taken and what is changed of it:
numbers, lengths and dtypes of arrays, nodes of meta.json, and what is in place of files. Then the
model is opened, shown, cloned and asked for two rows. Opening it either works or raises a
SavedModelError. An opened model answers with labels that there are, without NaN, or with an error
of a documented kind. Arrays are in memory; of every 256th input they are in files, with checksums
computed anew.
"""

import io
import os
import pickle
import sys
import tempfile
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import sklearn_xc
from sklearn_xc import (
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    TextClassifierXC,
    ThresholdTuner,
    _declared_state,
)
from sklearn_xc.exceptions import MemoryBudgetError, SavedModelError
from sklearn_xc.storage import (
    array_files,
    folder,
    foreign,
    forms,
    models,
    nodes,
    signed_json,
    tensor_files,
)
from sklearn_xc.storage.array_files import StoredArray
from sklearn_xc.weights import stored

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "storage"), str(TESTS / "contract")]
from crafted import Crafted  # noqa: E402
from make_golden import NAMES, TEXTS, data  # noqa: E402

#: What a model that was opened may raise.
DOCUMENTED = (SavedModelError, ValueError, MemoryBudgetError)
_DTYPES = ["<f4", "<f8", "<i4", "<i8", "|u1", "<u8", "|b1", "<f2", "<U3", ">f8", "<c8"]
_NUMBERS = [0, 1, -1, 2, 5, 12, 13, -7, 127, 255, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, np.inf, -np.inf, np.nan]
_VALUES = [
    None, True, False, 0, 1, -1, 2, 5, 12, 13, 100, 10**6, -(10**9), 10**12, 2**63, 0.0, 0.5, -1.0,
    1e300, "", "x", "sgd", "sparse", "classes", "dense", "float32", {"float": "nan"}, [], {},
    {"float": "inf"}, {"tuple": []}, {"dict": {}}, {"scalar": ["<i8", "0100000000000000"]},
    {"object": "sklearn_xc.OvALinearXC", "parameters": {}, "state": {}}, {"range": [0, 5, 1]},
    {"object": "os.system", "parameters": {}, "state": {}}, {"same": ["state"]}, {"same": []},
    {"same": ["state", "classes_"]}, {"type": "int"}, {"bytes": "00"}, {"set": [1, 2]},
    {"scalar": ["|V0", ""]}, {"type": "numpy.float64"}, {"texts": {"utf-8": "x", "ends": "y"}},
    {"object": "sklearn.pipeline.Pipeline", "parameters": {"steps": []}, "state": {}},
    {"object": "sklearn_xc.TextClassifierXC", "parameters": {}, "state": {}}, [[[[[[[[1]]]]]]]],
    {"same": ["parameters"]}, {"same": ["state", "classifier_"]}, {"pairs": [[{"tuple": [1]}, 2]]},
    {"object array": [1, "a", None], "shape": [3]}, {"dict": {"__sklearn_xc_record__": "dtype"}},
]  # fmt: skip
#: What parameters and files have that would harm whoever believed it.
_HARMFUL = {
    "input": ["filename", "file"], "token_pattern": ["(.*a)+$", "(\\w|\\w\\w)+!", "(", "\\S+"],
    "ngram_range": [{"tuple": [1, 10**9]}, {"tuple": [0, 0]}, [1, 1], {"tuple": [1]}],
    "encoding": ["punycode", "zlib", "this"], "analyzer": [{"type": "int"}, "char_wb", "x"],
    "tokenizer": [{"type": "int"}, "x"], "preprocessor": [{"type": "float"}], "n_jobs": [10**6, 0],
    "stop_words": [[1], [[]], "english"],
    "dtype": ["O", "|V0", "|S0", "<U99999999", {"type": "int"}],
    "shape": [[1] * 65, [2**62, 4, 0], {}, [-1], "x"], "sha256": [{}, [[]], "0"],
    "size": [2**62, -1, 0, 1e9], "max_memory": [1, "1B", "x"], "fortran": [1, None],
    "vocabulary": [["a", "a"], {"dict": {"a": 10**9}}, 3], "state": [{}, [], {"predict": 1}],
    "label_names": [[1, 1], {"float": "nan"}], "parameters": [{}, {"clone": 1}, []],
    "versions": [[], {}], "format": [0, 2, 99, "1"], "model": [[], {"list": 1}], "files": [{}, []],
}  # fmt: skip


class Bytes:
    """Reads choices off an input; zeros when it is used up."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def below(self, n):
        """Return a number from 0 to n - 1."""
        width = 1 if n <= 256 else 2 if n <= 65536 else 4
        part = self._data[self._at : self._at + width]
        self._at += width
        return int.from_bytes(part, "little") % n

    def of(self, values):
        return values[self.below(len(values))]

    @property
    def is_over(self):
        return self._at >= len(self._data)


class InMemory(StoredArray):
    """An array that is in no file, and checked all the same."""

    def __init__(self, name, array):
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        array.flags.writeable = False
        self.path = f"/model/{name}"
        self.file = SimpleNamespace(
            dtype=array.dtype.str, size=128 + array.nbytes, sha256=[""], fortran=fortran
        )
        self.offset, self.unchecked = 0, array
        self._valid, self._is_checked, self.is_checked = (-np.inf, np.inf), np.zeros(1, bool), False

    def check(self, first, stop):
        self.checked()

    def _check_chunk(self, chunk):
        if self._valid != (-np.inf, np.inf):
            self._check_values(chunk)
        self._is_checked[:] = self.is_checked = True


class Arrays(dict):
    """Arrays in memory by name, made when they are asked for."""

    def __init__(self, plain, changed):
        super().__init__()
        self._plain, self._changed = plain, changed

    def __missing__(self, name):
        self[name] = InMemory(name, self._changed.get(name, self._plain[name]))
        return self[name]

    def __contains__(self, name):
        return name in self._plain


def changed_array(choices, array):
    """Return an array with something changed."""
    array = np.array(array)
    for _ in range(1 + choices.below(3)):
        match choices.below(9):
            case 0 if array.size and array.dtype.kind in "iu":
                limits = np.iinfo(array.dtype)
                number = min(max(choices.of(_NUMBERS), limits.min), limits.max)
                array.flat[choices.below(array.size)] = number
            case 0 | 1 if array.size and array.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    array.flat[choices.below(array.size)] = choices.of(_FLOATS)
            case 2 if array.size and array.dtype.kind in "iu":
                at = choices.below(array.size)
                array.flat[at] = array.flat[choices.below(array.size)]
            case 3 if array.ndim:
                array = array[: choices.below(len(array) + 1)].copy()
            case 4 if array.ndim and array.nbytes < 10_000:
                array = np.concatenate([array] * (1 + choices.below(4)))
            case 5:
                with suppress(ValueError, OverflowError):  # of texts
                    array = array.astype(choices.of(_DTYPES))
            case 6:
                array = choices.of(
                    [array[None], array.reshape(-1), array.T, np.asfortranarray(array)]
                )
            case 7 if array.ndim > 1:
                array = array[:, : choices.below(array.shape[1] + 1)].copy()
            case 8 if array.ndim:
                array = array[::-1].copy()
    return array


def places(node, path=()):
    """Yield where nodes are: the keys that lead there."""
    items = node.items() if type(node) is dict else enumerate(node) if type(node) is list else ()
    for key, held in items:
        yield (*path, key)
        yield from places(held, (*path, key))


def change_node(choices, model, where):
    """Change what stands at one of the places of a model's nodes."""
    path = choices.of(where)
    holder = model
    try:
        for key in path[:-1]:
            holder = holder[key]
        match choices.below(4):
            case 0 | 1 if path[-1] in _HARMFUL:
                holder[path[-1]] = pickle.loads(pickle.dumps(choices.of(_HARMFUL[path[-1]])))
            case 0 | 1:
                holder[path[-1]] = pickle.loads(pickle.dumps(choices.of(_VALUES)))
            case 2:
                del holder[path[-1]]
            case 3:
                other = model
                for key in choices.of(where):
                    other = other[key]
                holder[path[-1]] = pickle.loads(pickle.dumps(other))
    except (KeyError, IndexError, TypeError):  # an earlier change has taken it
        pass


def replace_file(choices, folder):
    """Have something else in place of one of a model's files."""
    path = choices.of(sorted(folder.iterdir()))
    path.unlink()
    match choices.below(5):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(path)
        case 3:
            path.symlink_to("/dev/zero")


def ask(model, rows):
    """Ask a model for two rows, and raise an error for answers that no model gives."""
    repr(model)
    clone(model)
    model.get_params()
    n_labels = len(model.classes_)
    labels, scores = model.predict_topk(rows, 3)
    assert labels.shape == scores.shape == (2, 3)
    assert labels.min() >= -1
    assert labels.max() < n_labels, "labels that there are not"
    assert not np.isnan(scores).any(), "scores that are NaN"
    model.predict(rows)


def further():
    """Yield models with what those of ``golden`` have not, and rows to ask them about."""
    from saved_models import MODELS, X, Y, fitted

    kinds = ("features", "label features", "own learner", "foreign learner", "two classes")
    kinds += ("temperature", "dense", "mahalanobis", "logistic")
    for name in MODELS:
        if name.endswith(kinds) and "transformer" not in name:
            with suppress(TypeError):
                fitted(name).save(tempfile.mkdtemp())
                yield fitted(name), X[:2]
    words = FeatureUnion(
        [
            ("words", TfidfVectorizer(stop_words=["the"])),
            ("hashed", make_pipeline(HashingVectorizer(n_features=64), TfidfTransformer())),
            (
                "two",
                make_pipeline(
                    CountVectorizer(analyzer="char_wb", ngram_range=(1, 2)), MaxAbsScaler()
                ),
            ),
        ]
    )
    yield (
        TextClassifierXC(words, ImplicitSoftmaxSGD(max_iter=2, random_state=0)).fit(TEXTS, NAMES),
        TEXTS[:2],
    )
    scaled = make_pipeline(StandardScaler(with_mean=False), TruncatedSVD(3), OvALinearXC())
    yield ThresholdTuner(scaled, cv=KFold(3)).fit(X, Y), X[:2]
    frozen = FrozenEstimator(TfidfVectorizer().fit(TEXTS))
    names = LabelFeatures(["ale", "bread", "oven", "soup", "stock"])
    model = NGAMEEmbeddingXC(
        label_features=names, label_vectorizer=frozen, max_iter=1, random_state=0
    )
    yield TextClassifierXC(frozen, model).fit(TEXTS, NAMES), TEXTS[:2]


def prepare(instrument, in_files=False):
    """Return the function that tries an input.

    With `in_files`, each is in a folder; "further" has it begin with more kinds of models, too.
    """
    for module in (
        nodes,
        models,
        foreign,
        forms,
        folder,
        array_files,
        tensor_files,
        stored,
        signed_json,
        _declared_state,
    ):
        for name, made in list(vars(module).items()):
            if getattr(made, "__module__", None) != module.__name__:
                continue
            if isinstance(made, FunctionType) and not hasattr(made, "__wrapped__"):
                setattr(module, name, instrument.instrument_func(made))
            elif isinstance(made, type):
                for attribute, method in list(vars(made).items()):
                    if isinstance(method, FunctionType) and not hasattr(method, "__wrapped__"):
                        setattr(made, attribute, instrument.instrument_func(method))
    warnings.simplefilter("ignore")
    place = Path(tempfile.mkdtemp(prefix="fuzz-load-", dir="/dev/shm"))
    seeds = []
    for path in sorted((TESTS / "storage" / "golden").glob("*/*.zip")):
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
            file.extractall(place / path.stem)
        crafted = Crafted(place / path.stem / "model")
        rows = TEXTS[:2] if path.stem == "TextClassifierXC" else data()[0][:2]
        seeds.append((crafted, sorted(crafted.arrays), list(places(crafted.meta["model"])), rows))
        ask(sklearn_xc.load(place / path.stem / "model"), rows)
    for number, (model, rows) in enumerate(further()) if in_files == "further" else ():
        model.save(place / f"{number}")
        crafted = Crafted(place / f"{number}")
        seeds.append((crafted, sorted(crafted.arrays), list(places(crafted.meta["model"])), rows))
        ask(sklearn_xc.load(place / f"{number}"), rows)
    np.seterr(all="ignore")
    read_meta, open_arrays = models.read_meta, models.open_arrays

    def one(data):
        choices = Bytes(data)
        crafted, names, where, rows = choices.of(seeds)
        meta = pickle.loads(pickle.dumps(crafted.meta))
        model = meta["model"]
        arrays = {}
        n_changes = 0  # a node within itself grows twofold
        while not choices.is_over and n_changes < 8:
            n_changes += 1
            if choices.below(3):
                name = choices.of(names)
                arrays[name] = changed_array(choices, arrays.get(name, crafted.arrays[name]))
            else:
                change_node(choices, model, where)
        models.SMALL = (1 << 16, 0)[len(data) % 2]  # large ones are read later
        if in_files or sum(data) % 256 == 0:
            models.read_meta, models.open_arrays = read_meta, open_arrays
            other = crafted.copied()
            other.meta = meta
            whole = list(places({**meta, "model": 0, "files": crafted.files}))
            other.write(
                place / "crafted",
                arrays,
                lambda said: choices.below(5) == 1 and change_node(choices, said, whole),
            )
            path = place / "crafted"
            if choices.below(6) == 1:
                replace_file(choices, path)
        else:
            held = Arrays(crafted.arrays, arrays)
            models.read_meta = lambda path: {"model": model, "files": held}
            models.open_arrays = lambda path, files: files
            path = Path("/model")
        opened = None
        try:
            opened = sklearn_xc.load(path)
            ask(opened, rows)
        except SavedModelError:
            return "refused"
        except DOCUMENTED:
            if opened is None:
                raise
            return "an error"
        return "answered"

    return one
