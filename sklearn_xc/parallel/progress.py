"""What is printed for those who asked for `verbose`: one form for all estimators."""

import sys
import time


def say(name: str, text: str) -> None:
    """Print a line of an estimator."""
    print(f"[{name}] {text}", file=sys.stdout, flush=True)


class Progress:
    """Prints a line as parts of a training end, at most one a second, and always the last.

    Parameters
    ----------
    name : str
        Of the estimator.
    part : str
        What one part is, such as "epoch".
    n_parts : int
        How many there are, at most.
    """

    def __init__(self, name: str, part: str, n_parts: int) -> None:
        self._name, self._part, self._n_parts = name, part, n_parts
        self._began, self._shown = time.perf_counter(), -1.0

    def show(self, n_done: int, text: str) -> None:
        """Tell that `n_done` parts are done, and what is known of the last."""
        seconds = time.perf_counter() - self._began
        if seconds < self._shown + 1.0 and n_done < self._n_parts:
            return
        self._shown = seconds
        say(self._name, f"{self._part} {n_done} of {self._n_parts}: {text}, {seconds:.1f} s")
