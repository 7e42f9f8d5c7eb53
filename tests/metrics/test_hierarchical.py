"""Hierarchical precision, recall and F1, beside sets of nodes; in scorers and searches."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

from sklearn_xc import LabelHierarchy, OvALinearXC, TextClassifierXC, metrics
from sklearn_xc.metrics import TopKScorer, _hierarchical, get_scorer
from sklearn_xc.model_selection import cross_validate

KINDS = LabelHierarchy.from_paths(["plant/tree/oak", "plant/tree/ash", "animal/ant"])
SETS = {
    "precision": metrics.hierarchical_precision,
    "recall": metrics.hierarchical_recall,
    "f1": metrics.hierarchical_f1,
}
AT_K = {
    "precision": metrics.hierarchical_precision_at_k,
    "recall": metrics.hierarchical_recall_at_k,
    "f1": metrics.hierarchical_f1_at_k,
}
SHORT = {"precision": "hP", "recall": "hR", "f1": "hF1"}


@st.composite
def problems(draw):
    """Return the parents of each node, whose numbers are smaller, and true and named sets."""
    n = draw(st.integers(1, 9))
    parents = [draw(st.sets(st.integers(0, max(node - 1, 0)), max_size=2 if node else 0))
               for node in range(n)]  # fmt: skip
    rows = st.lists(st.sets(st.integers(0, n - 1), max_size=4), min_size=1, max_size=6)
    true = draw(rows)
    named = [draw(st.sets(st.integers(0, n - 1), max_size=4)) for _ in true]
    weight = draw(st.none() | st.lists(st.integers(1, 4), min_size=len(true), max_size=len(true)))
    return parents, true, named, weight


def reference(parents, true, named, weight):
    """Return the three measures of sets of nodes, by the definition."""
    roots = [node for node, above in enumerate(parents) if not above]
    only = set(roots) if len(roots) == 1 < len(parents) else set()

    def closed(nodes):
        found, todo = set(), list(nodes)
        while todo:
            node = todo.pop()
            found.add(node)
            todo += parents[node]
        return found - only

    weight = weight or [1] * len(true)
    both = sum(w * len(closed(a) & closed(b)) for a, b, w in zip(true, named, weight, strict=True))
    n_true = sum(w * len(closed(a)) for a, w in zip(true, weight, strict=True))
    n_named = sum(w * len(closed(b)) for b, w in zip(named, weight, strict=True))
    return {
        "precision": both / n_named if n_named else 0.0,
        "recall": both / n_true if n_true else 0.0,
        "f1": 2 * both / (n_true + n_named) if n_true + n_named else 0.0,
    }


def hierarchy_of(parents):
    edges = [(child, parent) for child, above in enumerate(parents) for parent in above]
    return LabelHierarchy(np.arange(len(parents)), np.array(edges, int).reshape(-1, 2))


def indicator(sets, n):
    return np.array([[node in nodes for node in range(n)] for nodes in sets], int)


@given(problems(), st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix]))
def test_sets_of_nodes(problem, container):
    parents, true, named, weight = problem
    n, hierarchy = len(parents), hierarchy_of(parents)
    Y_true, Y_pred = container(indicator(true, n)), sp.csr_array(indicator(named, n))
    expected = reference(*problem)
    for name, function in SETS.items():
        found = function(Y_true, Y_pred, hierarchy, sample_weight=weight)
        assert type(found) is float
        assert found == pytest.approx(expected[name], abs=1e-12)
    # The ancestors are added anyway.
    closed = hierarchy.with_ancestors(Y_pred)
    assert SETS["f1"](Y_true, closed, hierarchy, sample_weight=weight) == pytest.approx(
        expected["f1"]
    )


@given(problems())
def test_rankings(problem):
    parents, true, named, weight = problem
    n, hierarchy = len(parents), hierarchy_of(parents)
    order = [sorted(nodes, key=lambda node: node * 7 % 5) for nodes in named]
    k_max = 1 + max(map(len, order))
    topk = np.array([nodes + [-1] * (k_max - len(nodes)) for nodes in order])
    ks = tuple(range(1, k_max + 1))
    for name, function in AT_K.items():
        found = function(indicator(true, n), topk, hierarchy, ks, sample_weight=weight)
        expected = [
            reference(parents, true, [set(nodes[:k]) for nodes in order], weight)[name]
            for k in ks
        ]  # fmt: skip
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert (
            function(indicator(true, n), topk, hierarchy, k_max, sample_weight=weight)
            == (found[-1])
        )


def test_without_edges_they_are_the_plain_ones():
    rng = np.random.default_rng(0)
    Y_true, Y_pred = (sp.csr_array((rng.random((30, 12)) < 0.3).astype(int)) for _ in "ab")
    flat = LabelHierarchy(np.arange(12), [])
    assert metrics.hierarchical_f1(Y_true, Y_pred, flat) == pytest.approx(
        metrics.micro_f1(Y_true, Y_pred)
    )
    topk = np.argsort(rng.random((30, 12)), axis=1)[:, :3]
    assert metrics.hierarchical_precision_at_k(Y_true, topk, flat, 3) == pytest.approx(
        metrics.precision_at_k(Y_true, topk, 3)
    )


def test_a_near_miss_is_better_than_a_far_one():
    near, far = (
        metrics.hierarchical_f1([["plant/tree/oak"]], [[other]], KINDS)
        for other in ("plant/tree/ash", "animal/ant")
    )
    assert 0 == far < near == pytest.approx(2 / 3)


def test_a_single_root_does_not_count():
    below = LabelHierarchy.from_paths([f"all/{path}" for path in KINDS.names.tolist()])
    for names in (["plant/tree/oak"], ["plant/tree/ash", "animal/ant"]):
        values = [
            metrics.hierarchical_f1([["plant/tree/oak"]], [names], KINDS),
            metrics.hierarchical_f1(
                [["all/plant/tree/oak"]], [[f"all/{name}" for name in names]], below
            ),
        ]
        assert values[0] == pytest.approx(values[1])


def test_pieces_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    hierarchy = hierarchy_of([set(), *({int(node * rng.random())} for node in range(1, 40))])
    Y_true, Y_pred = (sp.csr_array((rng.random((50, 40)) < 0.1).astype(int)) for _ in "ab")
    whole = [function(Y_true, Y_pred, hierarchy) for function in SETS.values()]
    monkeypatch.setattr(_hierarchical, "_TOGETHER", 9)
    assert [function(Y_true, Y_pred, hierarchy) for function in SETS.values()] == whole


def test_names_and_classes():
    y_true, y_pred = np.array(["plant/tree/oak", "animal/ant"]), ["plant/tree/ash", "animal/ant"]
    expected = metrics.hierarchical_f1([[one] for one in y_true], [[one] for one in y_pred], KINDS)
    assert metrics.hierarchical_f1(y_true, y_pred, KINDS) == expected == pytest.approx(0.8)
    found = metrics.hierarchical_f1_at_k(
        y_true, np.array([[1], [2]]), KINDS, 1, classes=KINDS.names[:3].tolist()
    )
    assert found == pytest.approx(expected)


def test_a_true_label_without_a_column_is_a_missed_node():
    topk = np.array([[0], [2]])
    found = metrics.hierarchical_recall_at_k(
        ["plant/tree/oak", "stone"], topk, KINDS, 1, classes=KINDS.names[:3].tolist()
    )
    assert found == pytest.approx(3 / 4)


@pytest.mark.parametrize("function", [*SETS.values(), *AT_K.values()])
def test_errors(function):
    Y, ranked = np.eye(3, dtype=int), np.zeros((3, 1), int)
    second, further = (ranked, {"k": 1}) if "at_k" in function.__name__ else (Y, {})
    with pytest.raises(TypeError, match=r"hierarchy: expected a LabelHierarchy.*Got dict"):
        function(Y, second, {"a": "b"}, **further)
    small = LabelHierarchy.from_parents([-1, 0])
    with pytest.raises(ValueError, match=r"Y_true: expected at most 2 columns.*Got 3"):
        function(Y, second, small, **further)
    with pytest.raises(ValueError, match=r"sample_weight"):
        function(Y, second, KINDS, sample_weight=[1.0], **further)
    with pytest.raises(ValueError, match=r"Y_true: .*Got 2"):
        function(2 * Y, second, KINDS, **further)
    with pytest.raises(ValueError, match=r"rows"):
        function(Y[:2], second, KINDS, **further)


def test_errors_of_one_side():
    with pytest.raises(ValueError, match=r"names of nodes.*'elm' first"):
        metrics.hierarchical_f1([["animal/ant"]], [["elm"]], KINDS)
    with pytest.raises(ValueError, match=r"Y_pred: expected at most 6 columns"):
        metrics.hierarchical_f1(np.ones((1, 2)), np.ones((1, 7)), KINDS)
    with pytest.raises(ValueError, match=r"Y_true: expected at least one row"):
        metrics.hierarchical_f1(np.ones((0, 2)), np.ones((0, 2)), KINDS)
    with pytest.raises(ValueError, match=r"topk: expected positions of the 6 nodes.*Got 6"):
        metrics.hierarchical_f1_at_k([0], np.array([[6]]), KINDS, 1)
    with pytest.raises(ValueError, match=r"Y_true: expected 1 or 2 dimensions"):
        metrics.hierarchical_f1(np.ones((1, 1, 1)), np.ones((1, 2)), KINDS)


# Scorers


def linear_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 10))
    return X, sp.csr_array((X[:, :3] > 0.4).astype(int))


@pytest.mark.parametrize("measure", AT_K)
def test_scorers_give_what_the_functions_give(measure):
    X, Y = linear_problem()
    model = OvALinearXC().fit(X, Y)
    ranked = model.predict_topk(X, 3)
    name = f"hierarchical_{measure}"
    together = TopKScorer((1, 3), (name, "precision"), hierarchy=KINDS)(model, X, Y)
    assert list(together) == [f"{SHORT[measure]}@1", f"{SHORT[measure]}@3", "P@1", "P@3"]
    for k in (1, 3):
        expected = AT_K[measure](Y, ranked, KINDS, k)
        assert together[f"{SHORT[measure]}@{k}"] == expected
        for spelled in (f"{SHORT[measure]}@{k}", f"{name}@{k}", f"{SHORT[measure]}@{k}".lower()):
            assert get_scorer(spelled, hierarchy=KINDS)(model, X, Y) == expected


def test_labels_are_found_by_name():
    X, Y = linear_problem()
    names = KINDS.names[[2, 0, 1]].tolist()
    by_name = OvALinearXC(label_names=names).fit(X, Y)
    scorer = get_scorer("hF1@2", hierarchy=KINDS)
    ranked = np.array([2, 0, 1])[by_name.predict_topk(X, 2)[0]]
    expected = metrics.hierarchical_f1_at_k(Y[:, [1, 2, 0]], ranked, KINDS, 2)
    assert scorer(by_name, X, Y) == pytest.approx(expected)
    assert scorer(by_name, X, Y) != pytest.approx(scorer(OvALinearXC().fit(X, Y), X, Y))


def test_a_tagger_in_a_search():
    texts = ["an old oak", "grey ash", "small ant", "oak and ant"] * 6
    tags = [["plant/tree/oak"], ["plant/tree/ash"], ["animal/ant"],
            ["plant/tree/oak", "animal/ant"]] * 6  # fmt: skip
    scorer = TopKScorer((1,), ("hierarchical_f1", "precision"), hierarchy=KINDS)
    search = GridSearchCV(
        TextClassifierXC(classifier=OvALinearXC()), {"classifier__C": [0.1, 1.0]}, cv=2,
        scoring=scorer, refit="hF1@1", error_score="raise",
    ).fit(texts, tags)  # fmt: skip
    assert 0 < search.best_score_ <= 1
    assert search.score(texts, tags) == scorer(search, texts, tags)["hF1@1"]
    unknown = [["plant/tree/oak", "granite"], *tags[1:]]
    assert scorer(search, texts, unknown)["hF1@1"] < scorer(search, texts, tags)["hF1@1"]


def test_label_sets_in_scikit_learns_scorer():
    X, Y = linear_problem()
    found = cross_validate(
        OvALinearXC(), X, Y, cv=2, scoring=make_scorer(metrics.hierarchical_f1, hierarchy=KINDS)
    )
    assert (found["test_score"] > 0.5).all()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))]
)
def test_copies_of_a_scorer(copied):
    X, Y = linear_problem()
    model = OvALinearXC().fit(X, Y)
    scorer = get_scorer("hF1@2", hierarchy=KINDS)
    assert copied(scorer)(model, X, Y) == scorer(model, X, Y)
    assert repr(scorer) == "get_scorer('hF1@2', hierarchy=LabelHierarchy(6 nodes, 4 edges))"


def test_a_hierarchy_is_asked_for():
    for make in (
        lambda: get_scorer("hP@3"),
        lambda: TopKScorer(metrics=("precision", "hierarchical_precision")),
        lambda: cross_validate(OvALinearXC(), *linear_problem(), scoring=["P@1", "hP@3"]),
    ):
        with pytest.raises(ValueError, match=r"hierarchy: hP@k needs a LabelHierarchy. Got None"):
            make()
    with pytest.raises(TypeError, match=r"hierarchy: expected a LabelHierarchy.*Got str"):
        get_scorer("hP@3", hierarchy="paths")
    X, Y = linear_problem()
    model = OvALinearXC(label_names=["a", "b", "c"]).fit(X, Y)
    with pytest.raises(ValueError, match=r"classes must hold names of nodes. Got 3 that are none"):
        get_scorer("hP@3", hierarchy=KINDS)(model, X, Y)


def test_a_row_adds_nothing_of_its_own():
    X, Y = linear_problem()
    scorer = get_scorer("hF1@1", hierarchy=KINDS)
    with pytest.raises(ValueError, match=r"sum over rows. Got one of labels or of a hierarchy"):
        scorer._score_rows(OvALinearXC().fit(X, Y), X, Y)
