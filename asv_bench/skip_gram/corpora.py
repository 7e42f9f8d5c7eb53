"""Texts and judgements of people for the experiments with word vectors, and what is made up.

All is lower-cased. A sentence is a list of tokens.
"""

import gzip
import lzma
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Sentence = list[str]

#: Files of the corpora, in the folder that --data names.
_BROWN = "corpus/brown.zip"
_WIKITEXT = ("corpus/wikitext2_valid.txt.gz", "corpus/wikitext2_test.txt.gz")
_TITLES = "yso_finna_en/train.tsv.xz"
_GLOSSES = "english_wordnet/hypernym_train.tsv.gz"
_ANALOGIES = "wordsim/questions-words.txt.gz"
_SIMILARITIES = "wordsim/data/word-sim"

#: The thirteen sets of word pairs, each in EN-NAME.txt.
SIMILARITY_SETS = (
    "MC-30", "MEN-TR-3k", "MTurk-287", "MTurk-771", "RG-65", "RW-STANFORD", "SIMLEX-999",
    "SimVerb-3500", "VERB-143", "WS-353-ALL", "WS-353-REL", "WS-353-SIM", "YP-130",
)  # fmt: skip

_BROWN_TEXT = re.compile(r"brown/c[a-r]\d\d")
_TOKEN = re.compile(r"[a-z0-9']+")

#: Of made counts: the frequency of the word of rank r is as 1 / (r + this); words of a cluster; the
#: share of pairs whose words are of one cluster; pairs drawn for each word.
_FLATTENED, _WORDS_PER_CLUSTER, _OWN, _PAIRS_PER_WORD = 10, 100, 0.6, 300
#: Of a made text: tokens of a sentence, and tokens drawn at a time.
_SENTENCE, _DRAWN = 20, 1_000_000


class Judged(NamedTuple):
    """Pairs of words and how similar people find them.

    Attributes
    ----------
    a, b : list of str
        The words of each pair.
    scores : list of float
        In a unit of their own.
    """

    a: list[str]
    b: list[str]
    scores: list[float]


def read_corpus(name: str, data: Any) -> list[Sentence]:
    """Return the sentences of a corpus.

    Parameters
    ----------
    name : str
        A key of ``CORPORA``. brown_wikitext is the Brown corpus, without its tags, and the
        validation and test texts of WikiText-2, a paragraph as a sentence; yso_titles the titles of
        yso_finna_en; wordnet_glosses the words and definitions of english_wordnet.
    data : path-like
        Folder of the data sets.

    Raises
    ------
    FileNotFoundError
        If a file is not there; the message names it.
    ValueError
        For an unknown name.
    """
    if name not in CORPORA:
        raise ValueError(f"No corpus is called {name!r}, expected one of {', '.join(CORPORA)}.")
    return [sentence for sentence in CORPORA[name](data) if sentence]


def read_similarities(data: Any) -> dict[str, Judged]:
    """Return the judgements of people on pairs of words, by the name of the set."""
    sets = {}
    for name in SIMILARITY_SETS:
        lines = _find(data, f"{_SIMILARITIES}/EN-{name}.txt").read_text("utf-8").splitlines()
        rows = [line.lower().split() for line in lines if line.strip()]
        a, b, scores = zip(*(row[:3] for row in rows), strict=True)
        sets[name] = Judged(list(a), list(b), [float(score) for score in scores])
    return sets


def read_analogies(data: Any) -> list[Sentence]:
    """Return questions of four words: a is to b as c is to d."""
    with gzip.open(_find(data, _ANALOGIES), "rt", encoding="utf-8") as lines:
        return [line.lower().split() for line in lines if not line.startswith(":")]


def made_counts(n_words: int, seed: int = 0) -> Any:
    """Return counts of words with planted clusters, a csr_array of float32, symmetric.

    Words are as frequent as Zipf's law has it, but for the first ones. The first word of a pair is
    drawn by its frequency, and so is the other one, more often than not from the same cluster.

    Parameters
    ----------
    n_words : int
        Rows and columns.
    seed : int
        Of the draws.
    """
    rng = np.random.default_rng(seed)
    n_clusters = max(1, n_words // _WORDS_PER_CLUSTER)
    frequency = 1.0 / (np.arange(n_words) + _FLATTENED)
    cluster = rng.integers(0, n_clusters, n_words)
    ends = np.cumsum(frequency)
    n_pairs = _PAIRS_PER_WORD * n_words

    def drawn(n: int) -> np.ndarray:
        places = np.searchsorted(ends, ends[-1] * rng.random(n))
        return np.minimum(places, n_words - 1).astype(np.int32)

    first, other = drawn(n_pairs), drawn(n_pairs)
    is_own = np.flatnonzero(rng.random(n_pairs) < _OWN)
    # Words by cluster: a cluster is a piece of the line on which frequencies are laid end to end.
    by_cluster = np.argsort(cluster, kind="stable")
    bounds = np.searchsorted(cluster[by_cluster], np.arange(n_clusters + 1))
    line = np.concatenate(([0.0], np.cumsum(frequency[by_cluster])))
    own = cluster[first[is_own]]
    low, high = bounds[own], bounds[own + 1]
    at = line[low] + rng.random(len(own)) * (line[high] - line[low])
    place = np.clip(np.searchsorted(line, at, side="right") - 1, low, high - 1)
    other[is_own] = by_cluster[place]
    ones = np.ones(n_pairs, np.float32)
    counts = sp.coo_array((ones, (first, other)), shape=(n_words, n_words)).tocsr()
    return sp.csr_array(counts + counts.T)


def write_made_text(path: Path, n_tokens: int, n_words: int, seed: int = 0) -> None:
    """Write sentences of 20 words to a file, drawn by Zipf's law and nothing else."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(1.0 / np.arange(1, n_words + 1))
    names = np.array([f"w{rank}" for rank in range(n_words)], dtype=object)
    with path.open("w", encoding="utf-8") as file:
        for begin in range(0, n_tokens, _DRAWN):
            n = min(_DRAWN, n_tokens - begin)
            places = np.searchsorted(ends, ends[-1] * rng.random(n))
            words = names[np.minimum(places, n_words - 1)].tolist()
            for at in range(0, n, _SENTENCE):
                file.write(" ".join(words[at : at + _SENTENCE]) + "\n")


def write_text(path: Path, sentences: Iterable[Sentence]) -> None:
    """Write sentences to a file, one to a line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(" ".join(sentence) + "\n" for sentence in sentences)


def _brown_wikitext(data: Any) -> Iterator[Sentence]:
    paths = [_find(data, name) for name in (_BROWN, *_WIKITEXT)]
    with zipfile.ZipFile(paths[0]) as archive:
        for name in filter(_BROWN_TEXT.fullmatch, sorted(archive.namelist())):
            for line in archive.read(name).decode("latin1").splitlines():
                yield [tagged.rsplit("/", 1)[0].lower() for tagged in line.split()]
    for path in paths[1:]:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield line.lower().split()


def _yso_titles(data: Any) -> Iterator[Sentence]:
    with lzma.open(_find(data, _TITLES), "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield _TOKEN.findall(line.split("\t", 1)[0].lower())


def _wordnet_glosses(data: Any) -> Iterator[Sentence]:
    with gzip.open(_find(data, _GLOSSES), "rt", encoding="utf-8", newline="\n") as lines:
        header = next(lines).rstrip("\n").split("\t")
        members, definition = header.index("members"), header.index("definition")
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            yield _TOKEN.findall(f"{cells[members]} {cells[definition]}".lower())


def _find(data: Any, name: str) -> Path:
    if data is None:
        raise FileNotFoundError(f"{name} is needed in the folder that --data names, and --data is "
                                "missing.")  # fmt: skip
    path = Path(data, name)
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} is needed in the folder that --data names; there is no {path}."
        )
    return path


CORPORA: dict[str, Callable[[Any], Iterator[Sentence]]] = {
    "brown_wikitext": _brown_wikitext,
    "yso_titles": _yso_titles,
    "wordnet_glosses": _wordnet_glosses,
}
