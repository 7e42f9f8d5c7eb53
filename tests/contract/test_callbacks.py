"""Callbacks of scikit-learn (1.9 or later): the tasks and models that they see, and stopping."""

from collections import Counter

import numpy as np
import pytest
from fitted import Unchanged, assert_same_answers, assert_same_model
from registry import ENTRIES
from sklearn.base import clone
from small_data import awkward

from sklearn_xc.metrics import TopKScorer

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on", exc_type=ImportError
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]

X, Y = awkward()
#: Estimators that pass a model after each epoch, and can stop there.
by_epochs = pytest.mark.parametrize(
    "name", ["SoftmaxUMax", "ImplicitSoftmaxSGD", "DecompMIPSClassifier"]
)
every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


class Recorder:
    """Keeps the calls of its hooks, and the fitted estimators; reaches the estimators inside."""

    max_propagation_depth = None

    def __init__(self, stops_after=None, fails_at=None):
        self.calls, self.models = [], []
        self.stops_after, self.fails_at = stops_after, fails_at

    def _record(self, hook, context):
        self.calls.append((hook, context))
        if hook == self.fails_at:
            raise ZeroDivisionError("of the callback")

    def setup(self, estimator, context):
        self._record("setup", context)

    def teardown(self, estimator, context):
        self._record("teardown", context)

    def on_fit_task_begin(self, estimator, context):
        self._record("begin", context)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self._record("end", context)
        if fitted_estimator is not None:
            self.models.append((context.task_name, fitted_estimator))
        return context.task_name == self.stops_after

    @property
    def root(self):
        return self.calls[0][1]

    def check(self):
        """All tasks begin once, and end once, after their parts; as many as were announced."""
        hooks = [hook for hook, _ in self.calls]
        assert (hooks[0], hooks[-1]) == ("setup", "teardown")
        assert Counter(hooks)["setup"] == Counter(hooks)["teardown"] == 1
        begun, ended = ([c for name, c in self.calls if name == h] for h in ("begin", "end"))
        tasks = list(self.root)
        assert len(tasks) == len(begun) == len(ended)
        place = {id(task): at for at, task in enumerate(ended)}
        assert place.keys() == {id(task) for task in tasks} == {id(task) for task in begun}
        for task in tasks:
            parts = [part for part in tasks if part.parent is task]
            assert all(place[id(part)] < place[id(task)] for part in parts)
            if task.max_subtasks is not None and task.task_name != "choice of C":
                assert len(parts) == task.max_subtasks, (task, len(parts))


@every_entry
def test_a_fit_is_a_tree_of_tasks_and_unchanged(entry):
    recorder, silent = Recorder(), entry.make().fit(X, Y)
    model = entry.make().set_callbacks(recorder).fit(X, Y)
    recorder.check()
    assert recorder.root.max_subtasks != 0
    assert_same_model(model, silent)
    assert set(vars(model)) - set(vars(silent)) == {"_skl_callbacks"}
    task, last = recorder.models[-1]
    assert task == "fit"
    assert_same_answers(last, silent, X, entry)
    assert clone(model)._skl_callbacks == [recorder]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("NGAMEEmbeddingXC", {"validation_fraction": 0.3}),
        ("ImplicitSoftmaxSGD", {"learning_rate": "auto"}),
        ("SoftmaxUMax", {"early_stopping": True}),
        ("OvALinearXCCV", {"exhaustive": True}),
        ("StackingXC", {"n_jobs": 2}),
    ],
)
def test_other_ways_through_a_fit(name, parameters):
    recorder = Recorder()
    ENTRIES[name].make(**parameters).set_callbacks(recorder).fit(X, Y)
    recorder.check()


@by_epochs
def test_each_epoch_has_the_model_of_a_fit_that_ends_there(name):
    recorder, entry = Recorder(), ENTRIES[name]
    entry.make().set_callbacks(recorder).fit(X, Y)
    epochs = [model for task, model in recorder.models if task == "epoch"]
    assert len(epochs) == 3
    for n, model in enumerate(epochs, 1):
        assert_same_answers(model, entry.make(max_iter=n).fit(X, Y), X, entry)
        assert model.n_iter_ == len(model.fit_report_["loss"]) == n


@by_epochs
def test_a_score_after_each_epoch(name):
    monitor = callback.ScoringMonitor(scoring=TopKScorer(ks=(1, 3), metrics=("precision",)))
    weight = np.linspace(0.5, 2, 60)
    model = ENTRIES[name].make().set_callbacks(monitor).fit(X, Y, sample_weight=weight)
    rows = monitor.get_logs().data
    assert [row["task_name"] for row in rows] == ["fit"] + ["epoch"] * 3
    assert rows[0]["P@1"] == rows[-1]["P@1"] == model.score(X, Y, sample_weight=weight)


@by_epochs
@pytest.mark.parametrize("own", [{}, {"learning_rate": "auto"}], ids=str)
def test_training_stops_after_an_epoch(name, own, capsys):
    entry, recorder = ENTRIES[name], Recorder(stops_after="epoch")
    stopped = entry.make(verbose=1, **own).set_callbacks(recorder).fit(X, Y)
    assert stopped.n_iter_ == 1
    if not own:
        assert_same_answers(stopped, entry.make(max_iter=1).fit(X, Y), X, entry)
        assert "stopped here: a callback asked for it" in capsys.readouterr().out


@every_entry
def test_an_error_of_a_callback_leaves_the_estimator(entry):
    model = entry.make().fit(X, Y)
    recorder = Recorder(fails_at="end")
    model.set_callbacks(recorder)
    unchanged = Unchanged(model)
    del unchanged.values["_skl_callbacks"]  # which counts
    with pytest.raises(ZeroDivisionError, match="of the callback"):
        model.fit(X, Y)
    unchanged.check()
    assert recorder.calls[-1][0] == "teardown"
