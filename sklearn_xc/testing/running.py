"""The list of checks, and three ways to run it: at once, one by one, and as tests of pytest."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import SkipTest

from sklearn.exceptions import SkipTestWarning

from sklearn_xc.testing import answers, instances, memory, selection, targets, training
from sklearn_xc.testing.comparing import RTOL

#: Of all estimators.
CHECKS = (
    targets.check_predict_follows_sparse_y,
    targets.check_scores_follow_sparse_y,
    targets.check_answers_follow_dense_y,
    targets.check_classes,
    targets.check_dtype_of_y,
    targets.check_stored_forms_of_y,
    targets.check_length_of_y,
    targets.check_two_label_columns,
    targets.check_single_label_column,
    targets.check_rows_without_labels,
    targets.check_labels_without_positives,
    targets.check_labels_on_every_row,
    instances.check_containers_of_X,
    instances.check_stored_forms_of_X,
    instances.check_sparse_and_dense_X,
    instances.check_float32_X,
    instances.check_empty_rows_of_X,
    instances.check_n_features,
    instances.check_read_only_memory,
    instances.check_inputs_are_left_alone,
    answers.check_rows_alone,
    answers.check_top_k,
    answers.check_predict_proba,
    answers.check_score,
    training.check_sample_weight,
    training.check_fit_twice,
    training.check_n_jobs,
    training.check_failed_fit,
    training.check_failed_first_fit,
    training.check_pickle,
    training.check_clone,
    selection.check_pipeline,
    selection.check_cross_val_predict,
    selection.check_cross_val_score,
    selection.check_grid_search,
    memory.check_no_dense_array,
    # Last, as who trusts a sparse matrix may end the process.
    targets.check_repeated_entries_of_y,
    targets.check_indices_of_y,
    instances.check_indices_of_X,
)
#: Of those that rank labels themselves.
TOPK_CHECKS = (
    answers.check_predict_topk,
    answers.check_predict_topk_goes_with_scores,
    answers.check_ties,
)
#: Not run where they are expected to fail: they take minutes, or may end the process.
_NOT_TRIED = {check.__name__ for check in CHECKS[-4:]}


def sparse_checks_generator(
    estimator: Any, *, rtol: float = RTOL
) -> Iterator[tuple[Any, partial[None]]]:
    """Yield all checks of an estimator with a sparse y, to be run one by one.

    Parameters
    ----------
    estimator : estimator
        An instance of a classifier, which no check changes.
    rtol : float, default=1e-6
        As in :func:`check_sparse_targets`.

    Yields
    ------
    estimator : estimator
        The same instance.
    check : callable
        A function of the estimator, a ``functools.partial`` of a function named ``check_...``. It
        raises an AssertionError that tells what was expected and what was returned, or the error
        of a call that should not have failed.

    Raises
    ------
    TypeError
        If `estimator` is a class.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.testing import sparse_checks_generator
    >>> estimator, check = next(sparse_checks_generator(OvALinearXC()))
    >>> check.func.__name__
    'check_predict_topk'
    >>> check(estimator)
    """
    if isinstance(estimator, type):
        raise TypeError(f"An estimator is an instance, not a class. Got {estimator!r}.")
    name = type(estimator).__name__
    of_topk = TOPK_CHECKS if hasattr(estimator, "predict_topk") else ()
    for check in (*of_topk, *CHECKS):
        further = {"rtol": rtol} if "rtol" in inspect.signature(check).parameters else {}
        yield estimator, partial(check, name, **further)


def check_sparse_targets(
    estimator: Any,
    *,
    expected_failed_checks: Mapping[str, str] | None = None,
    rtol: float = RTOL,
    on_skip: str | None = "warn",
    on_fail: str | None = "raise",
    callback: Callable[..., None] | None = None,
) -> list[dict[str, Any]]:
    """Check that an estimator does what users of a sparse y may expect.

    Runs the checks that :func:`sklearn.utils.estimator_checks.check_estimator`, which documents
    the parameters, does not run, because its y is always an array. Optional methods and parameters
    (``decision_function``, ``predict_proba``, ``predict_topk``, `sample_weight`, `n_jobs`,
    `top_k`) are checked if the estimator has them.

    Parameters
    ----------
    estimator : estimator
        An instance of a classifier that trains in milliseconds on 60 rows; it is cloned.
    expected_failed_checks : mapping of str to str, default=None
        Names of checks that are expected to fail, and why. The last four checks are not run if
        they are named here: they take minutes or end the process if labels are made dense or index
        arrays are trusted.
    rtol : float, default=1e-6
        How much models trained on the same data in different forms may differ, as a share of the
        largest score. With 0, all answers and public fitted attributes except durations must be
        the same, bit for bit, and the data have awkward rows and numbers of both signs.
    on_skip, on_fail, callback
        As in scikit-learn's function.

    Returns
    -------
    list of dict
        One for each check, with the same keys as in scikit-learn: "estimator", "check_name",
        "exception", "status" ("passed", "failed", "xfail" or "skipped"), "expected_to_fail" and
        "expected_to_fail_reason".

    Raises
    ------
    AssertionError
        For the first check that fails unexpectedly, if `on_fail` is "raise". An estimator that
        fails where it should not may raise its own error.
    TypeError
        If `estimator` is a class.
    ValueError
        If `expected_failed_checks` has a name that is not a check, or if `on_fail`, `on_skip` and
        `callback` do not go together.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.testing import check_sparse_targets
    >>> results = check_sparse_targets(OvALinearXC(prune=0.0))
    >>> {result["status"] for result in results}
    {'passed'}
    """
    for argument, value, allowed in (
        ("on_skip", on_skip, ("warn", None)),
        ("on_fail", on_fail, ("raise", "warn", None)),
    ):
        if value not in allowed:
            raise ValueError(f"{argument} must be one of {allowed}. Got {value!r}.")
    if on_fail == "raise" and callback is not None:
        raise ValueError("callback cannot be called with on_fail='raise'. Got both.")
    expected = dict(expected_failed_checks or {})
    _refuse_unknown(expected)
    name, results = type(estimator).__name__, []
    for _, check in sparse_checks_generator(estimator, rtol=rtol):
        check_name = check.func.__name__
        is_expected = check_name in expected
        exception: BaseException | None = None
        status = "passed"
        try:
            if is_expected and check_name in _NOT_TRIED:
                status = "xfail"
            else:
                check(estimator)
        except SkipTest as error:
            exception, status = error, "skipped"
            if on_skip == "warn":
                warnings.warn(
                    f"Skipping {check_name} for {name}: {error}", SkipTestWarning, stacklevel=2
                )
        except Exception as error:
            if on_fail == "raise" and not is_expected:
                raise
            exception, status = error, "xfail" if is_expected else "failed"
            if on_fail == "warn" and not is_expected:
                warnings.warn(f"{check_name} failed for {name}: {error}", stacklevel=2)
        results.append(
            {
                "estimator": estimator,
                "check_name": check_name,
                "exception": exception,
                "status": status,
                "expected_to_fail": is_expected,
                "expected_to_fail_reason": expected.get(
                    check_name, "Check is not expected to fail"
                ),
            }
        )
        if callback is not None:
            callback(**results[-1])
    return results


def parametrize_with_sparse_checks(
    estimators: Iterable[Any],
    *,
    expected_failed_checks: Any = None,
    rtol: float = RTOL,
    xfail_strict: bool | None = None,
) -> Any:
    """Return a decorator that makes pytest run a test once for each estimator and check.

    Like :func:`sklearn.utils.estimator_checks.parametrize_with_checks`, but for
    :func:`check_sparse_targets`.

    Parameters
    ----------
    estimators : iterable of estimator
        Instances of classifiers.
    expected_failed_checks : mapping of str to str or callable, default=None
        Names of checks that are expected to fail, and why; or a function that takes an estimator
        and returns such a mapping, as in scikit-learn.
    rtol : float, default=1e-6
        As in :func:`check_sparse_targets`.
    xfail_strict : bool, default=None
        Whether a check that passes unexpectedly counts as failed; None uses pytest's own setting.

    Returns
    -------
    pytest.MarkDecorator
        For a test function with the arguments `estimator` and `check`.

    Raises
    ------
    TypeError
        If an estimator is a class.
    ValueError
        If `expected_failed_checks` has a name that is not a check.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.testing import parametrize_with_sparse_checks
    >>> @parametrize_with_sparse_checks([OvALinearXC()])
    ... def test_sparse_targets(estimator, check):
    ...     check(estimator)
    """
    import pytest

    strict: dict[str, Any] = {} if xfail_strict is None else {"strict": xfail_strict}
    cases, ids = [], []
    for number, estimator in enumerate(estimators):
        of_one = expected_failed_checks
        expected = dict((of_one(estimator) if callable(of_one) else of_one) or {})
        _refuse_unknown(expected)
        for _, check in sparse_checks_generator(estimator, rtol=rtol):
            name = check.func.__name__
            reason = expected.get(name)
            run = name not in _NOT_TRIED
            marks = (
                pytest.mark.xfail(reason=reason, run=run, **strict) if reason is not None else ()
            )
            cases.append(pytest.param(estimator, check, marks=marks))
            ids.append(f"{type(estimator).__name__}-{number}-{name}")
    return pytest.mark.parametrize(("estimator", "check"), cases, ids=ids)


def _refuse_unknown(expected: Mapping[str, str]) -> None:
    """Raise for names that are no check's: a typing error would hide what is expected."""
    known = {check.__name__ for check in (*TOPK_CHECKS, *CHECKS)}
    if unknown := sorted(set(expected) - known):
        raise ValueError(
            f"expected_failed_checks must have names of checks as keys, such as "
            f"{CHECKS[0].__name__!r}. Got {', '.join(map(repr, unknown))}."
        )
