"""Coverage-guided fuzzing: ``python tests/fuzz/fuzzing.py TARGET --runs 1000000``.

Needs ``pip install atheris``. A target is a file ``fuzz_TARGET.py`` with ``prepare(instrument)``,
which returns the function that is called with each input and raises an error for what must not be;
``corpus/TARGET.zip`` holds inputs to begin with. A crash, a hang (20 s) or more than 4 GiB ends the
run, with the input in a file that is named. At the end the corpus is the smallest that was found
to reach the same code; ``--keep`` writes it back. ``tests/fuzz/test_corpus.py`` tries each input of
it in every run of the tests, without atheris.
"""

import argparse
import importlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))
#: Of an input, in bytes; none in the corpus is longer.
LONGEST = 1024
_LIMITS = [f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=4096"]


def inputs_of(target):
    """Return the corpus of a target, by name."""
    with zipfile.ZipFile(HERE / "corpus" / f"{target}.zip") as file:
        return {name: file.read(name) for name in sorted(file.namelist())}


def keep(target, folder):
    """Make the files of a folder the corpus of a target."""
    with zipfile.ZipFile(
        HERE / "corpus" / f"{target}.zip", "w", zipfile.ZIP_DEFLATED, True, 9
    ) as file:
        for path in sorted(folder.iterdir()):
            file.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)


class Uninstrumented:
    """Stands in for atheris where nobody asks which branches are taken."""

    @staticmethod
    def instrument_func(function):
        """Return it."""
        return function


def child(target, arguments):
    """Fuzz in this process; libFuzzer ends it."""
    import atheris

    one = importlib.import_module(f"fuzz_{target}").prepare(atheris)
    atheris.Setup(arguments, one)
    atheris.Fuzz()


def run(target, arguments, log):
    """Run libFuzzer on a target in a process of its own; return what it said and its status."""
    itself = log.parent / "child"  # libFuzzer starts it anew, by its name
    itself.write_text(
        f'#!/bin/sh\nexec {sys.executable} {HERE}/fuzzing.py --child {target} "$0" "$@"\n'
    )
    itself.chmod(0o755)
    with open(log, "w") as stream:
        done = subprocess.run(
            [itself, *_LIMITS, *arguments], stdout=stream, stderr=subprocess.STDOUT, cwd=log.parent
        )
    return log.read_text(errors="replace"), done.returncode


def main():
    """Fuzz a target, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=0, help="at most so long; 0 for no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", action="store_true", help="try the corpus, without atheris")
    parser.add_argument("--keep", action="store_true", help="write the corpus back")
    given = parser.parse_args()
    if given.corpus:
        one = importlib.import_module(f"fuzz_{given.target}").prepare(Uninstrumented)
        for data in inputs_of(given.target).values():
            one(data)
        print(f"{given.target}: {len(inputs_of(given.target))} inputs")
        return
    place = Path(tempfile.mkdtemp(prefix=f"fuzz-{given.target}-"))
    found, least = place / "found", place / "least"
    found.mkdir()
    least.mkdir()
    for name, data in inputs_of(given.target).items():
        (found / name).write_bytes(data)
    start = time.perf_counter()
    options = [f"-runs={given.runs}", f"-seed={given.seed}", f"-max_total_time={given.seconds}"]
    options += ["-print_final_stats=1"]
    said, status = run(given.target, [*options, str(found)], place / "log")
    seconds = time.perf_counter() - start
    numbers = dict(re.findall(r"stat::(\w+):\s+(\d+)", said))
    print(
        f"{given.target}: {int(numbers.get('number_of_executed_units', 0)):,} inputs in "
        f"{seconds:,.0f} s, {numbers.get('peak_rss_mb')} MiB at most; "
        f"{'none failed' if status == 0 else f'failed with status {status}'}; see {place}"
    )
    if status:
        print(said[-3000:])
        raise SystemExit(status)
    run(given.target, ["-merge=1", str(least), str(found)], place / "merge.log")
    sizes = [path.stat().st_size for path in least.iterdir()]
    print(f"corpus: {len(sizes)} inputs, {sum(sizes):,} bytes")
    if given.keep:
        keep(given.target, least)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
    else:
        main()
