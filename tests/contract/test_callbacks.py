"""Callbacks of scikit-learn (1.9 or later): what they are told, and what they may change."""

import pickle
from collections import Counter

import numpy as np
import pytest
from fitted import Unchanged, assert_same_answers, assert_same_model, plain
from registry import ENTRIES
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_data import awkward

from sklearn_xc import OvALinearXC, TextClassifierXC, ThresholdTuner
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.softmax import training

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on", exc_type=ImportError
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]

X, Y = awkward()
#: Estimators whose epochs can be looked at, and ended, one by one.
BY_EPOCHS = [
    "SoftmaxUMax", "ImplicitSoftmaxSGD", "DecompMIPSClassifier",
    "DecompMIPSClassifier without layer",
]  # fmt: skip


class Recorder:
    """Keeps what it is told: names of hooks, and tasks."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append(("setup", context, estimator))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context, estimator))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context, estimator))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context, estimator))

    def named(self, hook):
        return [context for name, context, _ in self.told if name == hook]

    @property
    def root(self):
        return self.told[0][1]


class Propagated(Recorder):
    """One that reaches the estimators inside."""

    max_propagation_depth = None


class Models(Recorder):
    """Keeps the fitted estimators, with the names of their tasks."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if fitted_estimator is not None:
            self.found.append((context.task_name, fitted_estimator))


class Stopping(Recorder):
    """Asks for an end after every task, or those of a name."""

    def __init__(self, name=None):
        super().__init__()
        self.name = name

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        return self.name in (None, context.task_name)


class Failing(Recorder):
    """Raises an error at the k-th call of some hook."""

    def __init__(self, hook, at):
        super().__init__()
        self.hook, self.at = hook, at

    def _fail(self, hook):
        if hook == self.hook:
            self.at -= 1
            if self.at < 0:
                raise ZeroDivisionError("of the callback")

    def setup(self, estimator, context):
        self._fail("setup")

    def teardown(self, estimator, context):
        self._fail("teardown")

    def on_fit_task_begin(self, estimator, context):
        self._fail("begin")

    def on_fit_task_end(self, estimator, context):
        self._fail("end")


@pytest.fixture(scope="module", params=ENTRIES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def entry(name):
    return ENTRIES[name]


@pytest.fixture(scope="module")
def silent(entry):
    """Return a model that was fitted without callbacks, which no test may change."""
    return entry.make().fit(X, Y)


@pytest.fixture(scope="module")
def watched(entry):
    """Return a model that was fitted with a callback, and the callback."""
    recorder = Propagated()
    return entry.make().set_callbacks(recorder).fit(X, Y), recorder


def assert_told_well(recorder):
    """Look at the tree of tasks: all begin once and end once, after their parts; none is left."""
    hooks = [hook for hook, _, _ in recorder.told]
    assert hooks[0] == "setup"
    assert hooks[-1] == "teardown"
    assert Counter(hooks)["setup"] == Counter(hooks)["teardown"] == 1
    begun, ended = recorder.named("begin"), recorder.named("end")
    tasks = list(recorder.root)
    assert len(tasks) == len(begun) == len(ended)
    assert {*map(id, tasks)} == {*map(id, begun)} == {*map(id, ended)}
    place = {id(task): at for at, task in enumerate(ended)}
    for task in tasks:
        parts = [part for part in tasks if part.parent is task]
        assert all(place[id(part)] < place[id(task)] for part in parts)
        if task.max_subtasks is not None and task.task_name != "choice of C":  # a race ends early
            assert len(parts) == task.max_subtasks, (task, len(parts))


class TestWhatIsTold:
    def test_tasks_begin_and_end(self, watched):
        assert_told_well(watched[1])

    def test_there_are_parts(self, watched):
        assert watched[1].root.max_subtasks != 0

    def test_the_model_is_the_same_to_the_bit(self, watched, silent, entry):
        assert_same_model(watched[0], silent)
        assert_same_answers(watched[0], silent, X, entry)

    def test_nothing_of_it_stays(self, watched, silent):
        assert set(vars(watched[0])) - set(vars(silent)) == {"_skl_callbacks"}

    def test_the_estimator_it_is_told_of_is_not_that_of_others(self, watched):
        """It works on a copy: what has begun is not seen by who predicts meanwhile."""
        model, recorder = watched
        assert all(estimator is not model for _, _, estimator in recorder.told)

    def test_side_by_side(self, entry, watched):
        """As many tasks, and the same model, in threads."""
        recorder = Propagated()
        model = entry.make(n_jobs=2).set_callbacks(recorder).fit(X, Y)
        assert_told_well(recorder)
        names, expected = (Counter(map(str, one.root)) for one in (recorder, watched[1]))
        assert names == expected
        assert_same_model(model, watched[0])

    def test_a_second_fit(self, entry, silent):
        recorder = Propagated()
        model = entry.make().set_callbacks(recorder).fit(X, Y)
        n_told = len(recorder.told)
        model.fit(X, Y)
        assert len(recorder.told) == 2 * n_told
        assert_same_model(model, silent)

    def test_partial_fits_are_no_fits(self, entry):
        recorder, model = Recorder(), entry.make()
        if hasattr(model, "partial_fit"):
            model.set_callbacks(recorder).partial_fit(X, Y).partial_fit(X, Y)
            assert recorder.told == []


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("NGAMEEmbeddingXC", {"n_shards": 3, "classifier_max_iter": 2, "n_jobs": 2}),
        ("NGAMEEmbeddingXC", {"validation_fraction": 0.3}),
        ("NGAMEEmbeddingXC", {"validation_fraction": 0.0, "max_iter": 0}),
        ("ImplicitSoftmaxSGD", {"learning_rate": "auto"}),
        ("SoftmaxUMax", {"early_stopping": True, "n_iter_no_change": 2}),
        ("DecompMIPSClassifier", {"early_stopping": True}),
        ("OvALinearXCCV", {"exhaustive": True}),
        ("StackingXC", {"cv": "prefit"}),
        ("ThresholdTuner", {"cv": "prefit"}),
    ],
)
def test_other_ways_through_a_fit(name, parameters):
    entry, recorder = ENTRIES[name], Propagated()
    model = entry.make(**parameters)
    if parameters.get("cv") == "prefit" and hasattr(model, "estimator"):
        model.estimator.fit(X, Y)
    elif parameters.get("cv") == "prefit":
        for _, member in model.estimators:
            member.fit(X, Y)
    model.set_callbacks(recorder).fit(X, Y)
    assert_told_well(recorder)


class TestFurtherAttempts:
    """Of a softmax fit that comes to no good, where its trial had."""

    def watched(self):
        recorder = Stopping("search")
        model = ENTRIES["SoftmaxUMax"].make(learning_rate="auto", early_stopping=True)
        model.set_callbacks(recorder).fit(X, Y)
        assert_told_well(recorder)
        return [task.task_name for task in recorder.root if task.parent is recorder.root]

    def test_worse_than_in_the_trial(self, monkeypatch):
        answers = iter([True, True, False])
        monkeypatch.setattr(
            "sklearn_xc.softmax.classifier.went_astray", lambda *args: next(answers)
        )
        assert self.watched() == ["search", "training"] * 3

    def test_diverged(self, monkeypatch):
        """The second epoch of all data does: its task and the stage end before the next attempt."""
        n_calls, run_epoch = 0, training.run_epoch

        def diverging(problem, *args):
            nonlocal n_calls
            n_calls += problem.n_pairs == int(Y.sum())
            if n_calls == 2:
                raise FloatingPointError("the weights are no longer finite")
            return run_epoch(problem, *args)

        monkeypatch.setattr(training, "run_epoch", diverging)
        model = ENTRIES["SoftmaxUMax"].make(
            learning_rate="auto", early_stopping=True, multilabel="all"
        )
        recorder = Recorder()
        model.set_callbacks(recorder).fit(X, Y)
        begun, ended = recorder.named("begin"), recorder.named("end")
        assert {*map(id, begun)} == {*map(id, ended)}
        assert len(begun) == len(ended)


@pytest.mark.parametrize("init", ["msi", "ovap++"])
def test_blocks_are_as_many_as_workers_at_a_time(init, monkeypatch):
    """Also where they wait for each other."""
    if init == "ovap++":
        for name in ("MAX_LANES", "MAX_BLOCK_LABELS"):
            monkeypatch.setattr(f"sklearn_xc.parallel.blocks.{name}", 8)
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 4)), (rng.random((30, 400)) < 0.3).astype(int)
    y[:, :40] = np.arange(30)[:, None] < np.arange(3, 43) / 2  # a label within the next
    for n_jobs in (1, 2):
        recorder, open_now, most = Recorder(), 0, 0
        model = OvALinearXC(prune=0, init=init, n_jobs=n_jobs)
        model.set_callbacks(recorder).fit(x, y)
        assert recorder.root.max_subtasks > 2
        for hook, context, _ in recorder.told:
            if context.task_name == "label block":
                open_now += {"begin": 1, "end": -1}[hook]
                most = max(most, open_now)
        assert most == n_jobs
        assert open_now == 0


class TestModels:
    def test_the_whole_fit_ends_with_the_model(self, entry, silent):
        models = Models()
        entry.make().set_callbacks(models).fit(X, Y)
        task, model = models.found[-1]
        assert task == "fit"
        assert_same_answers(model, silent, X, entry)

    @pytest.mark.parametrize("name", BY_EPOCHS)
    @pytest.mark.parametrize("average", [False, True])
    def test_each_epoch_has_the_model_of_a_fit_that_ends_there(self, name, average):
        models, entry = Models(), ENTRIES[name]
        of_fit = {"average": average, "decay": 0.9}
        fitted = entry.make(**of_fit).set_callbacks(models).fit(X, Y)
        epochs = [model for task, model in models.found if task == "epoch"]
        assert len(epochs) == fitted.n_iter_ == 3
        for n, model in enumerate(epochs, 1):  # looked at when all is over
            short = entry.make(**of_fit, max_iter=n).fit(X, Y)
            assert_same_answers(model, short, X, entry)
            assert model.n_iter_ == n
            assert len(model.fit_report_["loss"]) == n

    @pytest.mark.parametrize("name", BY_EPOCHS)
    def test_a_score_after_each_epoch(self, name):
        """Of a sparse Y, with weights."""
        monitor = callback.ScoringMonitor(scoring=TopKScorer(ks=(1, 3), metrics=("precision",)))
        weight = np.linspace(0.5, 2, 60)
        model = ENTRIES[name].make().set_callbacks(monitor).fit(X, Y, sample_weight=weight)
        rows = monitor.get_logs().data
        assert [row["task_name"] for row in rows] == ["fit"] + ["epoch"] * 3
        assert rows[0]["P@1"] == rows[-1]["P@1"] == model.score(X, Y, sample_weight=weight)
        monitor = callback.ScoringMonitor(scoring="f1_micro")
        ENTRIES[name].make().set_callbacks(monitor).fit(X, Y)
        assert all(0 < row["f1_micro"] <= 1 for row in monitor.get_logs().data)


class TestStopping:
    @pytest.mark.parametrize("name", BY_EPOCHS)
    def test_training_ends_after_the_epoch(self, name):
        entry = ENTRIES[name]
        stopped = entry.make(decay=0.9).set_callbacks(Stopping()).fit(X, Y)
        assert stopped.n_iter_ == 1
        assert_same_answers(stopped, entry.make(decay=0.9, max_iter=1).fit(X, Y), X, entry)

    @pytest.mark.parametrize("name", BY_EPOCHS)
    def test_also_where_epochs_were_searched_for(self, name):
        recorder, entry = Stopping(), ENTRIES[name]
        model = entry.make(early_stopping=True, learning_rate="auto").set_callbacks(recorder)
        assert model.fit(X, Y).n_iter_ == 1
        assert len(recorder.named("begin")) == len(recorder.named("end"))
        model.predict_topk(X, 2)

    def test_lines_say_so(self, capsys):
        own = {"learning_rate": "auto", "early_stopping": False, "max_iter": 2}
        model = ENTRIES["ImplicitSoftmaxSGD"].make(verbose=1, **own)
        model.set_callbacks(Stopping()).fit(X, Y)
        lines = [line for line in capsys.readouterr().out.splitlines() if "stopped" in line]
        assert lines == ["[ImplicitSoftmaxSGD] stopped here: a callback asked for it"]
        model.set_params(max_iter=1).fit(X, Y)  # which ends by itself
        assert "stopped" not in capsys.readouterr().out

    @pytest.mark.parametrize("n_shards", [1, 3])
    def test_both_modules(self, n_shards):
        entry = ENTRIES["NGAMEEmbeddingXC"]
        own = {"max_iter": 4, "classifier_max_iter": 3, "n_shards": n_shards}
        model = entry.make(**own).set_callbacks(Stopping()).fit(X, Y)
        assert model.fit_report_["module"].tolist() == ["encoder", "classifier"]
        model.predict_topk(X, 2)

    def test_a_race_is_decided_by_the_folds_so_far(self):
        model = ENTRIES["OvALinearXCCV"].make(exhaustive=True).set_callbacks(Stopping()).fit(X, Y)
        assert np.isfinite(model.scores_).all(axis=1).tolist() == [True, False]

    @pytest.mark.parametrize("name", ["OvALinearXC", "StackingXC", "ThresholdTuner"])
    def test_nothing_is_left_out_where_all_is_needed(self, name):
        entry = ENTRIES[name]
        model = entry.make().set_callbacks(Stopping()).fit(X, Y)
        assert_same_model(model, entry.make().fit(X, Y))


class TestFailing:
    @pytest.mark.parametrize(
        ("hook", "at"), [("setup", 0), ("begin", 1), ("end", 0), ("end", 1), ("teardown", 0)]
    )
    def test_the_estimator_stays_as_it_was(self, entry, hook, at):
        model = entry.make().fit(X, Y)
        model.set_callbacks(Failing(hook, at))
        unchanged = Unchanged(model)
        del unchanged.values["_skl_callbacks"]  # which counts
        with pytest.raises(ZeroDivisionError, match="of the callback"):
            model.fit(X, Y)
        unchanged.check()
        model.set_callbacks().fit(X, Y)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_between_blocks_of_labels(self, n_jobs):
        rng = np.random.default_rng(0)
        x, y = rng.random((30, 4)), (rng.random((30, 400)) < 0.3).astype(int)
        model = OvALinearXC(prune=0, n_jobs=n_jobs).set_callbacks(Failing("end", 2))
        with pytest.raises(ZeroDivisionError):
            model.fit(x, y)
        assert not hasattr(model, "classes_")

    def test_what_was_set_up_is_taken_down(self, entry):
        recorder = Recorder()
        model = entry.make().set_callbacks(recorder, Failing("end", 0))
        with pytest.raises(ZeroDivisionError):
            model.fit(X, Y)
        assert recorder.told[-1][0] == "teardown"

    def test_who_asked_for_nothing_sensible(self, entry):
        with pytest.raises(TypeError, match="FitCallback"):
            entry.make().set_callbacks("bar")


class TestKeeping:
    def test_clones_share_callbacks(self, watched):
        model, recorder = watched
        assert clone(model)._skl_callbacks == [recorder]

    def test_pickles_have_them_too(self, entry, silent):
        model = entry.make().set_callbacks(Recorder()).fit(X, Y)
        copy = pickle.loads(pickle.dumps(model))
        assert isinstance(copy._skl_callbacks[0], Recorder)
        assert_same_answers(copy, silent, X, entry)


class TestInsideOthers:
    def test_pipeline_in_a_search(self, entry):
        """All fits hang in one tree, and the model is that of a search without."""
        pipeline = make_pipeline(StandardScaler(with_mean=False), entry.make())
        grid = {f"{pipeline.steps[-1][0]}__top_k": [4, 5]}
        recorder = Propagated()
        search = GridSearchCV(pipeline, grid, scoring=get_scorer("P@1"), cv=2, n_jobs=1)
        watched = clone(search).set_callbacks(recorder).fit(X, Y)
        assert_told_well(recorder)
        name = entry.estimator.__name__
        fits = [task for task in recorder.root if task.task_name == "fit"]
        ours = [task for task in fits if task.source_task_name == "fit-final-estimator"]
        assert [task.estimator_name for task in ours] == [name] * 5
        silent = search.fit(X, Y)
        assert plain(watched.cv_results_["mean_test_score"]) == plain(
            silent.cv_results_["mean_test_score"]
        )
        assert_same_model(watched.best_estimator_[-1], silent.best_estimator_[-1])
        assert not hasattr(watched.best_estimator_[-1], "_skl_callbacks")

    def test_texts(self):
        recorder = Propagated()
        texts, tags = ["clear soup", "rye bread", "frozen soup"] * 5, [["a"], ["b"], ["a"]] * 5
        inner = ThresholdTuner(OvALinearXC(), cv=2, random_state=0)
        tagger = TextClassifierXC(classifier=inner).set_callbacks(recorder).fit(texts, tags)
        assert_told_well(recorder)
        fits = [task.estimator_name for task in recorder.root if task.task_name == "fit"]
        assert fits == ["TextClassifierXC", "ThresholdTuner"] + ["OvALinearXC"] * 3
        assert not hasattr(tagger.classifier_, "_skl_callbacks")

    def test_those_of_a_member_are_its_own(self):
        """A callback that is not propagated stays with the estimator that it was set on."""
        recorder, outer = Recorder(), Recorder()
        stack = ENTRIES["StackingXC"].make().set_callbacks(outer)
        stack.estimators[1][1].set_callbacks(recorder)
        stack.fit(X, Y)
        names = {context.estimator_name for _, context, _ in recorder.told}
        assert names == {"ImplicitSoftmaxSGD"}
        assert {context.estimator_name for _, context, _ in outer.told} == {"StackingXC"}
        assert recorder.root.parent.task_name == "fold"

    def test_a_bar_inside_has_to_be_set_outside(self):
        stack = ENTRIES["StackingXC"].make()
        stack.estimators[0][1].set_callbacks(Propagated())
        with pytest.raises(TypeError, match=r"StackingXC: estimator 'ova': .*Register them"):
            stack.fit(X, Y)


def test_progress_bars(entry, capsys):
    bar = callback.ProgressBar(max_propagation_depth=None)  # which draws with rich
    model = entry.make().set_callbacks(bar).fit(X, Y)
    printed = capsys.readouterr().out
    assert f"{type(model).__name__} - fit" in printed
    assert "100%" in printed


def test_a_tagger_has_a_bar_for_each_fit_inside(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    texts, tags = ["clear soup", "rye bread", "frozen soup"] * 5, [["a"], ["b"], ["a"]] * 5
    inner = ThresholdTuner(OvALinearXC(), cv=2, random_state=0)
    tagger = TextClassifierXC(classifier=inner)
    tagger.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(texts, tags)
    printed = capsys.readouterr().out
    bars = [line.split(" ━")[0].strip() for line in printed.splitlines() if "100%" in line]
    assert bars == [
        "TextClassifierXC - fit",
        "TextClassifierXC - classifier | ThresholdTuner - fit #1",
        "ThresholdTuner - fold | OvALinearXC - fit #0",
        "ThresholdTuner - fold | OvALinearXC - fit #1",
        "ThresholdTuner - last fit | OvALinearXC - fit #2",
    ]
