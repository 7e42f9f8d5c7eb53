"""What a call takes of the machine. Imports the standard library alone: any interpreter runs it."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple


class Usage(NamedTuple):
    """What a call took.

    Attributes
    ----------
    cpu_s, wall_s : float
        Seconds; CPU in all threads of the process.
    before_bytes : int or None
        Resident when the call began: imports and data. None where the system does not tell.
    peak_bytes : int or None
        The most that was resident during the call.
    """

    cpu_s: float
    wall_s: float
    before_bytes: int | None
    peak_bytes: int | None


def watch(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Usage]:
    """Return what a call returns, and what it took.

    Notes
    -----
    On Linux the kernel's high-water mark of resident memory is set back before the call. Where
    that is refused the peak is that of the process so far; other systems do not tell.
    """
    _reset_peak()
    before = _peak_bytes()
    wall, cpu = perf_counter(), process_time()
    result = function(*arguments)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return result, Usage(cpu, wall, before, _peak_bytes())


def _reset_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    peaks = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else None
