"""The data sets: texts, labels, sizes, classes, the cache, missing files."""

import lzma
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.extmath import row_norms

from asv_bench.common import debian, sets
from asv_bench.common.sets import (
    CLASS_SETS,
    LABEL_SETS,
    documents_of,
    load,
    loaded,
    sizes_of,
    take_labels,
)
from sklearn_xc.datasets import dump_xmc_file

GENERATOR = """
import sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["--n-labels"] == "4000" and given["--seed"] == "1"
for part, rows in (("train", ["0,2 0:3 1:4", "1 2:1"]), ("test", ["2 1:2"])):
    with open(f"{given['--out']}_{part}.txt", "w") as file:
        print(f"{len(rows)} 3 3", *rows, sep="\\n", file=file)
"""
PACKAGES = """Package: vim-tiny
Source: vim (9.1)
Maintainer: Vim Team <vim@example.org>
Depends: libc6 (>= 2.34), libtinfo6:any, default-mta | mail-transport-agent
Tag: devel::editor, implemented-in::c,
 use::editing
Description: small editor

Package: nano
Maintainer: Jane <jane@example.org>
Depends: libc6, nano-data
Tag: devel::editor, interface::text
Description: another editor

Package: mutt
Maintainer: Jane <other@example.org>
Depends: default-mta
Description: mail reader
"""


def check_unit_rows(X, dtype):
    assert X.dtype == dtype
    assert X.has_sorted_indices
    norms = row_norms(X)
    np.testing.assert_allclose(norms[norms > 0], 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype"), [("delicious", np.float32), ("yso_finna_en", np.float64)]
)
def test_rows_have_norm_one(name, dtype, data):
    found = load(name, data, dtype=dtype)
    check_unit_rows(found.X_train, dtype)
    check_unit_rows(found.X_test, dtype)


def test_titles_have_words_of_two_training_texts(data):
    found = load("yso_finna_en", data)
    assert found.X_train.shape == (4, 3)  # birds, sea, ships; "and" and "at" are in one text
    expected = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(found.Y_train.toarray(), expected)
    expected = [[0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(found.Y_test.toarray(), expected)
    np.testing.assert_array_equal(
        found.X_test.toarray() > 0, [[True, True, False], [False] * 3, [False] * 3]
    )
    assert found.texts[2] == ["ship", "bird", "table\ts", "no"]


def test_equal_label_sets_are_classes(data):
    found = load("yso_sets", data)
    # {1} is that of the training rows 1 and 3, and of the last test row.
    np.testing.assert_array_equal(found.Y_train.toarray(), [[1], [1]])
    assert found.texts[0] == ["sea birds", "birds"]
    np.testing.assert_array_equal(found.Y_test.toarray(), [[1]])
    np.testing.assert_array_equal(found.target, [0, 0])


def test_wordnet_has_words_glosses_and_label_texts(data):
    found = load("english_wordnet", data)
    assert found.texts[0][0] == "ship ship thing0 a thing"
    assert found.Z.shape == (7, found.X_train.shape[1])
    assert row_norms(found.Z)[0] > 0


def test_first_labels_are_classes(data):
    whole, found = load("bibtex", data), load("bibtex:first", data)
    rows = np.flatnonzero(np.diff(whole.Y_train.indptr))
    first = [whole.Y_train[[i]].indices.min() for i in rows]
    np.testing.assert_array_equal(found.target, first)
    np.testing.assert_array_equal(found.X_train.toarray(), whole.X_train[rows].toarray())


def test_sizes_are_nested_shares(data):
    rows = []
    for size in ("1/16", "1/4", "all"):
        found = load("bibtex", data, size)
        rows.append({row.tobytes() for row in found.X_train.toarray()})
        assert found.X_test.shape[0] == 100
        assert loaded["bibtex" if size == "all" else f"bibtex, {size}"]["n_train"] > 0
    assert rows[0] < rows[1] < rows[2]
    assert [len(r) for r in rows] == [12, 50, 200]
    assert sizes_of("yso_sets") == ("1/16", "1/4")


def test_words_are_those_of_a_size(data):
    small, whole = load("english_wordnet", data, "1/16"), load("english_wordnet", data)
    assert small.X_train.shape[1] < whole.X_train.shape[1]
    assert small.Y_train.shape[1] == whole.Y_train.shape[1]


@pytest.mark.parametrize("name", ["english_wordnet", "bibtex"])
def test_cache_returns_the_same(name, data, tmp_path):
    first = load(name, data, "1/4", cache=tmp_path)
    again = load(name, None, "1/4", cache=tmp_path)
    for part in ("X_train", "Y_train", "X_test", "Y_test", "Z"):
        a, b = getattr(first, part), getattr(again, part)
        assert (a is None and b is None) or (a != b).nnz == 0
    assert (again.texts and tuple(again.texts)) == (first.texts and tuple(first.texts))


def test_citeulike_has_labels_with_five_items(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.5, (50, 12)) + np.eye(50, 12, dtype=int))
    Y = sp.csr_array(np.arange(50)[:, None] < [4, 5, 9])
    (tmp_path / "citeulike_t").mkdir()
    dump_xmc_file(tmp_path / "citeulike_t" / "citeulike_t_all.txt.gz", X.astype(np.float32), Y)
    found = load("citeulike_t", tmp_path)
    assert found.Y_train.shape == (40, 2)
    assert found.Y_test.shape == (10, 2)
    train = np.random.default_rng(0).permutation(50)[:40]
    expected = TfidfTransformer().fit_transform(X[train])
    np.testing.assert_allclose(found.X_train.toarray(), expected.toarray(), rtol=1e-5)


def test_a_set_may_be_generated(tmp_path):
    (tmp_path / "synthetic").mkdir()
    (tmp_path / "synthetic" / "gen.py").write_text(GENERATOR)
    found = load("syn4k", tmp_path)
    np.testing.assert_allclose(found.X_train.toarray(), [[0.6, 0.8, 0], [0, 0, 1]], rtol=1e-6)
    np.testing.assert_array_equal(found.Y_train.toarray(), [[1, 0, 1], [0, 1, 0]])


def test_cooking_has_tags(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "_COOKING_TRAIN", 2)
    (tmp_path / "cooking_stackexchange").mkdir()
    lines = "__label__food-safety __label__acid is it safe\n" * 3
    (tmp_path / "cooking_stackexchange" / "cooking.stackexchange.txt").write_text(lines)
    found = load("cooking_stackexchange", tmp_path)
    assert found.texts[2] == ["acid", "food safety"]
    assert found.texts[0] == ["is it safe"] * 2
    np.testing.assert_array_equal(found.Y_train.toarray(), np.ones((2, 2)))


@pytest.mark.parametrize("name", LABEL_SETS + CLASS_SETS)
def test_every_set_has_the_documents_of_a_set_of_labels(name):
    assert documents_of(name) in LABEL_SETS
    assert (documents_of(name) == name) == (name in LABEL_SETS)


def test_unknown_names_and_missing_files_are_named(data, tmp_path):
    with pytest.raises(ValueError, match=r"Expected a set of bibtex, .* Got 'eurlex'"):
        load("eurlex", data)
    (tmp_path / "bibtex").mkdir()
    train = "bibtex/bibtex_train.txt.gz"
    (tmp_path / train).write_bytes((data / train).read_bytes())
    with pytest.raises(FileNotFoundError, match=r"there is no .*bibtex_test\.txt\.gz\."):
        load("bibtex", tmp_path)


def test_labels_are_drawn_once_and_for_all(data):
    Y = load("bibtex", data).Y_train
    np.testing.assert_array_equal(take_labels(Y, None), np.arange(12))
    few = take_labels(Y, 5)
    assert len(np.unique(few)) == 5
    np.testing.assert_array_equal(few, take_labels(Y, 5))


# Debian's packages


@pytest.fixture
def packages(tmp_path):
    (tmp_path / "debian").mkdir()
    path = tmp_path / "debian" / "Packages.xz"
    path.write_bytes(lzma.compress(PACKAGES.encode()))
    return path


def labels_of(found):
    """Return the text and the names of the labels of each package."""
    (train, test, names), *targets = found
    return {
        text: [names[j] for j in Y[[i]].indices]
        for texts, Y in zip((train, test), targets, strict=True)
        for i, text in enumerate(texts)
    }


def test_labels_are_those_of_two_sources(packages):
    assert labels_of(debian.read_debian("debian_depends", packages)) == {
        "vim tiny small editor": ["default mta", "libc6"],
        "nano another editor": ["libc6"],
        "mutt mail reader": ["default mta"],
    }
    assert labels_of(debian.read_debian("debian_tags", packages)) == {
        "vim tiny small editor": ["devel editor"],
        "nano another editor": ["devel editor"],
    }


def test_one_maintainer_a_package_and_sources_on_one_side(packages):
    maintained = debian.read_debian("debian_maintainers", packages)
    assert maintained[0][2] == ["Jane"]
    assert sorted(map(len, labels_of(maintained).values())) == [1, 1]
    (train, test, _), *_ = debian.read_debian("debian_depends", packages)
    expected = [name for name in ("vim", "nano", "mutt") if zlib.crc32(name.encode()) % 9 == 0]
    assert sorted(text.split()[0] for text in test) == sorted(expected)
    assert len(train) + len(test) == 3
