"""A model in many threads: whoever asks while one trains sees a whole state of it."""

import pickle
import threading

import numpy as np
import scipy.sparse as sp

N_READERS = 15


def ask(model, X, Z):
    """Return a function for each way to ask, of a model of any number of labels."""
    return {
        "embed": lambda: [model.embed(X)],
        "embed_labels": lambda: [model.embed_labels()],
        **{
            component: lambda component=component: model.predict_topk(X, 9, component=component)
            for component in ("fused", "embedding", "classifier", "features")
        },
        "predict": lambda: [model.predict(X).toarray()],
        "decision_function": lambda: [model.decision_function(X).toarray()],
        "pickle": lambda: pickle.loads(pickle.dumps(model)).predict_topk(X, 25),
    }


def as_bytes(parts):
    return tuple(part.tobytes() for part in map(np.ascontiguousarray, parts))


def states(model, X, Y, Z):
    """Train in all ways, and yield between them."""
    for rows, n_labels in ((slice(0, 100), 12), (slice(60, 160), 16)):
        yield model.fit(X[rows], Y[rows, :n_labels], label_features=Z[:n_labels])
        yield model.add_labels(label_features=Z[n_labels:])
        yield model.partial_fit(X[rows], Y[rows])
        yield model.partial_fit(X[:40], Y[:40])


def test_readers_see_whole_states(make, documents):
    X, Y, Z = documents
    X = sp.vstack([X, sp.csr_array((1, 80))]).tocsr()  # and a row of which nothing is known
    Y = sp.vstack([Y, Y[:1]]).tocsr()
    own = {"max_iter": 1, "classifier_max_iter": 1, "validation_fraction": 0.2}
    known = {}
    for state in states(make(**own), X, Y, Z):
        for name, answer in ask(state, X, Z).items():
            known.setdefault(name, set()).add(as_bytes(answer()))
    assert len(known["fused"]) == len(known["pickle"]) == 8
    model = make(**own).fit(X[:100], Y[:100, :12], label_features=Z[:12])
    held = [(name, getattr(model, name)) for name in ("coef_", "label_embeddings_")]
    copies = [(name, value.copy()) for name, value in held]
    strange, errors, stop = [], [], threading.Event()

    def read(number):
        answers = list(ask(model, X, Z).items())
        while not stop.is_set():
            name, answer = answers[number % len(answers)]
            number += 1
            try:
                if as_bytes(answer()) not in known[name]:
                    strange.append(name)
            except BaseException as error:
                errors.append((name, error))

    readers = [threading.Thread(target=read, args=(i,)) for i in range(N_READERS)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(2):
            for state in states(model, X, Y, Z):
                assert state is model
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not errors, errors[0]
    assert not strange, set(strange)
    for (name, value), (_, copied) in zip(held, copies, strict=True):
        np.testing.assert_array_equal(value, copied, name)
