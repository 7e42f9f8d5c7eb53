"""Backends of Annif on the same documents: nDCG, F1@5, and time of training and suggesting.

All by Annif's own commands, each in a process of its own, whose CPU seconds in all threads the
system tells: ``train``; ``suggest`` for one document, which is what it takes to start
and load the model; and ``eval`` on all test documents with at most 10 suggestions each, its
start and the computation of the metrics included. ``--python`` names an interpreter that has
``annif[omikuji]``, numba and threadpoolctl, but not this package, which is taken from this
checkout.

Annif's analyzers cut texts into sentences by data of NLTK that Annif downloads. Where that is not
there, it is made from the training texts, by NLTK's own trainer.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from asv_bench.common.report import Report
from asv_bench.common.runs import CHECKOUT
from asv_bench.common.sets import SIZES, DataSet, load

SETS = ("tate", "yso_finna_en", "gutenberg_subjects", "english_wordnet", "cooking_stackexchange")
#: What a project says beyond its language, vocabulary, analyzer and ``min_df``.
PROJECTS: dict[str, dict[str, str]] = {
    "tfidf": {"backend": "tfidf"},
    "svc": {"backend": "svc"},
    "omikuji-parabel": {"backend": "omikuji"},
    "omikuji-bonsai": {
        "backend": "omikuji",
        "cluster_balanced": "False",
        "cluster_k": "100",
        "max_depth": "3",
    },
    "ova": {"backend": "sklearn_xc"},
    "ova-uncalibrated": {"backend": "sklearn_xc", "calibration": "none"},
    "softmax": {"backend": "sklearn_xc", "estimator": "ImplicitSoftmaxSGD"},
    "ngame": {"backend": "sklearn_xc", "estimator": "NGAMEEmbeddingXC"},
    "stacking": {"backend": "sklearn_xc", "estimator": "StackingXC"},
}
DEFAULT = ("tfidf", "omikuji-parabel", "omikuji-bonsai", "ova", "ova-uncalibrated")
METRICS = ("NDCG", "NDCG@5", "F1@5")
#: Documents of a first training that has the loops compiled.
_FEW = 200
_PUNKT = """
import sys
from pathlib import Path
import nltk.data
from nltk.tokenize.punkt import PunktTrainer, save_punkt_params
try:
    nltk.data.find("tokenizers/punkt_tab")
except LookupError:
    trainer = PunktTrainer()
    with open(sys.argv[1], encoding="utf-8") as file:
        trainer.train("\\n".join(line.split("\\t")[0] for line in file))
    folder = Path(sys.argv[2], "tokenizers", "punkt_tab")
    folder.mkdir(parents=True)
    save_punkt_params(trainer.get_params(), dir=str(folder / "english"))
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument(
        "--python",
        default=os.environ.get("SKLEARN_XC_ANNIF_PYTHON"),
        metavar="FILE",
        help="interpreter that has Annif ($SKLEARN_XC_ANNIF_PYTHON)",
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("tate",), help="data sets")
    parser.add_argument("--size", choices=SIZES, default="all", help="share of training rows (all)")
    parser.add_argument(
        "--projects",
        nargs="+",
        choices=PROJECTS,
        default=DEFAULT,
        help=f"({' '.join(DEFAULT)})",
    )
    parser.add_argument("--jobs", type=int, default=2, help="of annif train (2)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for a command (3600)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Train and evaluate projects; return a row for each set and project."""
    if options.python is None:
        raise FileNotFoundError(
            "--python FILE must be an interpreter that has Annif, numba and threadpoolctl, made "
            "by: python -m venv annif && annif/bin/pip install 'annif[omikuji]' numba threadpoolctl"
        )
    rows = []
    for name in options.sets:
        with tempfile.TemporaryDirectory() as folder:
            place = AnnifFolder(Path(folder), options.python, options.timeout)
            found = load(name, options.data, options.size, cache=options.cache)
            place.write(found, {project: PROJECTS[project] for project in options.projects})
            for project in options.projects:
                row = {"set": name, "rows": found.X_train.shape[0], "project": project}
                rows.append(row | _measure(place, project, options.jobs))
                print(rows[-1], file=sys.stderr, flush=True)
    report.table("Annif's backends", rows)
    return rows


def _measure(place: "AnnifFolder", project: str, jobs: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    try:
        if PROJECTS[project]["backend"] == "sklearn_xc":
            place.run("train", project, "train.tsv", "--docs-limit", str(_FEW))
        for name, arguments in {
            "train": ("train", project, "train.tsv", "--jobs", str(jobs)),
            "suggest": ("suggest", project, "one.txt"),
            "eval": (
                "eval",
                project,
                "test.tsv",
                "--limit",
                "10",
                "--metrics-file",
                "metrics.json",
                *(word for metric in METRICS for word in ("--metric", metric)),
            ),
        }.items():
            used = place.run(*arguments)
            row |= {f"{name}_{key}": value for key, value in used.items()}
        found = json.loads((place.folder / "metrics.json").read_text())
        row |= {metric: found[metric] for metric in METRICS}
        files = (place.folder / "data" / "projects" / project).rglob("*")
        row["model_mb"] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    except RuntimeError as error:
        row["error"] = str(error)
    return row


class AnnifFolder:
    """A folder in which commands of Annif run: documents, vocabulary, projects and their data.

    Parameters
    ----------
    folder : Path
        An empty one.
    python : str
        Interpreter that has Annif.
    timeout : float, default=600
        Seconds after which a command is ended.
    """

    def __init__(self, folder: Path, python: str, timeout: float = 600) -> None:
        self.folder, self.python, self._timeout = folder, python, timeout
        cache = Path(tempfile.gettempdir(), "sklearn_xc-numba-annif")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "NLTK_DATA": str(folder / "nltk"),
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONWARNINGS": "ignore",
        }

    def write(self, found: DataSet, projects: dict[str, dict[str, str]]) -> None:
        """Write documents, vocabulary and projects, and load the vocabulary."""
        train, test, labels = found.texts or ([], [""], [])
        for part, texts, Y in (("train", train, found.Y_train), ("test", test, found.Y_test)):
            self.write_documents(f"{part}.tsv", texts, np.split(Y.indices, Y.indptr[1:-1]))
        (self.folder / "one.txt").write_text(test[0])
        self.write_vocabulary(labels)
        self.write_projects(projects)
        self.write_punkt()
        self.run("load-vocab", "vocabulary", "vocabulary.csv")

    def write_punkt(self) -> None:
        """Make the data that analyzers need from the training texts, where there are none."""
        subprocess.run(
            [self.python, "-c", _PUNKT, "train.tsv", "nltk"],
            cwd=self.folder,
            env=self.environment,
            check=True,
        )

    def write_documents(self, name: str, texts: Sequence[str], labels: Sequence[Any]) -> None:
        """Write texts and the numbers of their labels as Annif's TSV."""
        with (self.folder / name).open("w", encoding="utf-8") as file:
            for text, numbers in zip(texts, labels, strict=True):
                uris = " ".join(f"<{uri_of(number)}>" for number in numbers)
                file.write(f"{' '.join(text.split())}\t{uris}\n")

    def write_vocabulary(self, label_texts: Sequence[str]) -> None:
        """Write the texts of all labels as Annif's CSV."""
        with (self.folder / "vocabulary.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["uri", "label_en"])
            for number, text in enumerate(label_texts):
                table.writerow([uri_of(number), " ".join(text.split()) or f"label {number}"])

    def write_projects(self, projects: dict[str, dict[str, str]]) -> None:
        """Write projects.cfg: what all have in common, and what each says beyond it."""
        common = {"language": "en", "vocab": "vocabulary", "analyzer": "simple", "min_df": "2"}
        lines = []
        for name, said in projects.items():
            lines.append(f"[{name}]")
            lines += [f"{key}={value}" for key, value in {**common, **said}.items()]
        (self.folder / "projects.cfg").write_text("\n".join(lines) + "\n")

    def run(self, *arguments: str) -> dict[str, float]:
        """Run a command of Annif, and return its CPU and wall seconds.

        Raises
        ------
        RuntimeError
            If it fails, or does not end in time; the message is its last line.
        """
        command = [self.python, "-m", "sklearn_xc.integrations.annif", *arguments]
        began = time.perf_counter()
        with (self.folder / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            alarm = threading.Timer(self._timeout, process.kill)
            alarm.start()
            try:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                alarm.cancel()
        wall = time.perf_counter() - began
        if process.returncode:
            log_text = self.output()
            reason = (log_text.strip().splitlines() or ["it printed nothing"])[-1]
            if wall >= self._timeout:
                reason = f"ended after {self._timeout:,g} s"
            raise RuntimeError(f"annif {arguments[0]}: {reason}")
        return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": wall}

    def output(self) -> str:
        """Return what the last command printed."""
        return (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")


def uri_of(number: int) -> str:
    """Return the URI of a label."""
    return f"http://example.org/{number}"
