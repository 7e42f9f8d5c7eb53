"""Three sets made from Debian's list of packages, on which no default was chosen.

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

import numpy as np
import scipy.sparse as sp

from sklearn_xc import LabelBinarizerXC

#: The field of each set, and a function that splits its value into labels.
DEBIAN: dict[str, tuple[str, Callable[[str], list[str]]]] = {
    "debian_tags": ("Tag", lambda value: [tag for tag in re.split(r",\s*", value) if tag]),
    "debian_depends": (
        "Depends",
        lambda value: [re.split(r"[\s:|(]", part.strip())[0] for part in value.split(",")],
    ),
    "debian_maintainers": ("Maintainer", lambda value: [value.partition(" <")[0]]),
}
_PART = 9


def packages(path: Path) -> Iterator[dict[str, str]]:
    """Yield the fields of each package; continued lines are joined."""
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
) -> tuple[tuple[list[str], list[str], list[str]], sp.csr_array, sp.csr_array]:
    """Return training, test and label texts, and both parts' labels, of a key of ``DEBIAN``."""
    field, split = DEBIAN[name]
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
    of_train, of_test = ([texts[rows[i]] for i in part] for part in (train, test))
    names = [_words(str(label)) for label in binarizer.classes_]
    return (of_train, of_test, names), Y[train], Y[test]


def _words(name: str) -> str:
    return re.sub(r"[-_:.+]+", " ", name)
