"""Word vectors: counting words of a text, and an iteration by gradient; peak memory."""

from pathlib import Path

from asv_bench.skip_gram.corpora import made_counts, write_made_text
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.skip_gram import count_contexts

N_WORDS, N_TOKENS = 10_000, 1_000_000
TEXT = "made.txt"


class Counting:
    """Count 1,000,000 tokens, of 17,486 words, which the system holds in memory.

    For throughput more is better, which ``asv compare`` does not know; ``time_count`` is its twin.
    """

    params = ("file", "lists")
    param_names = ("source",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup_cache(self):
        # The benchmarks run in the folder in which this method runs.
        write_made_text(Path(TEXT), N_TOKENS, 20_000)

    def setup(self, source):
        self.sentences = TEXT
        if source == "lists":
            self.sentences = [line.split() for line in Path(TEXT).read_text().splitlines()]
        count_contexts(TEXT, min_count=100)
        count_contexts(self.sentences, min_count=100)  # compiled

    def time_count(self, source):
        count_contexts(self.sentences)

    def peakmem_count(self, source):
        count_contexts(self.sentences)


class Iteration:
    """An iteration on the counts of 10,000 words, after two others."""

    params = ("exact", "sampled", "mips", "decomp_mips")
    param_names = ("gradient",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0
    timeout = 300

    def setup_cache(self):
        return made_counts(N_WORDS)

    def setup(self, counts, gradient):
        model = DecompMIPSSkipGram(gradient=gradient, max_iter=2, random_state=0)
        self.model = model.fit(counts)  # compiled

    def time_partial_fit(self, counts, gradient):
        self.model.partial_fit(counts)

    def peakmem_partial_fit(self, counts, gradient):
        self.model.partial_fit(counts)

    def track_objective(self, counts, gradient):
        """The exact loss of a pair after five iterations, in nats."""
        for _ in range(3):
            self.model.partial_fit(counts)
        return self.model.objective(counts)

    track_objective.unit = "nats"
