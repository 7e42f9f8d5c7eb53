"""Coverage-guided fuzzing: ``python tests/fuzz/fuzzing.py TARGET --runs 1000000``.

Needs ``pip install atheris``. A target is a file ``fuzz_TARGET.py`` with ``prepare(instrument)``,
which returns the function that is called with each input and raises an error for what must not be;
``corpus/TARGET.zip`` holds inputs to begin with. A crash, a hang (20 s) or more than 4 GiB ends the
run, with the input in a file that is named. At the end the corpus is the smallest that was found
to reach the same code; ``--keep`` writes it back. ``tests/fuzz/test_corpus.py`` tries each input of
it in every run of the tests, without atheris.
"""

import argparse
import faulthandler
import importlib
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))
#: Is a word of the texts that models are asked about: no file of this name may be opened.
TEXT = "soup broth ladle"
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


class Lightly:
    """Asks which branches are taken of some functions only: inputs are tried faster.

    What is found is what the corpus leads to: first let it grow without this. All of it is kept,
    as few inputs reach another branch of so few functions.
    """

    options = ("-keep_seed=1", "-reduce_inputs=0", "-len_control=0")

    names = ("load_model", "open_arrays", "make", "model", "check_record", "load_xmc_file")

    @classmethod
    def instrument_func(cls, function):
        """Return it, instrumented if it is one of few."""
        import atheris

        return atheris.instrument_func(function) if function.__name__ in cls.names else function


def child(target, arguments):
    """Fuzz in this process; libFuzzer ends it."""
    import atheris

    is_light = arguments.pop(-1) == "light"
    one = importlib.import_module(f"fuzz_{target}").prepare(Lightly if is_light else atheris)
    atheris.Setup(arguments, one)
    atheris.Fuzz()


def run(target, arguments, log, how="thorough"):
    """Run libFuzzer on a target in a process of its own; return what it said and its status."""
    itself = log.parent / "child"  # libFuzzer starts it anew, by its name
    itself.write_text(
        f'#!/bin/sh\nexec {sys.executable} {HERE}/fuzzing.py --child {target} "$0" "$@" {how}\n'
    )
    itself.chmod(0o755)
    with open(log, "w") as stream:
        done = subprocess.run(
            [itself, *_LIMITS, *arguments], stdout=stream, stderr=subprocess.STDOUT, cwd=log.parent
        )
    return log.read_text(errors="replace"), done.returncode


def mutations(n, seed, kinds):
    """Try random inputs of `load`, all in files; print what was found as JSON.

    An input that takes more than 30 s ends the process.
    """
    import numpy as np

    forbidden = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect"}
    ran = []

    def watch(event, arguments):
        if event in forbidden or (event == "open" and TEXT in str(arguments[0])):
            ran.append(f"{event}: {arguments}")

    import fuzz_load

    rng = np.random.default_rng(seed)
    one = fuzz_load.prepare(Uninstrumented, in_files=kinds)
    sys.addaudithook(watch)
    ended, failed = Counter(), []
    for number in range(n):
        data = rng.bytes(rng.integers(6, 20))
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            ended[one(data)] += 1
        except Exception:
            failed.append((number, traceback.format_exc()[-3000:]))
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"ended": ended, "failed": failed, "ran": ran}))


def main():
    """Fuzz a target, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=0, help="at most so long; 0 for no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--light", action="store_true", help="faster, with less guidance")
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
    options += ["-print_final_stats=1", *(Lightly.options if given.light else ())]
    how = "light" if given.light else "thorough"
    said, status = run(given.target, [*options, str(found)], place / "log", how)
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
    elif sys.argv[1:2] == ["--mutations"]:
        mutations(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        main()
