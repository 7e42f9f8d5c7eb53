"""A corpus, made counts, and people's judgements of pairs of words, all lower-cased."""

import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.sets import find_files, read_lines

_BROWN = "corpus/brown.zip"
_WIKITEXT = ("corpus/wikitext2_valid.txt.gz", "corpus/wikitext2_test.txt.gz")
_ANALOGIES = "wordsim/questions-words.txt.gz"
_SIMILARITIES = "wordsim/data/word-sim"
SIMILARITY_SETS = (
    *("MC-30", "MEN-TR-3k", "MTurk-287", "MTurk-771", "RG-65", "RW-STANFORD", "SIMLEX-999"),
    *("SimVerb-3500", "VERB-143", "WS-353-ALL", "WS-353-REL", "WS-353-SIM", "YP-130"),
)
_BROWN_TEXT = re.compile(r"brown/c[a-r]\d\d")

#: Of made counts: the frequency of the word of rank r is as 1 / (r + this); words of a cluster; the
#: share of pairs whose words are of one cluster; pairs drawn for each word.
_FLATTENED, _WORDS_PER_CLUSTER, _OWN, _PAIRS_PER_WORD = 10, 100, 0.6, 300
#: Of a made text: tokens of a sentence, and tokens drawn at a time.
_SENTENCE, _DRAWN = 20, 1_000_000


def read_corpus(data: Any) -> list[list[str]]:
    """Return the Brown corpus without its tags and two texts of WikiText-2, as lists of tokens."""
    brown, *texts = find_files(data, _BROWN, *_WIKITEXT)
    sentences = []
    with zipfile.ZipFile(brown) as archive:
        for name in filter(_BROWN_TEXT.fullmatch, sorted(archive.namelist())):
            lines = archive.read(name).decode("latin1").lower().splitlines()
            sentences += [[tagged.rsplit("/", 1)[0] for tagged in line.split()] for line in lines]
    for path in texts:
        sentences += [line.lower().split() for line in read_lines(path)]
    return [sentence for sentence in sentences if sentence]


def read_similarities(data: Any) -> dict[str, list[tuple[str, str, float]]]:
    """Return pairs of words and how similar people find them, by the name of the set."""
    sets = {}
    for name in SIMILARITY_SETS:
        (path,) = find_files(data, f"{_SIMILARITIES}/EN-{name}.txt")
        rows = [line.lower().split() for line in read_lines(path) if line.strip()]
        sets[name] = [(a, b, float(score)) for a, b, score, *_ in rows]
    return sets


def read_analogies(data: Any) -> list[list[str]]:
    """Return questions of four words: a is to b as c is to d."""
    with gzip.open(find_files(data, _ANALOGIES)[0], "rt", encoding="utf-8") as lines:
        return [line.lower().split() for line in lines if not line.startswith(":")]


def made_counts(n_words: int, seed: int = 0) -> Any:
    """Return symmetric counts of words with planted clusters, a csr_array of float32.

    The first word of a pair is drawn by its frequency, nearly that of Zipf's law, and so is the
    other one, mostly from the same cluster.
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
