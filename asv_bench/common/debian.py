"""Three sets made from Debian's list of packages, on which nothing here was ever chosen.

The name and the one-line description of a package are its text; labels are its tags, the packages
that it depends on, or its maintainer, one class each. A ninth of the sources goes to the test, with
all of their packages: those of one source are too much alike to be on both sides. Labels are those
of at least two sources.

The file is ``Packages.xz`` of a release, such as ``dists/bookworm/main/binary-amd64/Packages.xz``
of a Debian mirror, in the folder ``debian`` of the data.
"""

import lzma
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.preprocessing import LabelBinarizerXC

#: Of each set the field, and how its value is split into labels.
SETS: dict[str, tuple[str, Callable[[str], list[str]]]] = {
    "debian_tags": ("Tag", lambda value: [tag for tag in re.split(r",\s*", value) if tag]),
    "debian_depends": (
        "Depends",
        lambda value: [re.split(r"[\s:|(]", part.strip())[0] for part in value.split(",")],
    ),
    "debian_maintainers": ("Maintainer", lambda value: [value.partition(" <")[0]]),
}
_PART = 9


def packages(path: Path) -> Iterator[dict[str, str]]:
    """Yield the fields of each package.

    Parameters
    ----------
    path : Path
        ``Packages.xz``.

    Yields
    ------
    dict of str
        Continued lines are joined.
    """
    fields: dict[str, str] = {}
    name = ""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line == "\n":
                yield fields
                fields = {}
            elif line[0] in " \t":
                fields[name] += line.rstrip("\n")
            else:
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
    if fields:
        yield fields


def read_debian(
    name: str, path: Path
) -> tuple[tuple[list[str], list[str]], sp.csr_array, sp.csr_array, list[str]]:
    """Read one of the sets.

    Parameters
    ----------
    name : str
        A key of ``SETS``.
    path : Path
        ``Packages.xz``.

    Returns
    -------
    texts : tuple of two lists of str
        Of training and test.
    Y_train, Y_test : csr_array of shape (n, n_labels)
        Labels.
    label_texts : list of str
        Names of the labels in words.
    """
    field, split = SETS[name]
    texts, sources, labels = [], [], []
    sources_of = defaultdict(set)
    for package in packages(path):
        if field not in package:
            continue
        source = package.get("Source", package["Package"]).split()[0]
        own = list(dict.fromkeys(split(package[field])))
        texts.append(f"{_words(package['Package'])} {package.get('Description', '')}")
        sources.append(source)
        labels.append(own)
        for label in own:
            sources_of[label].add(source)
    kept = [[label for label in own if len(sources_of[label]) > 1] for own in labels]
    rows = [i for i, own in enumerate(kept) if own]
    is_test = np.array([zlib.crc32(sources[i].encode()) % _PART == 0 for i in rows])
    binarizer = LabelBinarizerXC()
    Y = sp.csr_array(binarizer.fit_transform([kept[i] for i in rows]))
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    of_parts = [[texts[rows[i]] for i in part] for part in (train, test)]
    names = [_words(str(label)) for label in binarizer.classes_]
    return (of_parts[0], of_parts[1]), Y[train], Y[test], names


def _words(name: str) -> str:
    return re.sub(r"[-_:.+]+", " ", name)


def find_debian(data: Any) -> Path:
    """Return the path of the file, or raise an error that says what is missing."""
    path = Path(data or ".", "debian", "Packages.xz")
    if data is None or not path.is_file():
        raise FileNotFoundError(
            "The sets of Debian's packages need debian/Packages.xz, as a mirror has it in "
            "dists/bookworm/main/binary-amd64, in the folder that --data names"
            + ("; --data is missing." if data is None else f"; there is no {path}.")
        )
    return path
