"""Models saved, opened, saved over and damaged, and fits that go on, in any order."""

import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from damage import damage_one
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sklearn_xc
from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, ThresholdTuner
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.linear import training
from sklearn_xc.parallel import blocks
from sklearn_xc.storage import array_files, folder, models
from sklearn_xc.storage.reports import problems_of_model

_rng = np.random.default_rng(0)
X = sp.csr_array(_rng.random((60, 20)) * (_rng.random((60, 20)) < 0.3), dtype=np.float32)
Y = sp.csr_array((_rng.random((60, 12)) < 0.2).astype(np.int8))
KINDS = {
    "ova": lambda: OvALinearXC(),
    "other": lambda: OvALinearXC(C=0.1),
    "softmax": lambda: ImplicitSoftmaxSGD(max_iter=3, learning_rate=0.3, random_state=0),
    "tuner": lambda: ThresholdTuner(OvALinearXC(), cv=0.3, random_state=0),
}
seeds = st.integers(0, 2**32 - 1)


@cache
def fitted(kind):
    return KINDS[kind]().fit(X, Y)


def answers(model):
    labels, scores = model.predict_topk(X[:10], 3)
    return labels.tobytes(), scores.tobytes()


@cache
def answers_of(kind):
    return answers(fitted(kind))


def checkpointed(place):
    return OvALinearXC(checkpoint_dir=place).fit(X, Y)


def all_bytes(model):
    coef = model.coef_
    arrays = [coef.data, coef.indices, coef.indptr, model.intercept_]
    report = model.fit_report_
    arrays += [values for name, values in sorted(report.items()) if name != "seconds"]
    return [array.tobytes() for array in arrays]


@cache
def undisturbed():
    return all_bytes(checkpointed(None))


class Interrupted(BaseException):
    """Ends a fit or a save."""


@contextmanager
def stopping(module, name, after):
    """Have a function raise Interrupted once it was called so often."""
    plain, n_calls = getattr(module, name), 0

    def counted(*args, **kwargs):
        nonlocal n_calls
        n_calls += 1
        if n_calls > after:
            raise Interrupted
        return plain(*args, **kwargs)

    setattr(module, name, counted)
    try:
        yield
    except Interrupted:
        pass
    finally:
        setattr(module, name, plain)


class LifeOfAModel(RuleBasedStateMachine):
    """What was saved last is what is opened, or an error says that it is damaged."""

    def __init__(self):
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.place, self.fits = self.top / "model", self.top / "fit"
        self.saved, self.files, self.opened = None, {}, []

    def teardown(self):
        shutil.rmtree(self.top)

    def files_now(self):
        found = self.place.iterdir() if self.place.exists() else ()
        return {path.name: path.read_bytes() for path in found}

    @property
    def is_whole(self):
        return self.files_now() == self.files

    @rule(kind=st.sampled_from(sorted(KINDS)))
    def save(self, kind):
        fitted(kind).save(self.place)
        self.saved, self.files = kind, self.files_now()
        assert problems_of_model(self.place) == []

    @rule(kind=st.sampled_from(sorted(KINDS)), after=st.integers(0, 30))
    def save_is_interrupted(self, kind, after):
        was_whole, before = self.is_whole, self.files_now()
        with stopping(folder, "write_array", after):
            fitted(kind).save(self.place)
            self.saved, self.files = kind, self.files_now()
            return
        if was_whole:
            assert self.files_now() == before

    @precondition(lambda self: self.saved)
    @rule(verify=st.booleans())
    def load(self, verify):
        try:
            model = sklearn_xc.load(self.place, verify=verify)
            assert answers(model) == answers_of(self.saved)
        except SavedModelError:
            assert not self.is_whole
        else:
            if self.is_whole:
                self.opened.append((model, self.saved))

    @precondition(lambda self: self.saved)
    @rule()
    def save_what_was_loaded(self):
        if self.is_whole:
            sklearn_xc.load(self.place).save(self.place)
            self.files = self.files_now()

    @precondition(lambda self: self.opened)
    @rule()
    def ask_what_is_open(self):
        """Models are saved over, not changed: those that are open stay as they were."""
        for model, kind in self.opened:
            assert answers(model) == answers_of(kind)

    @precondition(lambda self: self.saved)
    @rule(seed=seeds)
    def damage(self, seed):
        self.opened.clear()  # which is against the rules of open models
        if self.files_now():
            damage_one(self.place, np.random.default_rng(seed))

    @precondition(lambda self: self.saved)
    @rule()
    def verify(self):
        try:
            found = problems_of_model(self.place)
        except SavedModelError as error:
            found = [str(error)]
        missing = set(self.files) - set(self.files_now())
        changed = {n for n, data in self.files_now().items() if data != self.files.get(n)}
        assert bool(found) == bool(missing or changed)

    @rule(after=st.integers(0, 3))
    def fit_is_interrupted(self, after):
        with stopping(training, "solve_block", after):
            checkpointed(self.fits)

    @rule()
    def fit_goes_on(self):
        assert all_bytes(checkpointed(self.fits)) == undisturbed()

    @rule(seed=seeds)
    def parts_of_the_fit_are_damaged(self, seed):
        names = sorted(path.name for path in self.fits.glob("*.part"))
        if names:
            damage_one(self.fits, np.random.default_rng(seed), names)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("n_lives", "n_steps"), [(5, 10), pytest.param(200, 40, marks=pytest.mark.slow)]
)
def test_a_load_gives_what_was_saved_last_or_an_error(n_lives, n_steps, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_LANES", 4)
    monkeypatch.setattr(array_files, "CHUNK", 256)
    monkeypatch.setattr(array_files, "SMALL", 0)
    monkeypatch.setattr(models, "SMALL", 0)
    run_state_machine_as_test(
        LifeOfAModel,
        settings=settings(
            max_examples=n_lives, stateful_step_count=n_steps, deadline=None, derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
