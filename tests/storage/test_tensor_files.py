"""Arrays of a network in one safetensors file: as the library reads it, and nothing that lies."""

import copy
import io
import json
import mmap
import os
import pickle
import pickletools
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from make_golden import network
from test_models import X, Y, answers, mapped, rewritten  # noqa: F401

import sklearn_xc
from sklearn_xc import OvALinearXC
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import array_files
from sklearn_xc.storage import folder as folders
from sklearn_xc.storage.array_files import ArrayFile, StoredArray, write_file
from sklearn_xc.storage.folder import META, read_meta
from sklearn_xc.storage.reports import describe_model, problems_of_model
from sklearn_xc.storage.tensor_files import DTYPES, parts_of, tensors_in, write_tensors
from sklearn_xc.weights.tensors import Tensors

LARGE = {"w": np.arange(40_000, dtype=np.float32).reshape(200, 200), "b": np.ones(200, np.float32)}


@pytest.fixture(scope="module")
def plain():
    return OvALinearXC(tol=1e-2).fit(X, Y)


@pytest.fixture
def holding(plain):
    """Return a function that gives a model attributes."""

    def hold(**attributes):
        model = copy.copy(plain)
        vars(model).update(attributes)
        return model

    return hold


def file_of(folder):
    (path,) = folder.glob("*.safetensors")
    return path


def same(found, expected):
    """Whether arrays are the same by name, in C order and the byte order of the machine."""
    return sorted(found) == sorted(expected) and all(
        (array.shape, array.dtype) == (expected[name].shape, expected[name].dtype.newbyteorder("="))
        and array.tobytes() == expected[name].astype(array.dtype).tobytes()
        and array.flags.c_contiguous
        for name, array in found.items()
    )


def bytes_of(arrays):
    return b"".join(parts_of(arrays))


def read(data, name="x.safetensors"):
    return tensors_in(np.frombuffer(data, np.uint8), name)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
dtypes = st.sampled_from(sorted(DTYPES, key=str)).flatmap(
    lambda dtype: st.sampled_from([dtype, dtype.newbyteorder(">")])
)


@st.composite
def any_arrays(draw):
    """Arrays of all dtypes, shapes, orders and strides."""
    made = {}
    for name in draw(st.lists(names, max_size=5, unique=True)):
        shape = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
        array = draw(npst.arrays(draw(dtypes), shape))
        for axis in range(array.ndim):
            step = draw(st.sampled_from([1, 2, -1]))
            array = array[(slice(None),) * axis + (slice(None, None, step),)]
        made[name] = draw(st.sampled_from([array, array.T, np.asfortranarray(array)]))
    return made


class TestFiles:
    @given(
        arrays=any_arrays(), small=st.sampled_from([0, 2**16]),
        chunk=st.sampled_from([64, 192, 2**20]),
    )  # fmt: skip
    def test_arrays_come_back(self, arrays, small, chunk, tmp_path_factory):
        folder = tmp_path_factory.mktemp("a")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(array_files, "SMALL", small)
            patch.setattr(array_files, "CHUNK", chunk)
            patch.setattr(array_files, "_PIECE", 16)
            name, file = write_tensors(arrays, folder, "x")
            assert ArrayFile.from_json(name, file.as_json()) == file
            stored = StoredArray(folder / name, file)
            found = tensors_in(stored.checked(), name)
        assert [path.name for path in folder.iterdir()] == [name]
        assert same(found, arrays)
        for array in found.values():
            assert not array.flags.writeable
            assert array.flags.aligned
            assert not array.size or np.shares_memory(array, stored.bytes)

    @given(arrays=any_arrays())
    def test_the_library_writes_the_same_bytes(self, arrays):
        library = pytest.importorskip("safetensors.numpy")
        given = {
            name: np.array(a, a.dtype.newbyteorder("="), order="C") for name, a in arrays.items()
        }
        assert bytes_of(arrays) == library.save(given)
        assert same(library.load(bytes_of(arrays)), arrays)

    def test_the_order_of_names_does_not_count(self):
        arrays = network()
        assert bytes_of(arrays) == bytes_of(dict(reversed(arrays.items())))

    def test_others_open_it(self, tmp_path):
        for_numpy = pytest.importorskip("safetensors.numpy")
        arrays = {**network(), "columns": np.ones((4, 5)).T, "every other": np.arange(9)[::2]}
        name, _ = write_tensors(arrays, tmp_path, "x")
        assert same(for_numpy.load_file(tmp_path / name), arrays)
        pytest.importorskip("torch")
        from safetensors.torch import load_file

        found = load_file(tmp_path / name)
        assert same({key: tensor.numpy() for key, tensor in found.items()}, arrays)

    def test_what_the_library_writes_is_read(self):
        library = pytest.importorskip("safetensors.numpy")
        assert same(read(library.save(network(), metadata={"format": "pt"})), network())

    def test_no_copy_of_arrays_that_are_contiguous(self):
        parts = list(parts_of(LARGE))
        for part, name in zip(parts[1:], sorted(LARGE), strict=True):
            assert np.shares_memory(np.frombuffer(part, np.uint8), LARGE[name])

    def test_nothing_is_left_of_a_write_that_failed(self, tmp_path, full_disk):
        with full_disk(after=0), pytest.raises(OSError, match="No space left"):
            write_tensors(LARGE, tmp_path, "x")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "change",
        [{"dtype": "|b1"}, {"dtype": "|i1"}, {"dtype": "<f4"}, {"shape": [3]}, {"shape": []}],
    )
    def test_what_meta_says_of_it(self, change, tmp_path):
        name, file = write_tensors(network(), tmp_path, "x")
        with pytest.raises(SavedModelError, match=r"what it says of the array x-.*makes no"):
            ArrayFile.from_json(name, file.as_json() | change)


def crafted(header, values=b"", n_header=None):
    """Return a file of a header that may be anything."""
    text = header if type(header) is bytes else json.dumps(header).encode()
    if n_header is None:
        text += b" " * (-len(text) % 8)
        n_header = len(text)
    return n_header.to_bytes(8, "little") + text + values


def entry(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


LYING = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "no header": b"\0" * 8,
    "header longer than the file": crafted({}, n_header=1000),
    "header longer by one": crafted(b"{}      ", n_header=16),
    "huge header": crafted({}, n_header=2**63),
    "largest header": crafted({}, n_header=2**64 - 1),
    "header not padded": crafted(b"{}", n_header=2),
    "header cut off": crafted(b'{"a": '),
    "two headers": crafted(b"{}{}    "),
    "list": crafted([]),
    "number": crafted(3),
    "null": crafted(None),
    "no UTF-8": crafted(b'{"\xff\xfe":{}}'),
    "UTF-16": crafted("{}".encode("utf-16")),
    "deep": crafted(b"[" * 100_000),
    "deep in an array": crafted(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "long number": crafted(b'{"a":' + b"9" * 10_000 + b"}"),
    "an array twice": crafted(
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
        b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        bytes(8),
    ),
    "a dtype twice": crafted(
        b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)
    ),
    "no object": crafted({"a": 3}, bytes(8)),
    "a list": crafted({"a": ["F32", [2], [0, 8]]}, bytes(8)),
    "empty object": crafted({"a": {}}, bytes(8)),
    "more": crafted({"a": entry(more=1)}, bytes(8)),
    "unknown dtype": crafted({"a": entry("F31")}, bytes(8)),
    "of numpy": crafted({"a": entry("<f4")}, bytes(8)),
    "bfloat16": crafted({"a": entry("BF16", (4,))}, bytes(8)),
    "list as dtype": crafted({"a": entry(["F32"])}, bytes(8)),
    "null as dtype": crafted({"a": entry(None)}, bytes(8)),
    "negative shape": crafted({"a": entry(shape=[-2])}, bytes(8)),
    "twice negative shape": crafted({"a": entry(shape=[-2, -1])}, bytes(8)),
    "negative around zero": crafted({"a": entry(shape=[0, -3], offsets=[0, 0])}),
    "unknown length": crafted({"a": entry(shape=[-1])}, bytes(8)),
    "shape of floats": crafted({"a": entry(shape=[2.0])}, bytes(8)),
    "shape of bools": crafted({"a": entry(shape=[2, True])}, bytes(8)),
    "shape of texts": crafted({"a": entry(shape=["2"])}, bytes(8)),
    "text as shape": crafted({"a": entry(shape="", offsets=[0, 4])}, bytes(4)),
    "object as shape": crafted({"a": entry(shape={}, offsets=[0, 4])}, bytes(4)),
    "number as shape": crafted({"a": entry(shape=2)}, bytes(8)),
    "too large": crafted({"a": entry(shape=[3])}, bytes(8)),
    "too small": crafted({"a": entry(shape=[1])}, bytes(8)),
    "huge": crafted({"a": entry(shape=[2**62])}, bytes(8)),
    "huge around zero": crafted({"a": entry(shape=[2**62, 2**62, 0], offsets=[0, 0])}),
    "huge beyond 64 bits": crafted({"a": entry(shape=[2**64, 0], offsets=[0, 0])}),
    "wraps around": crafted({"a": entry(shape=[2**62 + 2])}, bytes(8)),
    "65 dimensions": crafted({"a": entry(shape=[1] * 64 + [2])}, bytes(8)),
    "a million dimensions": crafted({"a": entry(shape=[2**62] * 10**6)}, bytes(8)),
    "negative begin": crafted({"a": entry(offsets=[-8, 0])}, bytes(8)),
    "ends before it begins": crafted({"a": entry(offsets=[8, 0])}, bytes(8)),
    "offsets of floats": crafted({"a": entry(offsets=[0.0, 8.0])}, bytes(8)),
    "offsets of bools": crafted({"a": entry("U8", [1], [False, True])}, bytes(1)),
    "one offset": crafted({"a": entry(offsets=[8])}, bytes(8)),
    "three offsets": crafted({"a": entry(offsets=[0, 8, 8])}, bytes(8)),
    "text as offsets": crafted({"a": entry(offsets="08")}, bytes(8)),
    "beyond the end": crafted({"a": entry(offsets=[0, 8])}, bytes(7)),
    "far beyond the end": crafted({"a": entry(shape=[2**40], offsets=[0, 2**42])}, bytes(8)),
    "gap before": crafted({"a": entry(offsets=[4, 12])}, bytes(12)),
    "gap between": crafted({"a": entry(), "b": entry(offsets=[12, 20])}, bytes(20)),
    "gap after": crafted({"a": entry()}, bytes(9)),
    "no arrays but values": crafted({}, bytes(1)),
    "overlap": crafted({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
    "the same twice": crafted({"a": entry(), "b": entry()}, bytes(8)),
    "mixed offsets": crafted({"a": entry(), "b": entry(offsets=["8", "16"])}, bytes(16)),
    "not aligned": crafted(
        {"a": entry("U8", [1], [0, 1]), "b": entry(shape=[1], offsets=[1, 5])}, bytes(5)
    ),
}


class TestHeadersThatLie:
    @pytest.mark.parametrize("data", LYING.values(), ids=LYING)
    def test_they_are_refused(self, data):
        with pytest.raises(SavedModelError, match=r"^x\.safetensors: is no safetensors file as it"):
            read(data)

    def test_what_they_are_made_of_is_read(self):
        """So that each is refused for what its name says."""
        both = crafted({"a": entry(), "b": entry(offsets=[8, 16])}, bytes(16))
        assert same(read(both), {"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)})
        assert same(read(crafted({"a": entry(shape=[1] * 63 + [2])}, bytes(8))),
                    {"a": np.zeros([1] * 63 + [2], np.float32)})  # fmt: skip
        assert read(crafted({})) == {}

    @pytest.mark.parametrize(
        "change",
        [
            lambda data: data.view(np.int8), lambda data: data.reshape(-1, 1),
            lambda data: data[None], lambda data: data.astype("U3"), lambda data: data * 1.0,
        ],
    )  # fmt: skip
    def test_files_of_other_arrays_are_refused(self, change):
        array = change(np.frombuffer(bytes_of({"a": np.ones(3, np.uint8)}), np.uint8))
        with pytest.raises(SavedModelError, match="is no safetensors file as it was written"):
            tensors_in(array, "x.npy")

    @given(data=st.data())
    def test_whatever_is_changed_it_is_refused_or_fits(self, data):
        whole = bytearray(bytes_of(network()))
        n_header = int.from_bytes(whole[:8], "little")
        wild = st.sampled_from(b'0123456789{}[]",:-eE.\\ FIU\x00\xff')
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, 8 + n_header - 1))
            whole[at] = data.draw(wild)
        try:
            found = read(bytes(whole))
        except SavedModelError:
            return
        assert sum(array.nbytes for array in found.values()) == len(whole) - 8 - n_header
        for array in found.values():
            array.copy()

    @pytest.mark.parametrize("name", ["huge header", "overlap", "deep", "bfloat16", "gap after"])
    def test_so_they_are_with_checksums_that_fit(self, name, holding, tmp_path):
        holding(network_=Tensors(network())).save(tmp_path)
        known = file_of(tmp_path).name
        made, size, sha256 = write_file((memoryview(LYING[name]),), tmp_path, "y", ".safetensors")
        os.replace(tmp_path / made, tmp_path / known)
        file = ArrayFile("|u1", (size,), False, size, sha256)
        rewritten(tmp_path, lambda meta: meta["files"].update({known: file.as_json()}))
        says = rf"{known}: is no safetensors file as it was written"
        with pytest.raises(SavedModelError, match=says) as caught:
            _ = sklearn_xc.load(tmp_path).network_  # which waits, if it is large
        assert str(caught.value).startswith(str(tmp_path))
        assert len(problems_of_model(tmp_path)) == 1

    def test_nodes_that_name_other_files(self, holding, tmp_path):
        holding(network_=Tensors(network())).save(tmp_path)
        others = [name for name in os.listdir(tmp_path) if name.startswith("classes-")]
        for name in [*others, "network-00000000.safetensors", META, 3]:

            def change(meta, name=name):
                meta["model"]["state"]["network_"]["of"]["arrays"] = {"tensors": name}

            rewritten(tmp_path, change)
            with pytest.raises(SavedModelError, match=r"no safetensors file|makes no sense"):
                sklearn_xc.load(tmp_path)


class TestModels:
    @pytest.mark.parametrize("arrays", [network(), LARGE, {}], ids=["small", "large", "none"])
    def test_it_comes_back(self, arrays, holding, tmp_path):
        holding(network_=Tensors(arrays)).save(tmp_path)
        for verify in (False, True):
            found = sklearn_xc.load(tmp_path, verify=verify).network_
            assert type(found) is Tensors
            assert same(found.arrays, arrays)
        opened = sklearn_xc.load(tmp_path)
        before = file_of(tmp_path).read_bytes()
        opened.save(tmp_path)
        assert file_of(tmp_path).read_bytes() == before
        assert same(sklearn_xc.load(tmp_path).network_.arrays, arrays)

    def test_one_file_that_meta_names(self, holding, tmp_path):
        holding(network_=Tensors(LARGE)).save(tmp_path)
        path, meta = file_of(tmp_path), json.loads((tmp_path / META).read_bytes())
        assert path.name.startswith("network-")
        assert path.read_bytes() == bytes_of(LARGE)
        assert meta["model"]["state"]["network_"] == {
            "form": "Tensors", "of": {"arrays": {"tensors": path.name}},
        }  # fmt: skip
        assert set(os.listdir(tmp_path)) == {META, *meta["files"]}
        (line,) = (line for line in describe_model(tmp_path) if line.startswith("network-"))
        assert line.split() == [path.name, "tensors", "157.2", "KiB"]
        assert problems_of_model(tmp_path) == []

    def test_large_ones_wait_and_are_views_of_the_file(self, holding, tmp_path):
        holding(network_=Tensors(LARGE), other_=Tensors(network())).save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        assert "network_" not in vars(opened)
        assert "other_" in vars(opened)
        assert opened.network_ is opened.network_
        for array in opened.network_.arrays.values():
            assert not array.flags.writeable
            assert type(array) is np.ndarray
            base = array
            while isinstance(base, np.ndarray):
                base = base.base
            assert type(base) is mmap.mmap
        assert not opened.other_.arrays["n_steps"].flags.writeable

    def test_within_records_and_lists_they_wait_too(self, holding, tmp_path):
        held = {"layers": [Tensors(LARGE), Tensors(network())], 3: (Tensors({}),)}
        holding(held_=held).save(tmp_path)
        assert len(list(tmp_path.glob("held.*.safetensors"))) == 3
        opened = sklearn_xc.load(tmp_path)
        assert "held_" not in vars(opened)
        assert same(opened.held_["layers"][0].arrays, LARGE)
        assert same(opened.held_["layers"][1].arrays, network())
        assert opened.held_[3][0].arrays == {}

    def test_pickles(self, holding, tmp_path, mapped):  # noqa: F811
        model = holding(network_=Tensors(LARGE))
        model.save(tmp_path)
        for one in (model, sklearn_xc.load(tmp_path)):
            data = pickle.dumps(one)
            assert same(pickle.loads(data).network_.arrays, LARGE)
            named = {arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)}
            assert not any("tensors" in name for name in named if name.startswith("sklearn_xc"))

    def test_one_record_in_two_places_is_one(self, holding, tmp_path):
        one = Tensors(LARGE)
        holding(network_=one, held_=[one, {"again": one}]).save(tmp_path)
        assert len(list(tmp_path.glob("*.safetensors"))) == 1
        opened = sklearn_xc.load(tmp_path)
        assert opened.held_[0] is opened.held_[1]["again"] is opened.network_

    def test_records_that_share_memory_are_one_file(self, holding, tmp_path):
        views = {name: array[:] for name, array in reversed(LARGE.items())}
        holding(network_=Tensors(LARGE), other_=Tensors(views)).save(tmp_path)
        assert len(list(tmp_path.glob("*.safetensors"))) == 1
        opened = sklearn_xc.load(tmp_path)
        for name in LARGE:
            assert np.shares_memory(opened.network_.arrays[name], opened.other_.arrays[name])

    def test_records_of_some_arrays_in_common_are_two_files(self, holding, tmp_path):
        other = {"w": LARGE["w"], "c": LARGE["w"]}  # in the file twice
        holding(network_=Tensors(LARGE), other_=Tensors(other), w_=LARGE["w"]).save(tmp_path)
        assert len(list(tmp_path.glob("*.safetensors"))) == 2
        opened = sklearn_xc.load(tmp_path)
        assert same(opened.network_.arrays, LARGE)
        assert same(opened.other_.arrays, other)
        np.testing.assert_array_equal(opened.w_, LARGE["w"])

    def test_other_orders_and_strides(self, holding, tmp_path):
        base = np.arange(60_000, dtype=np.float32).reshape(200, 300)
        arrays = {
            "columns": np.asfortranarray(base), "turned": base.T, "every other": base[::2, ::-3],
            "one row many times": np.broadcast_to(base[0], (5, 300)), "big end": base.astype(">f4"),
            "number": np.array(3, np.int8), "empty": base[:0], "none": np.empty((0, 0, 3), bool),
        }  # fmt: skip
        base.tofile(tmp_path / "base")
        arrays["mapped"] = np.memmap(tmp_path / "base", np.float32, "r")
        folder = tmp_path / "model"
        holding(network_=Tensors(arrays)).save(folder)
        assert same(sklearn_xc.load(folder).network_.arrays, arrays)

    @pytest.mark.parametrize(
        ("arrays", "says"),
        [
            ({"a": np.ones(3, complex)}, r"network\.a: must be of uint64, .*bool\. Got complex128"),
            ({"a": np.ones(3, np.longdouble)}, r"network\.a: must be of .* Got "),
            ({"a": np.array(["x"])}, r"network\.a: must be of .* Got <U1"),
            ({"a": np.array([None])}, r"network\.a: must be of .* Got object"),
            ({"a": np.zeros(2, [("x", int)])}, r"network\.a: must be of"),
            ({"a": np.zeros(2, "M8[s]")}, r"network\.a: must be of .* Got datetime64\[s\]"),
            ({"a": np.float32(3)}, r"network\.a: must be an array\. Got float32"),
            ({"a": [1.0]}, r"network\.a: must be an array\. Got list"),
            ({"a": np.ma.masked_array([1.0])}, r"network\.a: must be an array\. Got MaskedArray"),
            ({3: np.ones(3)}, "network: names of arrays must be texts. Got 3"),
            ({"\ud800": np.ones(3)}, r"network: names of arrays must be texts. Got '\\ud800'"),
            ({"__metadata__": np.ones(3)}, "names of arrays must be texts. Got '__metadata__'"),
            ([np.ones(3)], "network: must be a dict of arrays. Got list"),
        ],
    )
    def test_what_no_file_can_hold_changes_nothing(self, arrays, says, holding, plain, tmp_path):
        plain.save(tmp_path)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(TypeError, match=says):
            holding(network_=Tensors(arrays)).save(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


class TestFolders:
    def test_saved_over_another_model(self, holding, plain, tmp_path):
        changed = {**LARGE, "w": LARGE["w"] + 1}
        kinds = {"w": LARGE, "changed": changed, "none": None}
        opened = {}
        for name in ("w", "changed", "none", "w", "changed"):
            arrays = kinds[name]
            (plain if arrays is None else holding(network_=Tensors(arrays))).save(tmp_path)
            assert set(os.listdir(tmp_path)) == {META, *read_meta(tmp_path)["files"]}
            assert len(list(tmp_path.glob("*.safetensors"))) == (arrays is not None)
            opened[name] = sklearn_xc.load(tmp_path)
        for name, model in opened.items():  # those that are open stay whole
            assert answers(model) == answers(plain)
            if kinds[name] is not None:
                assert same(model.network_.arrays, kinds[name])

    def test_files_of_others_are_not_touched(self, plain, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"mine")
        with pytest.raises(FileExistsError, match=r"no part of a model, such as 'model\.safetens"):
            plain.save(tmp_path)

    def test_a_failed_save_changes_nothing(self, holding, plain, tmp_path, full_disk):
        model = holding(network_=Tensors(LARGE))
        with full_disk(after=0) as tried, pytest.raises(OSError, match="No space left"):
            model.save(tmp_path / "new")
        assert not (tmp_path / "new").exists()
        plain.save(tmp_path)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        n_files = len(read_meta(tmp_path)["files"])
        with full_disk(after=n_files) as tried, pytest.raises(OSError, match="No space left"):
            model.save(tmp_path)
        assert len(tried) == n_files + 1
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    @pytest.mark.parametrize("name", ["../x-00000000.safetensors", "x.safetensors", "x-0.safetens"])
    def test_names_that_are_none(self, name, holding, tmp_path):
        holding(network_=Tensors(network())).save(tmp_path)

        def change(meta):
            meta["files"][name] = meta["files"][file_of(tmp_path).name]

        rewritten(tmp_path, change)
        with pytest.raises(SavedModelError, match=r"no name of an array's file|makes no sense"):
            sklearn_xc.load(tmp_path)

    def test_each_folder_has_the_lowest_format(self, holding, plain, tmp_path, monkeypatch):
        models = {"float": plain, "compact": plain.compact(), "network": holding(n_=Tensors({}))}
        for name, model in models.items():
            model.save(tmp_path / name)
        models["network"].save(tmp_path / "both", compact=True)
        formats = {name: read_meta(tmp_path / name)["format"] for name in os.listdir(tmp_path)}
        assert formats == {"float": 1, "compact": 2, "network": 3, "both": 3}
        opened = sklearn_xc.load(tmp_path / "network")
        del opened.n_
        opened.save(tmp_path / "network")
        assert read_meta(tmp_path / "network")["format"] == 1
        monkeypatch.setattr(folders, "FORMAT", 2)
        assert answers(sklearn_xc.load(tmp_path / "float")) == answers(plain)
        with pytest.raises(SavedModelError, match=r"in format 3, of sklearn_xc .* Upgrade it"):
            sklearn_xc.load(tmp_path / "both")

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
    def test_a_golden_one(self, tmp_path):
        path = Path(__file__).parent / "golden" / "format_3" / "tensors.zip"
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
            file.extractall(tmp_path)
        assert same(sklearn_xc.load(tmp_path / "model").network_.arrays, network())


class TestDamage:
    @pytest.fixture
    def saved(self, holding, tmp_path, mapped):  # noqa: F811
        arrays = {"w": np.arange(500, dtype=np.float32), "b": np.ones(3, np.int8)}
        holding(network_=Tensors(arrays)).save(tmp_path)
        return tmp_path

    def test_in_every_chunk(self, saved, plain):
        path = file_of(saved)
        whole = path.read_bytes()
        assert len(whole) > 2000
        for at in range(0, len(whole), 128):
            data = bytearray(whole)
            data[at] ^= 16
            path.write_bytes(data)
            opened = sklearn_xc.load(saved)
            assert answers(opened) == answers(plain)
            chunk = at // 256 * 256
            with pytest.raises(SavedModelError, match=rf"damaged between bytes {chunk:,} and "):
                _ = opened.network_
            with pytest.raises(SavedModelError, match="is damaged between bytes"):
                sklearn_xc.load(saved, verify=True)
            (problem,) = problems_of_model(saved)
            assert problem.startswith(str(path))

    def test_of_other_sizes_or_missing(self, saved):
        path = file_of(saved)
        whole = path.read_bytes()
        for data in (whole[:-1], whole[:4], b"", whole + b"\0"):
            path.write_bytes(data)
            with pytest.raises(SavedModelError, match=rf"has {len(data):,} bytes, .* were written"):
                sklearn_xc.load(saved)
        path.unlink()
        with pytest.raises(SavedModelError, match="the file is missing"):
            sklearn_xc.load(saved)
