"""What the contract has to know of an estimator.

All names of parameters that only some estimators have stand here and in ``registry``.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from fitted import dense


def given(parameters: Any) -> dict[str, Any]:
    """Return parameters of their own for an estimator, made now if a function makes them."""
    return parameters() if callable(parameters) else copy.deepcopy(dict(parameters))


@dataclass(frozen=True)
class Entry:
    """An estimator, and what the contract has to know of it.

    Attributes
    ----------
    estimator : type
        The class.
    quick : mapping
        Parameters with which it trains in milliseconds. Like all that stand here, each estimator
        that is made has copies of them.
    needed : mapping
        Those that have no default.
    able : mapping
        Parameters, beside the quick ones, with which it learns easy data, in less than a second.
    precise : mapping
        Parameters, beside the quick ones, with which rounding changes scores by less than 1e-5.
    variants : mapping of str to mapping or callable
        Parameters that take code of their own: what must not change a bit is tried on each. Those
        that hold trained models are made by a function: every worker collects all tests.
    pieces : mapping of str to int
        Private constants, by dotted name, that have even small work cut up for several threads.
    refused : mapping of str to list
        Values of parameters that ``fit`` refuses, for each parameter.
    memory : tuple of (mapping or callable, str)
        Parameters that need too much memory, as in variants, and what the message calls the largest
        array.
    labels_apart : bool
        Whether each label is a problem of its own: a single column will do.
    learns_from_unlabelled : bool
        Whether instances without labels are negatives of all; elsewhere they are passed over.
    is_exact : bool
        Whether the order of instances, and a weight in place of repeated rows, change no bit;
        otherwise they change rounding.
    folds_of_weighted : bool
        Whether folds are drawn of the instances of weight above 0; elsewhere of all.
    by_search : tuple of str
        Variants guided by an index that files do not hold: a copy goes on with one that is built
        anew, which may find other labels.
    dense_bits : bool
        Whether a dense X has the bits of a sparse one.
    reads_texts : bool
        Whether an encoder of texts is given them for the rows of the contract. Then all arithmetic
        is that of float32, and a row of features that fit has not seen is a text like others.
    checked : tuple of mapping
        Parameters with which scikit-learn's own checks are run, beside the defaults.
    unmet : mapping of str to str
        Checks of scikit-learn that it does not pass, and why.
    weights : callable
        Returns the weights of labels that a fitted model holds, a list of arrays in the dtype of
        its arithmetic.
    further_state : callable
        Returns what else it has learnt, a list of arrays.
    lacks : tuple of str
        Fitted attributes of all others that it does not have.
    chances_of : {"all labels", "each label", "pairs"}
        What probabilities are of. Those of all labels are the softmax of scores, and sum to 1; a
        label's own is its score, and only those of classes sum to 1. Those of pairs are learned of
        scores, ranks and frequencies: only those of classes sum to 1, and go with the scores.
    naming : callable
        Returns the parameters that give names to an indicator's columns.
    many_labels : mapping or None
        Parameters with which it starts soon at 65,536 labels; None if there are none.
    no_table : mapping or None
        Parameters with which it makes no array with an entry for each of two billion features
        before it asks whether there is room; None if it always does.
    spoilt : mapping
        Parameters with which it learns next to nothing, of those that have probabilities.
    answers : mapping of str to callable
        Further answers, of a fitted model and X.
    """

    estimator: type
    quick: Mapping[str, Any] = field(default_factory=dict)
    needed: Mapping[str, Any] = field(default_factory=dict)
    able: Mapping[str, Any] = field(default_factory=dict)
    precise: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any] | Callable] = field(default_factory=dict)
    pieces: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, list] = field(default_factory=dict)
    memory: tuple[tuple[Mapping[str, Any] | Callable, str], ...] = ()
    labels_apart: bool = False
    learns_from_unlabelled: bool = False
    is_exact: bool = True
    folds_of_weighted: bool = False
    by_search: tuple[str, ...] = ()
    dense_bits: bool = True
    reads_texts: bool = False
    checked: tuple[Mapping[str, Any], ...] = ({},)
    unmet: Mapping[str, str] = field(default_factory=dict)
    weights: Callable = lambda model: [model.coef_]
    further_state: Callable = lambda model: []
    lacks: tuple[str, ...] = ()
    chances_of: str = "all labels"
    naming: Callable = lambda names: {"label_names": names}
    many_labels: Mapping[str, Any] | None = field(default_factory=dict)
    no_table: Mapping[str, Any] | None = field(default_factory=dict)
    spoilt: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Callable] = field(default_factory=dict)

    def make(self, **parameters: Any) -> Any:
        """Return a quick estimator; with `able` or `precise` True, with those parameters too."""
        able = self.able if parameters.pop("able", False) else {}
        precise = self.precise if parameters.pop("precise", False) else {}
        own = copy.deepcopy({**self.needed, **self.quick, **able, **precise})
        return self.estimator(**{**own, **parameters})

    def bare(self, **parameters: Any) -> Any:
        """Return an estimator with its defaults, but for some parameters."""
        return self.estimator(**{**copy.deepcopy(self.needed), **parameters})

    def learnt(self, model: Any) -> np.ndarray:
        """Return all that a model has learnt, as one vector."""
        parts = [*self.weights(model), *self.further_state(model)]
        return np.concatenate([np.ravel(dense(part)) for part in parts])

    def label_weights(self, model: Any) -> np.ndarray:
        """Return the weights of labels, a row for each label and each array of them."""
        return np.vstack([dense(part) for part in self.weights(model)])

    def has(self, name: str) -> bool:
        """Tell whether the estimator has a method, a parameter, or a `name` that fit takes."""
        made = self.make()
        return hasattr(made, name) or name in signature(made.fit).parameters
