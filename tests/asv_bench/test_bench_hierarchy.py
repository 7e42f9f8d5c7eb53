import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from asv_bench.library import hierarchy
from sklearn_xc import LabelHierarchy
from sklearn_xc.datasets import load_tate_subjects

#: Words, glosses and hypernyms; the first three are labels themselves.
ROWS = [
    ("a", "plant", "a living thing that grows", "3"),
    ("b", "tree", "a tall plant with a trunk", "0"),
    ("c", "moss", "a low plant on stones", "0 4"),
    *((f"w{n}", f"oak{n % 4}", "a tree with acorns and a trunk", "1") for n in range(30)),
    *((f"m{n}", f"peat{n % 4}", "a moss that grows on stones", "2") for n in range(30)),
]


@pytest.fixture(scope="module")
def made_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "english_wordnet"
    folder.mkdir()
    head = "synset\tlexfile\tmembers\tdefinition\tlabels\n"
    lines = [f"{synset}\tnoun\t{word}\t{gloss}\t{labels}\n" for synset, word, gloss, labels in ROWS]
    names = ["a", "b", "c", "d", "e"]
    for name, text in {
        "train": head + "".join(lines[:50]),
        "test": head + "".join(lines[50:]),
        "labels": "label\tsynset\tname\tdefinition\n"
        + "".join(f"{at}\t{name}\t{name}\tit is {name}\n" for at, name in enumerate(names)),
    }.items():
        with gzip.open(folder / f"hypernym_{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write(text)
    return folder.parent


@pytest.mark.filterwarnings("ignore")
def test_a_row_for_each_kind_of_answers(made_data, capsys):
    rows = hierarchy.main(made_data, sets=["english_wordnet"], size="all")
    assert [row["answers"] for row in rows] == [
        "plain", "plain, closed", "with ancestors", "with ancestors, closed"
    ]  # fmt: skip
    assert {row["nodes"] for row in rows} == {5}
    plain, closed, _, both = rows
    assert plain["inconsistent"] > closed["inconsistent"] == both["inconsistent"] == 0
    assert plain["hF1"] == pytest.approx(closed["hF1"])
    assert closed["named"] > plain["named"]
    assert closed["P@5"] >= plain["P@5"]
    printed = capsys.readouterr().out
    assert "hF1" in printed
    assert "with ancestors, closed" in printed


def test_hypernyms_are_edges(made_data):
    found = hierarchy.wordnet_hierarchy(made_data)
    assert found.names.tolist() == [0, 1, 2, 3, 4]
    assert np.argwhere(found.parents.toarray()).tolist() == [[0, 3], [1, 0], [2, 0], [2, 4]]


@pytest.mark.slow
def test_subjects_of_the_tate_are_leaves():
    found = hierarchy.tate_hierarchy()
    n_labels = len(load_tate_subjects("test").target_names)
    assert (found.ancestors.indices >= n_labels).all()
    assert found.roots.min() >= n_labels


@pytest.mark.filterwarnings("ignore")
def test_rare_labels_are_those_of_few_rows():
    X = sp.csr_array(np.repeat(np.eye(4), 15, axis=0))
    Y = sp.csr_array(np.repeat(np.eye(4, dtype=int), [15, 15, 15, 15], axis=0))
    tree = LabelHierarchy.from_parents([4, 4, 5, 5, -1, -1])
    few = np.r_[0:15, 15:30, 30:45, 45:48]
    rows = hierarchy.compare(X[few], Y[few], X, Y, tree)
    assert all(row["P@1"] == 100 for row in rows)
    assert rows[1]["hF1"] == pytest.approx(rows[0]["hF1"])
    assert [row["rare"] for row in rows] == [100] * 4
    none = hierarchy.compare(X[few], Y[few], X[:45], Y[:45], tree)
    assert [row["rare"] for row in none] == [0] * 4  # of label 3 alone
