"""A cluster of this process: whatever goes to a worker or comes back is pickled on the way.

``joblib.parallel_config("pickled")`` asks for it. Tasks end in another order than they began.
"""

import pickle
from contextlib import contextmanager

from joblib import register_parallel_backend
from joblib.parallel import ThreadingBackend, parallel_config

from sklearn_xc._parallel import engines
from sklearn_xc._parallel.engines import Workers
from sklearn_xc._parallel.engines.remote import in_window, work_on

#: How often an object was sent to be shared, and how many tasks.
sent = {"objects": 0, "tasks": 0}


class PickledBackend(ThreadingBackend):
    """For joblib, as those of clusters are not threads of its own."""


class PickledEngine:
    is_cluster = True

    def __init__(self, backend, n_jobs):
        pass

    def count(self, n_jobs):
        return Workers(3, 3)

    @contextmanager
    def sharing(self, shared, who):
        sent["objects"] += 1
        yield PickledPlace(pickle.dumps(shared))


class PickledPlace:
    def __init__(self, shared):
        self.shared = pickle.loads(shared)

    def run(self, work, tasks, n_workers):
        waiting = []

        def submit(task):
            sent["tasks"] += 1
            waiting.append((task[0], pickle.dumps((work, task[1]))))

        def next_done():
            number, order = waiting.pop()
            its_work, arguments = pickle.loads(order)
            with parallel_config("threading", n_jobs=1):
                outcome = work_on(its_work, self.shared, arguments)
            self.shared = pickle.loads(pickle.dumps(self.shared))  # a worker passes it on
            return pickle.loads(pickle.dumps(outcome)), number

        yield from in_window(tasks, n_workers, submit, next_done)


register_parallel_backend("pickled", PickledBackend)
engines.ENGINES["PickledBackend"] = (__name__, "PickledEngine")
