"""One estimator in many threads: whoever asks while others fit sees one whole fit."""

import pickle
import threading

import pytest
from registry import ENTRIES, ESTIMATORS
from small_data import made


def answers(model, X):
    """Return all that a model says, as bytes."""
    labels, scores = model.predict_topk(X, 9)
    return labels.tobytes() + scores.tobytes(), model.predict(X).toarray().tobytes()


def seen_from_elsewhere(model, X):
    """Ask in all ways that a thread may."""
    again = pickle.loads(pickle.dumps(model))
    return [answers(again, X), answers(model, X)[:1], answers(model, X)[1:]]


@pytest.mark.parametrize("name", [name for name in ENTRIES if not ENTRIES[name].reads_texts])
def test_threads_see_whole_fits(name):
    """Two data sets of other numbers of labels: a mixture of both fits could not answer."""
    sets = [made(5, 0), made(8, 1)]
    X = sets[0][0]
    alone = [answers(ESTIMATORS[name]().fit(*one), X) for one in sets]
    whole, first, second = set(alone), {a[:1] for a in alone}, {a[1:] for a in alone}
    model = ESTIMATORS[name]().fit(*sets[0])
    wrong, errors, stop = [], [], threading.Event()

    def fit(number):
        for turn in range(2):
            model.fit(*sets[(number + turn) % 2])

    def ask(number):
        while not stop.is_set():
            pickled, topk, predicted = seen_from_elsewhere(model, X)
            if pickled not in whole or topk not in first or predicted not in second:
                wrong.append(number)

    def guarded(work, number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    askers = [threading.Thread(target=guarded, args=(ask, i)) for i in range(5)]
    fitters = [threading.Thread(target=guarded, args=(fit, i)) for i in range(2)]
    for thread in askers + fitters:
        thread.start()
    for thread in fitters:
        thread.join()
    stop.set()
    for thread in askers:
        thread.join()
    assert not errors, errors[0]
    assert not wrong
    assert answers(model, X) in whole
