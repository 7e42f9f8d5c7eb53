import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from asv_bench.common.data import load_set
from asv_bench.embedding.label_texts import load_labelled_set
from sklearn_xc.exceptions import DataFormatError


def write_table(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


@pytest.fixture
def titles(tmp_path):
    """Return a folder with a few titles and labels; a name holds a TAB, as in the real table."""
    folder = tmp_path / "yso_finna_en"
    folder.mkdir()
    train = 'sea and "ships\t0 2\nsea birds\t1\nships at sea\t0\nbirds\t1\n'
    (folder / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
    (folder / "test.tsv.xz").write_bytes(lzma.compress(b"birds at sea\t1 2\n\t0\n"))
    names = ["0\tu0\tships of birds", "1\tu1\tbirds", "2\tu2\tsea\ts", "3\tu3\ttable"]
    write_table(folder / "labels.tsv.gz", "label\turi\tname", *names)
    return tmp_path


@pytest.fixture
def glosses(tmp_path):
    header = "synset\tlexfile\tmembers\tdefinition\tlabels\tall_ancestor_labels"
    folder = tmp_path / "english_wordnet"
    rows = ["1\tverb\tgasp\tto breathe hard\t1\t0 1", "2\tverb\tpant\tbreathe hard\t1\t0 1"]
    write_table(folder / "hypernym_train.tsv.gz", header, *rows)
    write_table(folder / "hypernym_test.tsv.gz", header, "3\tverb\tpant hard\tverb\t0\t0")
    labels = ["0\ta\tbreathe\tdraw air", "1\tb\tact, verb\tdo it hard"]
    write_table(folder / "hypernym_labels.tsv.gz", "label\tsynset\tname\tdefinition", *labels)
    return tmp_path


def equal(one, other):
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one.toarray(), other.toarray())


@pytest.mark.parametrize("name", ["yso_finna_en", "english_wordnet"])
def test_split_is_that_of_load_set(titles, glosses, name):
    labelled, split = load_labelled_set(name, titles), load_set(name, titles)
    for part in ("X_train", "Y_train", "X_test", "Y_test"):
        equal(getattr(labelled, part), getattr(split, part))
    assert labelled.name == name


def test_label_names_in_the_features_of_titles(titles):
    labelled = load_labelled_set("yso_finna_en", titles)
    assert labelled.label_texts == ["ships of birds", "birds", "sea\ts", "table"]
    assert labelled.Z.shape == (4, 3)
    assert labelled.Z.dtype == np.float32
    assert labelled.Z.has_sorted_indices
    words = labelled.vectorizer.get_feature_names_out().tolist()
    assert words == ["birds", "sea", "ships"]  # "of" and "table" stand in no training text
    np.testing.assert_array_equal(
        labelled.Z.toarray() > 0,
        [[True, False, True], [True, False, False], [False, True, False], [False] * 3],
    )
    np.testing.assert_allclose(row_norms(labelled.Z), [1, 1, 1, 0], rtol=1e-6)
    # A label and an instance of the same words are the same vector.
    equal(labelled.Z[[1]], labelled.X_train[[3]])


def test_words_and_gloss_of_labels(glosses):
    labelled = load_labelled_set("english_wordnet", glosses)
    assert labelled.label_texts == ["breathe draw air", "act, verb do it hard"]
    np.testing.assert_array_equal(labelled.Z.toarray(), [[1, 0], [0, 1]])  # breathe, hard


def test_cached_set_is_the_same_without_its_files(titles, tmp_path):
    cache = tmp_path / "deep" / "cache"
    first = load_labelled_set("yso_finna_en", titles, cache=cache)
    split = load_set("yso_finna_en", titles, cache=cache)
    for path in (titles / "yso_finna_en").iterdir():
        path.unlink()
    again = load_labelled_set("yso_finna_en", None, cache=cache)
    for part in ("X_train", "Y_train", "X_test", "Y_test", "Z"):
        equal(getattr(first, part), getattr(again, part))
        assert sp.issparse(getattr(again, part))
    equal(split.X_train, again.X_train)
    assert again.label_texts == first.label_texts
    check_is_fitted(again.vectorizer)
    equal(again.vectorizer.transform(again.label_texts), first.Z)
    equal(
        again.vectorizer.transform(["sea sea ships"]), first.vectorizer.transform(["sea sea ships"])
    )


def test_names_and_files_that_are_missing(tmp_path):
    with pytest.raises(
        ValueError, match="with label texts is called 'bibtex', expected one of yso"
    ):
        load_labelled_set("bibtex", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"yso_finna_en needs .*; there is no "):
        load_labelled_set("yso_finna_en", tmp_path)


@pytest.mark.parametrize("row", ["2\tb\tact\tgloss", "1\tb\tact"])
def test_a_damaged_table_of_labels_is_named(glosses, row):
    table = glosses / "english_wordnet" / "hypernym_labels.tsv.gz"
    header, rows = "label\tsynset\tname\tdefinition", ["0\ta\tbreathe\tair", row, "2\tc\td\te"]
    write_table(table, header, *rows)
    with pytest.raises(DataFormatError, match=r"line 3: .*expected label 1 and 4 fields"):
        load_labelled_set("english_wordnet", glosses)
