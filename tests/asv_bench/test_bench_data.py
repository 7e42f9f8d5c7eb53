import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.extmath import row_norms

import asv_bench.common.data as data_module
from asv_bench.common.data import cache_folder, load_set
from sklearn_xc.datasets import dump_xmc_file

PARTS = ("X_train", "Y_train", "X_test", "Y_test")
#: A generator of files; its arguments are those that the reference sets are made with.
GENERATOR = """
import sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["--n-labels"] == "4000" and given["--seed"] == "1"
for part, rows in (("train", ["0,2 0:3 1:4", "1 2:1"]), ("test", ["2 1:2"])):
    with open(f"{given['--out']}_{part}.txt", "w") as file:
        print(f"{len(rows)} 3 3", *rows, sep="\\n", file=file)
"""


@pytest.fixture
def titles(tmp_path):
    """Return a folder with a few titles and labels, the last label on none of them."""
    folder = tmp_path / "yso_finna_en"
    folder.mkdir()
    train = 'sea and "ships\t0 2\nsea birds\t1\nships at sea\t0\nbirds\t1\n'
    (folder / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
    (folder / "test.tsv.xz").write_bytes(lzma.compress(b"birds at sea\t1 2\n\t0\n"))
    names = "label\turi\tname\n0\tu0\tship\n1\tu1\tbird\n2\tu2\ttable\ts\n3\tu3\tunseen\n"
    (folder / "labels.tsv.gz").write_bytes(gzip.compress(names.encode()))
    return tmp_path


def write_table(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def check_unit_rows(split, dtype):
    for X in (split.X_train, split.X_test):
        assert X.dtype == dtype
        assert X.format == "csr"
        assert X.has_sorted_indices
        norms = row_norms(X)
        np.testing.assert_allclose(norms[norms > 0], 1.0, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_titles_have_words_of_two_training_texts(titles, dtype):
    split = load_set("yso_finna_en", titles, dtype=dtype)
    assert split.X_train.shape == (4, 3)  # birds, sea, ships; "and" and "at" stand in one text
    assert split.X_test.shape == (2, 3)
    np.testing.assert_array_equal(
        split.Y_train.toarray(), [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    )
    np.testing.assert_array_equal(split.Y_test.toarray(), [[0, 1, 1, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(split.X_test.toarray() > 0, [[True, True, False], [False] * 3])
    check_unit_rows(split, dtype)


def test_equal_label_sets_are_classes(titles):
    whole, split = (load_set(name, titles) for name in ("yso_finna_en", "yso_sets"))
    # {1} stands on the training rows 1 and 3; no test row has it alone.
    np.testing.assert_array_equal(split.Y_train.toarray(), [[1], [1]])
    np.testing.assert_array_equal(split.X_train.toarray(), whole.X_train.toarray()[[1, 3]])
    assert split.X_test.shape == (0, 3)
    assert split.Y_test.shape == (0, 1)


def test_rare_words_of_every_second_title(titles, monkeypatch):
    monkeypatch.setattr(data_module, "_MOST_TITLES", 2)
    whole, split = (load_set(name, titles) for name in ("yso_finna_en", "yso_rare"))
    # Rows 0 and 2, "sea and ships" and "ships at sea"; "birds" is in none of them.
    np.testing.assert_allclose(split.X_train.toarray(), whole.X_train.toarray()[::2, 1:])
    np.testing.assert_array_equal(split.Y_train.toarray(), whole.Y_train.toarray()[::2])
    np.testing.assert_array_equal(split.Y_test.toarray(), whole.Y_test.toarray())
    check_unit_rows(split, np.float32)


def test_words_of_the_first_quarter_of_titles(tmp_path):
    folder = tmp_path / "yso_finna_en"
    write_table(folder / "labels.tsv.gz", "label\tname", "0\ta", "1\tb")
    titles = ["sea and ships", "ships at sea", "birds", "birds at sea", "sea", "sea", "sky", "sky"]
    train = "".join(f"{text}\t1\n" for text in titles)
    (folder / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
    (folder / "test.tsv.xz").write_bytes(lzma.compress(b"birds\t0\nships\t1\n"))
    split = load_set("yso_quarter", tmp_path)
    # "sea" and "ships" are in both rows of the quarter; other words of the whole set are left out.
    assert split.X_train.shape == (2, 2)
    assert (split.X_train.toarray() > 0).all()
    np.testing.assert_array_equal(split.Y_train.toarray(), [[0, 1], [0, 1]])
    np.testing.assert_array_equal(split.X_test.toarray() > 0, [[False, False], [False, True]])
    check_unit_rows(split, np.float32)


def test_words_and_gloss_of_wordnet(tmp_path):
    header = "synset\tlexfile\tmembers\tdefinition\tlabels\tall_ancestor_labels"
    folder = tmp_path / "english_wordnet"
    rows = ["1\tverb\tgasp\tto breathe hard\t1\t0 1", "2\tverb\tpant\tbreathe hard\t1\t0 1"]
    write_table(folder / "hypernym_train.tsv.gz", header, *rows)
    write_table(folder / "hypernym_test.tsv.gz", header, "3\tverb\tpant hard\tverb\t0\t0")
    write_table(folder / "hypernym_labels.tsv.gz", "label\tsynset", "0\ta", "1\tb", "2\tc")
    split = load_set("english_wordnet", tmp_path)
    assert split.X_train.shape[1] == 2  # breathe and hard, not the lexfile "verb"
    np.testing.assert_array_equal(split.Y_train.toarray(), [[0, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(split.X_test.toarray(), [[0, 1]])


def test_title_and_author_of_books(tmp_path):
    header = "gutenberg_id\ttitle\tauthor\tlanguage\tlabels"
    folder = tmp_path / "gutenberg_subjects"
    write_table(folder / "train.tsv.gz", header, "1\tEmma\tAusten\ten\t0", "2\tLady\tAusten\ten\t1")
    write_table(folder / "test.tsv.gz", header, "3\tAusten\tEmma\ten\t1")
    write_table(folder / "labels.tsv.gz", "label\theading\tfrequency", "0\ta\t1", "1\tb\t1")
    split = load_set("gutenberg_subjects", tmp_path)
    np.testing.assert_array_equal(split.X_train.toarray(), [[1], [1]])  # "austen", not "en"
    assert split.Y_test.toarray().tolist() == [[0, 1]]


def test_citeulike_keeps_frequent_tags_and_splits_once(tmp_path):
    rng = np.random.default_rng(1)
    X = sp.random_array((40, 9), density=0.4, random_state=rng, format="csr")
    X.data = rng.integers(1, 5, X.nnz).astype(np.float64)
    Y = sp.csr_array(np.arange(40)[:, None] < [5, 4, 9, 30, 0])
    (tmp_path / "citeulike_t").mkdir()
    dump_xmc_file(tmp_path / "citeulike_t" / "citeulike_t_all.txt.gz", X, Y.astype(np.int8))
    split = load_set("citeulike_t", tmp_path)
    order = np.random.default_rng(0).permutation(40)
    weighting = TfidfTransformer().fit(X[order[:32]])
    np.testing.assert_array_equal(split.Y_train.toarray(), Y.toarray()[order[:32]][:, [0, 2, 3]])
    np.testing.assert_array_equal(split.Y_test.toarray(), Y.toarray()[order[32:]][:, [0, 2, 3]])
    expected = weighting.transform(X[order[32:]]).toarray()
    np.testing.assert_allclose(split.X_test.toarray(), expected, rtol=1e-6)
    check_unit_rows(split, np.float32)


def test_synthetic_set_comes_from_the_generator(tmp_path):
    (tmp_path / "synthetic").mkdir()
    (tmp_path / "synthetic" / "gen.py").write_text(GENERATOR)
    split = load_set("syn4k", tmp_path)
    np.testing.assert_allclose(split.X_train.toarray(), [[0.6, 0.8, 0], [0, 0, 1]], rtol=1e-6)
    assert split.Y_test.toarray().tolist() == [[0, 0, 1]]


def test_failing_generator_is_named_with_its_reason(tmp_path):
    (tmp_path / "synthetic").mkdir()
    (tmp_path / "synthetic" / "gen.py").write_text("raise SystemExit('out of ideas')")
    with pytest.raises(RuntimeError, match=r"syn4k: .*gen\.py failed: out of ideas"):
        load_set("syn4k", tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("syn4k", "synthetic/gen.py"),
        ("citeulike_t", "citeulike_t/citeulike_t_all.txt.gz"),
        ("yso_finna_en", "yso_finna_en/train.tsv.xz and yso_finna_en/test.tsv.xz"),
        ("english_wordnet", "english_wordnet/hypernym_train.tsv.gz"),
        ("gutenberg_subjects", "gutenberg_subjects/train.tsv.gz"),
    ],
)
def test_missing_files_are_named(name, file, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{name} needs {file}.*; --data is missing"):
        load_set(name, None)
    with pytest.raises(FileNotFoundError, match=f"{name} needs {file}.*; there is no "):
        load_set(name, tmp_path)


# Cache


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cached_set_is_the_same_without_its_files(titles, tmp_path, dtype):
    cache = tmp_path / "deep" / "cache"
    first = load_set("yso_finna_en", titles, cache=cache, dtype=dtype)
    for path in (titles / "yso_finna_en").iterdir():
        path.unlink()
    again = load_set("yso_finna_en", None, cache=cache, dtype=dtype)
    for part in PARTS:
        one, other = getattr(first, part), getattr(again, part)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    other_dtype = np.float64 if dtype == np.float32 else np.float32
    with pytest.raises(FileNotFoundError):
        load_set("yso_finna_en", titles, cache=cache, dtype=other_dtype)


def test_cache_holds_plain_scipy_files(titles, tmp_path):
    split = load_set("yso_finna_en", titles, cache=tmp_path)
    folder = cache_folder("yso_finna_en", tmp_path)
    assert {path.name for path in folder.iterdir()} == {f"{part}.npz" for part in PARTS}
    kept = sp.load_npz(folder / "X_train.npz")
    np.testing.assert_array_equal(kept.toarray(), split.X_train.toarray())


def test_unfinished_cache_leaves_nothing(titles, tmp_path, monkeypatch):
    written = []

    def fail_at_the_third(path, *arguments, **options):
        written.append(path)
        if len(written) == 3:
            raise OSError("disk full")
        path.touch()

    monkeypatch.setattr(sp, "save_npz", fail_at_the_third)
    cache = tmp_path / "cache"
    with pytest.raises(OSError, match="disk full"):
        load_set("yso_finna_en", titles, cache=cache)
    assert list(cache.iterdir()) == []
