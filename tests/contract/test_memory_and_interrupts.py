"""What every estimator refuses to hold in memory, and what Ctrl-C leaves of it."""

import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from entry import given
from fitted import Unchanged, assert_same_answers, assert_same_model, fitted_names
from registry import ENTRIES, having
from small_data import awkward, made

import sklearn_xc
from sklearn_xc._parallel import memory
from sklearn_xc.exceptions import MemoryBudgetError

X, Y = awkward()
PACKAGE = sklearn_xc.__path__[0]

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


@pytest.fixture(scope="module")
def many():
    """Return 20,040 instances: 800,000 bytes of scores of 5 labels."""
    return sp.vstack([X] * 334, format="csr")


@pytest.fixture
def small_machine(entry, monkeypatch):
    """Leave 100 bytes of memory from the time that it is called."""

    def take_memory():
        monkeypatch.setattr(memory, "available_bytes", lambda: 100)
        monkeypatch.setattr(memory, "_SMALL", 0)

    return take_memory


def name_of(entry):
    return entry.estimator.__name__


def peak_of(call):
    """Return the bytes that a call held at most."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


class TestFits:
    def test_the_largest_array_is_named(self, entry):
        for parameters, names in entry.memory:
            model = entry.make(**{"max_memory": 200, **given(parameters)})
            says = rf"needed and max_memory allows .*largest array is .*{names}.*\. [A-Z]"
            with pytest.raises(MemoryBudgetError, match=rf"^{name_of(entry)}: .*{says}"):
                model.fit(X, Y)
            assert not [n for n in fitted_names(model) if n[-1] == "_"]

    def test_a_machine_that_is_too_small(self, entry, small_machine):
        model = entry.make().fit(X, Y)
        before = Unchanged(model)
        small_machine()
        with pytest.raises(
            MemoryBudgetError, match=rf"^{name_of(entry)}: .*this machine has 100 bytes"
        ):
            model.fit(X, Y)
        before.check()

    def test_absurd_sizes_are_refused_before_anything_is_allocated(self, entry):
        """Two billion features, a million labels: X and Y themselves have some megabytes.

        A stack has numbers of labels beside those of its members, a wrapper beside its estimator's.
        """
        if entry.no_table is None:
            pytest.skip("marks the features that occur: two gigabytes")
        rows = np.arange(60)
        x = sp.csr_array((np.ones(60), (rows, rows // 30 * 2**30)), shape=(60, 2**31 - 2))
        y = sp.csr_array((np.ones(60, int), (rows, rows // 30 * 10**6)), shape=(60, 10**6 + 1))

        model = entry.make(**entry.no_table)

        def call():
            with pytest.raises(MemoryBudgetError, match="needed and this machine has"):
                model.fit(x, y)

        n_inside = len(getattr(model, "estimators", ())) or int(entry.has("estimator"))
        assert peak_of(call) < 50e6 * (1 + n_inside)

    @pytest.mark.parametrize("name", ["OvALinearXC", "SoftmaxUMax", "NGAMEEmbeddingXC"])
    def test_more_than_there_is_will_do(self, name):
        entry = ENTRIES[name]
        model = entry.make(max_memory="1000000000TB").fit(X, Y)
        assert_same_model(model, entry.make().fit(X, Y))


class TestAnswers:
    @pytest.mark.parametrize(
        "name", [name for name in having("max_memory") if not ENTRIES[name].reads_texts]
    )
    def test_dense_ones(self, name, many):
        """A top-k is made of pieces."""
        entry = ENTRIES[name]
        model = entry.make().fit(X, Y.toarray())
        whole = model.decision_function(many)
        asks = [model.decision_function, model.predict]
        if hasattr(model, "predict_proba"):
            asks += [model.predict_proba, model.predict_log_proba]
        model.set_params(max_memory="0.1MB")
        says = "max_memory allows.*(scores|probabilities).*20040 (instances )?x 5"
        for ask in asks:
            with pytest.raises(
                MemoryBudgetError, match=rf"^{name_of(entry)}: .*{says}.*predict_(proba_)?topk"
            ):
                ask(many)
            assert ask(many[:60]).shape == (60, 5)
        model.set_params(max_memory="1GB")
        np.testing.assert_array_equal(model.decision_function(many), whole)
        model.set_params(max_memory="0.5MB")
        labels, _ = model.predict_topk(many, 1)
        np.testing.assert_array_equal(labels[:, 0], whole.argmax(axis=1))

    @pytest.mark.parametrize("name", having("max_memory"))
    def test_top_ks(self, name, many):
        entry = ENTRIES[name]
        model = entry.make().fit(X, Y).set_params(max_memory=100_000)
        asks = [model.predict, model.decision_function, lambda x: model.predict_topk(x, 5)]
        asks += [lambda x, ask=ask: ask(model, x) for ask in entry.answers.values()]
        for ask in asks:
            with pytest.raises(
                MemoryBudgetError, match=rf"^{name_of(entry)}: .*max_memory allows .*20040"
            ):
                ask(many)


def at_call(number, act, call):
    """Return how often `call` entered a function of the package; on one of these `act`.

    No function is replaced, so that no private name is needed: it is what a signal handler does.
    """
    seen = 0

    def watch(frame, event, _):
        nonlocal seen
        code = frame.f_code
        # A generator that is thrown away, where errors are ignored, is no place of interest; nor is
        # what scikit-learn asks for when the fit is over, or sets between two of its own lines.
        is_ours = code.co_filename.startswith(PACKAGE) and code.co_name[0] != "<"
        if event == "call" and is_ours and code.co_name not in ("__getattr__", "__setattr__"):
            seen += 1
            if seen == number:
                sys.setprofile(None)
                act()

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def control_c():
    raise KeyboardInterrupt


class TestInterrupts:
    """At any function of the package that a call enters, early or late."""

    @pytest.mark.parametrize("is_warm", [False, True])
    def test_the_model_is_as_it_was(self, entry, is_warm):
        if is_warm and not entry.has("warm_start"):
            pytest.skip("no warm starts")
        own, (x, y) = {"warm_start": True} if is_warm else {}, made(5, 2)
        expected = entry.make(**own).fit(X, Y)
        number = at_call(0, control_c, lambda: expected.fit(x, y))
        model = entry.make(**own).fit(X, Y)
        before = Unchanged(model)
        for at in {1, *np.linspace(2, number, 4).astype(int).tolist()}:
            with pytest.raises(KeyboardInterrupt):
                at_call(at, control_c, lambda: model.fit(x, y))
            before.check()
        assert_same_model(model.fit(x, y), expected)
        assert_same_answers(model, expected, x, entry)

    def test_a_first_fit_leaves_nothing(self, entry):
        model = entry.make()
        entry.make().fit(X, Y)  # what is only done once is not counted, nor is the constructor
        other = entry.make()
        number = at_call(0, control_c, lambda: other.fit(X, Y))
        for at in {1, number // 2, number - 1}:
            with pytest.raises(KeyboardInterrupt):
                at_call(at, control_c, lambda: model.fit(X, Y))
            assert not [n for n in fitted_names(model) if n[-1] == "_"]

    def test_while_threads_work(self, entry, interrupt_main, monkeypatch):
        """By the first of them, unless there are none; the call is undone, or was done by then."""
        for name, value in entry.pieces.items():
            monkeypatch.setattr(name, value)
        expected = entry.make(n_jobs=2).fit(X, Y)
        model = entry.make(n_jobs=2).fit(*made(5, 2))
        before, sent, ended = Unchanged(model), threading.Event(), False

        def watch(frame, event, _):
            if frame.f_code.co_filename.startswith(PACKAGE) and not sent.is_set():
                sent.set()
                interrupt_main()

        threading.setprofile(watch)
        try:
            model.fit(X, Y)
            ended = True
            time.sleep(0.01)  # a signal that has come late
        except KeyboardInterrupt:
            pass
        finally:
            threading.setprofile(None)
        if not ended:
            assert sent.is_set()
            before.check()
            model.fit(X, Y)
        assert_same_model(model, expected)

    def test_of_an_answer(self, entry):
        model = entry.make().fit(X, Y)
        model.predict(X)
        expected = model.predict_topk(X, 5)
        for ask in (model.predict, model.predict_topk, model.decision_function):
            number = at_call(0, control_c, lambda ask=ask: ask(X))
            for at in {1, number // 2, number}:
                with pytest.raises(KeyboardInterrupt):
                    at_call(at, control_c, lambda ask=ask: ask(X))
        for a, b in zip(model.predict_topk(X, 5), expected, strict=True):
            np.testing.assert_array_equal(a, b)
