import lzma
import zlib

import numpy as np
import pytest

from asv_bench.common import debian
from asv_bench.common.sized_sets import NEW_SETS, load_sized_set

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


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "debian"
    folder.mkdir()
    (folder / "Packages.xz").write_bytes(lzma.compress(PACKAGES.encode()))
    return folder / "Packages.xz"


def labels_of(found):
    """Return the text and the names of the labels of each package, training before test."""
    (train, test), Y_train, Y_test, names = found
    return {
        text: [names[j] for j in Y[[i]].indices]
        for texts, Y in ((train, Y_train), (test, Y_test))
        for i, text in enumerate(texts)
    }


def test_fields_are_read_with_their_continued_lines(path):
    vim, nano, mutt = debian.packages(path)
    assert vim["Tag"] == "devel::editor, implemented-in::c, use::editing"
    assert (nano["Package"], mutt["Description"]) == ("nano", "mail reader")


def test_labels_are_those_of_two_sources(path):
    assert labels_of(debian.read_debian("debian_depends", path)) == {
        "vim tiny small editor": ["default mta", "libc6"],
        "nano another editor": ["libc6"],
        "mutt mail reader": ["default mta"],
    }
    assert labels_of(debian.read_debian("debian_tags", path)) == {
        "vim tiny small editor": ["devel editor"], "nano another editor": ["devel editor"],
    }  # fmt: skip
    assert labels_of(debian.read_debian("debian_maintainers", path)) == {
        "nano another editor": ["Jane"], "mutt mail reader": ["Jane"],
    }  # fmt: skip


def test_packages_of_a_source_are_on_one_side(tmp_path):
    lines = [
        f"Package: p{i}\nSource: s{i % 40}\nMaintainer: M\nDescription: d{i}\n" for i in range(200)
    ]
    path = tmp_path / "Packages.xz"
    path.write_bytes(lzma.compress("\n".join(lines).encode()))
    (train, test), Y_train, Y_test, _ = debian.read_debian("debian_maintainers", path)
    assert (Y_train.shape, Y_test.shape) == ((len(train), 1), (len(test), 1))
    sides = [{int(text.split()[1][1:]) % 40 for text in texts} for texts in (train, test)]
    assert sides[0] | sides[1] == set(range(40))
    assert not sides[0] & sides[1]
    assert sides[1] == {i for i in range(40) if zlib.crc32(b"s%d" % i) % 9 == 0}


def test_new_sets_are_sized_sets(tmp_path):
    folder = tmp_path / "debian"
    folder.mkdir()
    lines = [
        f"Package: p{i}\nMaintainer: M{i % 3} <m>\nDepends: a{i % 2}, b\nTag: t::{i % 2}\n"
        f"Description: word{i % 7} of package\n"
        for i in range(120)
    ]
    (folder / "Packages.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
    assert set(NEW_SETS) == set(debian.SETS)
    for name, one_class in NEW_SETS.items():
        sized = load_sized_set(name, "1/4", tmp_path)
        assert sized.one_class is one_class
        assert sized.X_train.shape[0] == sized.Y_train.shape[0] == len(sized.texts_train) > 20
        assert sized.Z.shape == (sized.Y_train.shape[1], sized.X_train.shape[1])
        if one_class:
            assert (np.diff(sized.Y_train.indptr) == 1).all()


@pytest.mark.parametrize("data", [None, "nowhere"])
def test_missing_file_is_named(data):
    with pytest.raises(FileNotFoundError, match=r"need debian/Packages\.xz, as a mirror has it"):
        load_sized_set("debian_tags", "all", data)
