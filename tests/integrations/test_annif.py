"""The backend in Annif itself, by its commands and its server, in an environment of its own.

``SKLEARN_XC_ANNIF_PYTHON`` names an interpreter that has Annif, numba and threadpoolctl; without it
an environment is made, by pip.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from asv_bench.library.annif_backends import AnnifFolder, uri_of
from sklearn_xc import OvALinearXC, TextClassifierXC, TopKCalibrator
from sklearn_xc.datasets import load_tate_subjects

pytestmark = pytest.mark.slow

#: Every so many works of the Tate collection.
STEP = 80
#: A label of no document, of words that many documents have.
UNSEEN = "graphite on paper"
PROJECTS = {
    "ova": {"backend": "sklearn_xc", "analyzer": "", "set.C": "1"},
    "words": {"backend": "sklearn_xc", "calibration": "none"},
    "fixed": {"backend": "sklearn_xc", "calibration": "none"},
    "ngame": {"backend": "sklearn_xc", "estimator": "NGAMEEmbeddingXC", "calibration": "sigmoid"},
    "typo": {"backend": "sklearn_xc", "set.los": "logistic"},
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    if named := os.environ.get("SKLEARN_XC_ANNIF_PYTHON"):
        return named
    folder = tmp_path_factory.mktemp("annif") / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = folder / "bin" / "python"
    packages = ["annif", "numba", "threadpoolctl"]
    subprocess.run([made, "-m", "pip", "install", "-q", *packages], check=True)
    return str(made)


@pytest.fixture(scope="module")
def works():
    """Return texts and lists of label numbers of training and test, and the labels' names."""

    def part(subset):
        tate = load_tate_subjects(subset)
        rows = range(0, len(tate.data), STEP)
        return [tate.data[i] for i in rows], [tate.target[[i]].indices.tolist() for i in rows]

    names = list(load_tate_subjects("train").label_names)
    return part("train"), part("test"), [*names, UNSEEN]


@pytest.fixture(scope="module")
def place(python, works, tmp_path_factory):
    """Return a folder with trained projects."""
    place = AnnifFolder(tmp_path_factory.mktemp("projects"), python, timeout=1800)
    train, test, names = works
    place.write_documents("train.tsv", train[0], train[1])
    with (place.folder / "train.tsv").open("a") as file:
        file.write(f"a text without subjects\t\n \t<{uri_of(0)}>\n")
    place.write_documents("test.tsv", test[0], test[1])
    place.write_vocabulary(names)
    place.write_projects(PROJECTS)
    place.write_punkt()
    place.run("load-vocab", "vocabulary", "vocabulary.csv")
    for project in ("ova", "words", "fixed", "ngame"):
        place.run("train", project, "train.tsv", "--jobs", "1")
    return place


def suggestions(place, project, text, limit=10):
    """Return (URI, score) of each suggestion, as Annif prints them."""
    (place.folder / "text.txt").write_text(text)
    place.run("suggest", project, "text.txt", "--limit", str(limit))
    lines = [line.split("\t") for line in place.output().splitlines() if line.startswith("<")]
    return [(line[0].strip("<>"), float(line[-1])) for line in lines]


@pytest.fixture(scope="module")
def in_python(works):
    """Return what the project "ova" is, without Annif."""
    (texts, labels), _, _ = works
    model = TextClassifierXC(
        TfidfVectorizer(sublinear_tf=True, dtype=np.float32, min_df=2),
        TopKCalibrator(OvALinearXC(C=1.0), random_state=0),
    )
    return model.fit(texts, [[uri_of(number) for number in row] for row in labels])


@pytest.mark.filterwarnings("ignore")
def test_suggestions_are_those_of_the_python_interface(place, works, in_python):
    texts = works[1][0][:3]
    positions, chances = in_python.classifier_.predict_proba_topk(
        in_python.vectorizer_.transform(texts), 100
    )
    for row, text in enumerate(texts):
        expected = dict(zip(in_python.classes_[positions[row]], chances[row], strict=True))
        found = suggestions(place, "ova", text)
        assert len(found) == 10
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(scores, [expected[uri] for uri, _ in found], atol=2e-3)
        np.testing.assert_allclose(scores, np.sort(chances[row])[::-1][:10], atol=2e-3)


def test_a_subject_without_documents_is_found_by_its_label(place, works):
    uri = uri_of(len(works[2]) - 1)
    assert uri in dict(suggestions(place, "ngame", UNSEEN, limit=100))
    assert uri not in dict(suggestions(place, "ova", UNSEEN, limit=100))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("train", "typo", "train.tsv"),
            "Misconfigured project 'typo': set.los: OvALinearXC has no parameter 'los'. "
            "Did you mean 'loss'?",
        ),
        (("train", "ova", "--cached"), "train --cached: the backend keeps no training data"),
        (("train", "fixed", "train.tsv", "--docs-limit", "0"), "no document has both words"),
        (
            ("train", "fixed", "train.tsv", "-b", "sklearn_xc.min_df=9999"),
            "Operation failed backend 'sklearn_xc': ",
        ),
    ],
)
def test_what_cannot_be_is_an_error_of_annif(place, arguments, problem):
    with pytest.raises(RuntimeError) as caught:
        place.run(*arguments)
    assert "Error: " in str(caught.value)
    assert problem in place.output()
    assert "Traceback" not in place.output()


def test_hyperopt_finds_settings(place):
    place.run("hyperopt", "words", "train.tsv", "--trials", "2", "--metric", "NDCG")
    assert re.search(r"score 0\.\d+ with:\n---\nset\.C=\S+\nmin_df=[123]\n---", place.output())
    with pytest.raises(RuntimeError):
        place.run("hyperopt", "ngame", "train.tsv", "--trials", "1")
    assert "set.C: NGAMEEmbeddingXC has no parameter 'C'" in place.output()


def test_the_web_interface_says_the_same(place, works):
    text = works[1][0][0]
    expected = suggestions(place, "ova", text, limit=3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [
        place.python,
        "-m",
        "uvicorn",
        "--factory",
        "sklearn_xc.integrations.annif:create_app",
        "--port",
        port,
    ]
    server = subprocess.Popen(command, cwd=place.folder, env=place.environment)
    try:
        url = f"http://127.0.0.1:{port}/v1/projects/ova/suggest"
        data = urllib.parse.urlencode({"text": text, "limit": 3}).encode()
        for _ in range(120):
            try:
                with urllib.request.urlopen(url, data) as answer:
                    found = json.load(answer)["results"]
                break
            except urllib.error.URLError:
                assert server.poll() is None
                time.sleep(1)
        else:
            pytest.fail("the server did not answer within two minutes")
    finally:
        server.terminate()
        server.wait()
    assert [one["uri"] for one in found] == [uri for uri, _ in expected]
    assert [one["score"] for one in found] == pytest.approx([s for _, s in expected], abs=1e-4)


def test_a_vocabulary_in_another_order_leaves_the_suggestions(place, works):
    """Changes the vocabulary of the others: the last test."""
    text = works[1][0][0]
    before = suggestions(place, "ova", text)
    lines = (place.folder / "vocabulary.csv").read_text().splitlines()
    gone = before[0][0]
    kept = [line for line in lines[1:] if line.split(",")[0] != gone]
    (place.folder / "other.csv").write_text("\n".join([lines[0], *kept[::-1]]) + "\n")
    place.run("load-vocab", "vocabulary", "other.csv", "--force")
    after = suggestions(place, "ova", text)
    assert len(after) == 10
    assert after[:9] == before[1:]
