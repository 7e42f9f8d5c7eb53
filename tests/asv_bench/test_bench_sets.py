"""The data sets: texts, labels, sizes, classes, the cache, missing files."""

import lzma
import zlib

import numpy as np
import pytest
from sklearn.utils.extmath import row_norms

from asv_bench.common import debian
from asv_bench.common.sets import (
    load,
    loaded,
    sizes_of,
)

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


@pytest.mark.parametrize("name", ["english_wordnet", "bibtex"])
def test_cache_returns_the_same(name, data, tmp_path):
    first = load(name, data, "1/4", cache=tmp_path)
    again = load(name, None, "1/4", cache=tmp_path)
    for part in ("X_train", "Y_train", "X_test", "Y_test", "Z"):
        a, b = getattr(first, part), getattr(again, part)
        assert (a is None and b is None) or (a != b).nnz == 0
    assert (again.texts and tuple(again.texts)) == (first.texts and tuple(first.texts))


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


def test_one_maintainer_a_package_and_sources_on_one_side(packages):
    maintained = debian.read_debian("debian_maintainers", packages)
    assert maintained[0][2] == ["Jane"]
    assert sorted(map(len, labels_of(maintained).values())) == [1, 1]
    (train, test, _), *_ = debian.read_debian("debian_depends", packages)
    expected = [name for name in ("vim", "nano", "mutt") if zlib.crc32(name.encode()) % 9 == 0]
    assert sorted(text.split()[0] for text in test) == sorted(expected)
    assert len(train) + len(test) == 3
