"""Files of data: the Extreme Classification Repository's format, and texts with labels."""

import gzip
from pathlib import Path
from time import perf_counter

from sklearn_xc.datasets import dump_xmc_file, load_text_dataset, load_xmc_file

from ._common import made_data, small_data, tate_texts

PLAIN, GZIP = "made.txt", "made.txt.gz"
FORMATS = ("tsv", "fasttext")


class Reader:
    """Read a file of 10,000 rows, 8 MB of text, that the system holds in memory.

    For throughput more is better, which ``asv compare`` does not know; ``time_load`` is its twin.
    """

    params = (PLAIN, GZIP)
    param_names = ("file",)

    def setup_cache(self):
        # The benchmarks run in the folder in which this method runs.
        dump_xmc_file(PLAIN, *made_data())
        text = Path(PLAIN).read_bytes()
        Path(GZIP).write_bytes(gzip.compress(text, compresslevel=6))
        return len(text)

    def setup(self, n_bytes, file):
        load_xmc_file(file)

    def time_load(self, n_bytes, file):
        load_xmc_file(file)

    def track_throughput(self, n_bytes, file):
        """Megabytes of text, not of the compressed file, per second: the best of five."""
        seconds = []
        for _ in range(5):
            began = perf_counter()
            load_xmc_file(file)
            seconds.append(perf_counter() - began)
        return n_bytes / 1e6 / min(seconds)

    track_throughput.unit = "MB/s"


class Writer:
    """Write 2,000 rows, 1.6 MB of text."""

    params = (PLAIN, GZIP)
    param_names = ("file",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, file):
        self.data = [matrix[:2_000] for matrix in small_data()]
        self.time_dump(file)

    def time_dump(self, file):
        dump_xmc_file(file, *self.data)


class Texts:
    """Read the texts and subjects of 20,000 works of the Tate collection."""

    params = FORMATS
    param_names = ("format",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup_cache(self):
        texts, Y, _ = tate_texts(20_000)
        lines = {name: [] for name in FORMATS}
        for row, text in enumerate(texts):
            labels = [str(label) for label in Y[[row]].indices]
            words = " ".join(text.split())
            lines["tsv"].append(f"{row}\t{words}\t{' '.join(labels)}\n")
            lines["fasttext"].append(" ".join([*(f"__label__{n}" for n in labels), words]) + "\n")
        lines["tsv"].insert(0, "id\ttext\tlabels\n")
        for name in FORMATS:
            Path(name).write_text("".join(lines[name]), encoding="utf-8", newline="\n")

    def setup(self, form):
        self.time_load(form)

    def time_load(self, form):
        load_text_dataset(form, format=form)
