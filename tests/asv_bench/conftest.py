"""Made data under the names of real sets."""

import gzip
import lzma

import pytest

from sklearn_xc.datasets import dump_xmc_file, make_xc_classification


def write_table(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Return a folder with bibtex and delicious as bags of words, wordnet and yso as texts."""
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("bibtex", "delicious")):
        X, Y = make_xc_classification(300, 80, 12 + seed, nnz_per_row=10, random_state=seed)
        (folder / name).mkdir()
        dump_xmc_file(folder / name / f"{name}_train.txt.gz", 3 * X[:200], Y[:200])
        dump_xmc_file(folder / name / f"{name}_test.txt.gz", 3 * X[200:], Y[200:])
    words = ["ship", "bird", "table", "river", "house", "stone"]
    texts = [
        (f"{words[i % 6]} {words[(i // 6) % 6]} thing{i % 9}", sorted({i % 6, (i // 6) % 6}))
        for i in range(90)
    ]
    header = "synset\tmembers\tdefinition\tlabels"
    rows = [f"{i}\t{t}\ta thing\t{' '.join(map(str, y))}" for i, (t, y) in enumerate(texts)]
    wordnet = folder / "english_wordnet"
    write_table(wordnet / "hypernym_train.tsv.gz", header, *rows[:70])
    write_table(wordnet / "hypernym_test.tsv.gz", header, *rows[70:])
    labels = [f"{i}\t{word}\ta {word}" for i, word in enumerate([*words, "thing8"])]
    write_table(wordnet / "hypernym_labels.tsv.gz", "label\tname\tdefinition", *labels)
    yso = folder / "yso_finna_en"
    train = "sea and ships\t0 2\nsea birds\t1\nships at sea\t0\nbirds\t1\n"
    write_table(yso / "labels.tsv.gz", "label\tname", "0\tship", "1\tbird", "2\ttable\ts", "3\tno")
    (yso / "train.tsv.xz").write_bytes(lzma.compress(train.encode()))
    (yso / "test.tsv.xz").write_bytes(lzma.compress(b"birds at sea\t1 2\n\t0\nsky\t1\n"))
    return folder
