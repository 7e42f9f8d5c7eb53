"""How far a long run is, on a terminal alone."""

import sys
import time

#: Seconds between two lines.
_EVERY_S = 0.5


class Progress:
    """One line on standard error, written anew twice a second; none where it is no terminal.

    Parameters
    ----------
    quiet : bool
        Whether to print nothing in any case.
    """

    def __init__(self, quiet: bool) -> None:
        self._shows = not quiet and sys.stderr.isatty()
        self._began, self._shown, self._width = time.perf_counter(), 0.0, 0

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    def show(self, n_done: int, share: float | None) -> None:
        """Tell that `n_done` rows are done, which are a `share` of all where that is known."""
        seconds = self.seconds
        if not self._shows or seconds < self._shown + _EVERY_S:
            return
        self._shown = seconds
        text = f"{n_done:,} rows, {n_done / seconds:,.0f} rows/s"
        if share:
            text += f", {share:.0%}, {_as_time(seconds * (1 - share) / share)} left"
        self._write(text)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        if self._shows and self._width:
            self._write("")
            sys.stderr.write("\r")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _as_time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
