"""Word vectors: counting words, a fit by gradient; peak memory."""

from pathlib import Path

from asv_bench.skip_gram.corpora import made_counts, write_made_text
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.decomposition.skip_gram import count_contexts

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
