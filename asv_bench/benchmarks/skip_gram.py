"""Word vectors: counting words, a fit by gradient, questions, files; peak memory."""

from pathlib import Path

import numpy as np

from asv_bench.skip_gram.corpora import made_counts, write_made_text
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.decomposition.skip_gram import count_contexts, read_word2vec, write_word2vec

N_WORDS, N_TOKENS = 10_000, 1_000_000
TEXT = "made.txt"


class Counting:
    """Count 1,000,000 tokens, of 17,486 words, which the system holds in memory.

    For throughput more is better, which ``asv compare`` does not know; ``time_count`` is its twin.
    """

    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup_cache(self):
        # The benchmarks run in the folder in which this method runs.
        write_made_text(Path(TEXT), N_TOKENS, 20_000)

    def setup(self):
        self.sentences = [line.split() for line in Path(TEXT).read_text().splitlines()]
        count_contexts(self.sentences, min_count=100)  # compiled

    def time_count(self):
        count_contexts(self.sentences)

    def peakmem_count(self):
        count_contexts(self.sentences)


class Fit:
    """Two iterations on the counts of 10,000 words."""

    params = ("exact", "sampled", "mips", "decomp_mips")
    param_names = ("gradient",)
    rounds, repeat, number, warmup_time = 1, 3, 1, 0
    timeout = 300

    def setup_cache(self):
        return made_counts(N_WORDS)

    def setup(self, counts, gradient):
        self.model = DecompMIPSSkipGram(gradient=gradient, max_iter=2, random_state=0)
        self.model.fit(made_counts(300))  # compiled

    def time_fit(self, counts, gradient):
        self.model.fit(counts)

    def peakmem_fit(self, counts, gradient):
        self.model.fit(counts)

    def track_objective(self, counts, gradient):
        """The exact loss of a pair, in nats."""
        return self.model.fit(counts).objective(counts)

    track_objective.unit = "nats"


class Questions:
    """The 10 words nearest to each of 100, of 10,000 words, and as many analogies."""

    rounds, repeat, warmup_time = 1, 5, 0
    timeout = 300

    def setup_cache(self):
        return DecompMIPSSkipGram(max_iter=1, random_state=0).fit(made_counts(N_WORDS))

    def setup(self, model):
        self.words = model.words_[:300].reshape(3, 100)
        self.time_most_similar(model)
        self.time_analogy(model)

    def time_most_similar(self, model):
        model.most_similar(self.words[0], k=10)

    def time_analogy(self, model):
        model.analogy(*self.words)


class VectorFiles:
    """Write and read the vectors of 3,000 words in 100 dimensions, 1.2 MB in binary."""

    params = ("text", "binary", "text.gz")
    param_names = ("format",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, form):
        vectors = np.random.default_rng(0).standard_normal((3_000, 100)).astype(np.float32)
        self.words, self.vectors = [f"word{i}" for i in range(len(vectors))], vectors
        self.path = f"vectors.{form}"
        self.time_write(form)
        self.time_read(form)

    def time_write(self, form):
        write_word2vec(self.path, self.words, self.vectors, binary=form == "binary")

    def time_read(self, form):
        read_word2vec(self.path)
