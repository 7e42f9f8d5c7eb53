"""Make the embedded Tate files: ``python -m sklearn_xc.datasets.make_tate SRC_DIR [OUT_DIR]``.

``SRC_DIR`` holds three tables, extracted from ``artworks/**/*.json`` of
https://github.com/tategallery/collection: the works with at least one subject, and the leaves of
their subject trees.

* ``train.tsv.gz``, ``test.tsv.gz``: acno, title, artist, medium, classification, date, group,
  labels (numbers, separated by spaces). A work is in the test set if the MD5 of its accession
  number, as a whole number, is a multiple of 5.
* ``labels.tsv.gz``: label, tate_id, name, path.

The result is two files. One holds all works, since training and test texts compress well together,
with the subset as a first column; the other holds the id and the path of each label, whose name is
the end of its path.
"""

import hashlib
import sys
from pathlib import Path

from sklearn_xc._atomic_files import open_atomic
from sklearn_xc.datasets._files import open_source

DATA = Path(__file__).parent / "data"
WORK = ["acno", "title", "artist", "medium", "classification", "date", "group", "labels"]


def main(source: Path, out: Path) -> None:
    """Read the tables in `source`, check what the loader relies on, write the files to `out`."""
    works = []
    for subset in ("train", "test"):
        header, *rows = _read_table(source / f"{subset}.tsv.gz")
        assert header == WORK
        for row in rows:
            assert len(row) == len(header), row
            assert (int(hashlib.md5(row[0].encode()).hexdigest(), 16) % 5 == 0) == (
                subset == "test"
            ), row
            works.append([subset, *row])
    header, *labels = _read_table(source / "labels.tsv.gz")
    assert header == ["label", "tate_id", "name", "path"]
    for number, (label, _, name, path) in enumerate(labels):
        assert int(label) == number, label
        assert path.rsplit(" > ", 1)[1] == name, path
    _write_table(
        out / "tate_subjects.works.tsv.xz",
        [["subset", *WORK], *works],
    )
    _write_table(
        out / "tate_subjects.labels.tsv.xz",
        [["tate_id", "path"], *([tate_id, path] for _, tate_id, _, path in labels)],
    )


def _read_table(path: Path) -> list[list[str]]:
    with open_source(path) as source:
        return [line.decode().removesuffix("\n").split("\t") for line in source.stream]


def _write_table(path: Path, rows: list[list[str]]) -> None:
    with open_atomic(path) as stream:
        stream.write("".join("\t".join(row) + "\n" for row in rows).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else DATA)
