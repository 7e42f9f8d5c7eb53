import gzip

import numpy as np
import pytest

from asv_bench.common.report import Report
from asv_bench.library import unfamiliar


def lines_of(prefix, n, seed):
    """Return n texts of words that begin with a prefix."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(3, 203)
    words = [f"{prefix}{at}" for at in range(200)]
    return [" ".join(rng.choice(words, 8, p=share / share.sum())) for _ in range(n)]


@pytest.fixture
def made_data(tmp_path, monkeypatch):
    """Return a folder with two small sets of texts in two languages."""
    monkeypatch.setattr(unfamiliar, "_N_COOKING", 250)
    folder = tmp_path / "cooking_stackexchange"
    folder.mkdir()
    text = "\n".join(f"__label__soup {line}" for line in lines_of("en", 400, 0))
    (folder / "cooking.stackexchange.txt").write_text(text + "\n")
    folder = tmp_path / "english_wordnet"
    folder.mkdir()
    tables = {"hypernym_labels": "label\tsynset\tname\tdefinition\n0\t1-n\tsoup\tfood\n"}
    for seed, name in enumerate(("hypernym_train", "hypernym_test")):
        rows = "".join(f"1-n\tnoun\tword\t{line}\t0\t0\n" for line in lines_of("de", 250, 1 + seed))
        tables[name] = f"synset\tlexfile\tmembers\tdefinition\tlabels\tall\n{rows}"
    for name, table in tables.items():
        with gzip.open(folder / f"{name}.tsv.gz", "wt") as file:
            file.write(table)
    return tmp_path


def test_alarms(made_data, capsys):
    unfamiliar.main(
        report=Report(), data=made_data, sets=["cooking_stackexchange", "english_wordnet"],
        sizes=[50], times=2, drawn=30,
    )  # fmt: skip
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {
        (line[0], " ".join(line[1:-3])): float(line[-1])
        for line in lines
        if line and line[0] in unfamiliar.SETS
    }
    expected = {
        (trained, shown): 0.0 if shown.startswith("its") else 100.0
        for trained, other in [unfamiliar.SETS[:3:2], unfamiliar.SETS[2::-2]]
        for shown in (
            "its own, in order", other, "labels of cooking_stackexchange",
            "labels of english_wordnet",
        )
    }  # fmt: skip
    assert found == expected
