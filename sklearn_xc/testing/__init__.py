"""Checks of estimators with a sparse y, for those who write their own.

:func:`sklearn.utils.estimator_checks.check_estimator` never passes a sparse y. These checks do, and
have the same shape: each is a function ``check_...(name, estimator)`` that raises an AssertionError
which says what was expected and what came::

    running.py        the list of checks, and three ways to run it
    targets.py        y: containers, dtypes, stored forms, unpleasant rows and columns
    instances.py      X: containers, stored forms, read-only memory, empty rows
    answers.py        scores, the best labels, probabilities, score
    training.py       weights, repetition, threads, failures, copies
    selection.py      Pipelines, searches and cross-validation
    memory.py         no array has a cell for each instance and label
    comparing.py      what models are and say, compared to the bit or nearly
    stored_forms.py   the same values stored in other ways
    problems.py       small data
"""

from sklearn_xc.testing.running import (
    check_sparse_targets,
    parametrize_with_sparse_checks,
    sparse_checks_generator,
)

__all__ = ["check_sparse_targets", "parametrize_with_sparse_checks", "sparse_checks_generator"]
