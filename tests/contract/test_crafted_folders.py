"""Every array of every saved estimator replaced by what does not fit, with checksums that fit."""

import json
import os
import sys
import traceback
import warnings

import numpy as np
import pytest
from crafted import Crafted, spoilt
from fitted import answers
from registry import ENTRIES
from saved_models import MODELS, X, fitted
from test_saved_folders import NAMES, REFUSED, TEXTS

import sklearn_xc
from sklearn_xc import TextClassifierXC
from sklearn_xc.exceptions import SavedModelError

#: What other numbers in an array change, though nothing is wrong with them: a label that is more
#: frequent, say. Only what leads out of arrays is asked to be refused.
_OTHER_ANSWERS_TOO = {"past the end"}
#: Classes may be called anything, and predictions are what they are called.
_CLASSES = "classes_"
#: Weights are scaled by two to the power of any exponent; equal numbers of another dtype name the
#: same classes, and an estimator around predicts them as its inner one does.
_OTHER_VALUES = {("exponents", "below 0"), (_CLASSES, "other dtype")}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


def outcomes(path, crafted, place, ask, expected, kinds):
    """Write a line to `path` before and after each trial: a crash leaves one without an outcome."""
    with open(path, "w", buffering=1) as file:
        for number, (name, array) in enumerate(sorted(crafted.arrays.items())):
            made = spoilt(array)
            wanted = sorted(made) if kinds is None else sorted(made)[number % kinds :: kinds]
            for what in wanted:
                print(json.dumps([name, what]), file=file)
                crafted.write(place, {name: made[what]})
                try:
                    found = ask(sklearn_xc.load(place, verify=True))
                    same = found == expected
                    outcome = "same" if same else "other answers"
                except SavedModelError as error:
                    outcome = "refused" if str(error).startswith(str(place)) else str(error)
                except Exception:
                    outcome = traceback.format_exc()[-2000:]
                print(json.dumps(outcome), file=file)


def in_a_child(work, *args):
    """Run a function in a fork, and return how that ended."""
    child = os.fork()
    if not child:
        try:
            warnings.simplefilter("ignore")
            work(*args)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check(model, ask, tmp_path, kinds):
    model.save(tmp_path / "model")
    crafted, log = Crafted(tmp_path / "model"), tmp_path / "log"
    expected = ask(sklearn_xc.load(tmp_path / "model"))
    ended = in_a_child(outcomes, log, crafted, tmp_path / "crafted", ask, expected, kinds)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert ended == 0, (ended, lines[-1])
    trials = list(zip(lines[::2], lines[1::2], strict=True))
    assert len(trials) >= len(crafted.arrays) / 2
    assert sum(outcome == "refused" for _, outcome in trials) > len(trials) / 3
    wrong = [
        (trial, outcome)
        for trial, outcome in trials
        if outcome not in ("refused", "same")
        and not (outcome == "other answers" and may_differ(*trial))
    ]
    assert not wrong, f"{len(wrong)} of {len(trials)}:\n" + "\n".join(map(str, wrong[:20]))


def may_differ(name, what):
    is_value = what.rpartition(": ")[2] in _OTHER_ANSWERS_TOO or name.startswith(_CLASSES)
    return is_value or (name.rpartition(".")[2], what) in _OTHER_VALUES


def ask_rows(entry):
    def ask(model):
        with np.errstate(all="ignore"):
            return answers(model, X[:12], entry)

    return ask


DEFAULTS = [*sorted(set(ENTRIES) - REFUSED), "StackingXC own learner"]
FURTHER = sorted(set(MODELS) - REFUSED - set(DEFAULTS) - {"pipeline"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        *((name, 6) for name in DEFAULTS),
        *(pytest.param(name, None, marks=pytest.mark.slow) for name in DEFAULTS + FURTHER),
    ],
)
def test_what_does_not_fit_is_refused_or_changes_nothing(name, kinds, tmp_path):
    entry = ENTRIES.get(name.removesuffix(" own learner"))
    check(fitted(name), ask_rows(entry), tmp_path, kinds)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", [6, pytest.param(None, marks=pytest.mark.slow)])
def test_of_texts(kinds, tmp_path):
    def ask(model):
        labels, scores = model.predict_topk(TEXTS[:8])
        return labels.tobytes(), scores.tobytes(), model.predict(TEXTS[:8])

    check(TextClassifierXC().fit(TEXTS, NAMES), ask, tmp_path, kinds)
