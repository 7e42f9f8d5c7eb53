"""Files of data in the format of the Extreme Classification Repository."""

import gzip
from pathlib import Path
from time import perf_counter

from sklearn_xc.datasets import dump_xmc_file, load_xmc_file

from ._common import made_data, small_data

PLAIN, GZIP = "made.txt", "made.txt.gz"


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
