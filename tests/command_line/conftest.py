"""Small tables and a model of them, and the command line called in this process."""

import csv
import json

import numpy as np
import pytest

from sklearn_xc.command_line import main

WORDS = {
    "soup": "broth ladle simmer stock",
    "bread": "dough yeast crust knead",
    "ale": "hops malt brew barrel",
    "cake": "sugar icing sponge tin",
}


def made_rows(n, seed=0):
    """Return rows with an id, a title, a text and one or two tags."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        names = rng.choice(list(WORDS), size=rng.integers(1, 3), replace=False).tolist()
        words = [word for name in names for word in rng.choice(WORDS[name].split(), 2)]
        title = f'No. {i}, "{rng.choice(["hot", "cold", "old"])}"'
        rows.append({"id": str(i), "title": title, "text": " ".join(words), "tags": names})
    return rows


def write_csv(path, rows):
    """Write rows as a table of text, and return its path as a text."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([";".join(c) if isinstance(c, list) else c for c in row.values()])
    return str(path)


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def run(capsys):
    """Return a function of arguments: the exit code, standard output and standard error."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def refused(run):
    """Return a function of arguments that end with code 2: the message."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        return err

    return call


@pytest.fixture(scope="session")
def made():
    """Return the function of a number and a seed that makes rows."""
    return made_rows


@pytest.fixture(scope="session")
def as_jsonl():
    """Return the function that writes rows as JSON lines."""
    return write_jsonl


@pytest.fixture(scope="session")
def train(tmp_path_factory):
    """Return the path of a table with labels."""
    return write_csv(tmp_path_factory.mktemp("train") / "train.csv", made_rows(120))


@pytest.fixture(scope="session")
def model(train):
    """Return the path of a model that was fitted on the text of `train`."""
    path = train.replace("train.csv", "tags.model")
    asked = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", "1", "--quiet"]
    assert main(["fit", train, *asked, "--out", path]) == 0
    return path


@pytest.fixture(scope="session")
def others(tmp_path_factory):
    """Return the path of a table with labels that the model has not seen."""
    return write_csv(tmp_path_factory.mktemp("others") / "others.csv", made_rows(40, seed=1))
