"""What was found of two models: numbers for programs, and reports for people."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._atomic_files import open_atomic
from sklearn_xc.inspection.comparison.as_html import as_fragment, as_page
from sklearn_xc.inspection.comparison.as_text import as_text
from sklearn_xc.inspection.comparison.cases import Case
from sklearn_xc.inspection.comparison.measures import Difference, Group, LabelChanges


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Comparison of two models on the same instances, as returned by :func:`compare_models`.

    Attributes
    ----------
    names, kinds : tuple of two str
        Names of the models, and of their classes.
    k : int
        Number of best labels of each instance that are considered.
    n : int
        Number of instances.
    confidence : float
        Confidence level of the intervals.
    label_names : list
        All labels that a model knows, and those that are true for some instance.
    n_trained : tuple of two int or None
        Number of training instances of each model.
    metrics : list of named tuples
        ``name``, ``a``, ``b``, ``difference`` (b minus a), ``low``, ``high`` and ``p_value``, all
        fractions; ``is_clear`` tells whether the interval excludes 0.
    groups : list of named tuples
        Groups of labels, rare ones first: ``lower`` and ``upper``, the range of training
        instances; ``n_labels``, the number of labels that occur; ``n_true``, the number of their
        occurrences; and ``recall``, the share of these among the k best, in the form of `metrics`.
        Empty if no model has ``label_counts_``.
    labels : named tuple of arrays
        All labels that are true for some instance: ``label``, their positions in `label_names`;
        ``n_train``, their training instances (-1 if no model says); ``n_true``, the instances for
        which they are true; ``found_a`` and ``found_b``, of these, those that have them among the
        k best; ``only_a`` and ``only_b``, those in which the other model missed them; ``named_a``
        and ``named_b``, the instances that have them among the k best, rightly or not; ``p_value``
        of a sign test; and ``q_value``, the false discovery rate.
    n_right_alone : tuple of two int
        For each model, the number of instances for which it alone has the best label right.
    cases : list
        Some of these instances, drawn at random; those that B has right come first.
    n_shown : int
        Number of labels that gain, and of labels that lose, listed in reports.

    Examples
    --------
    >>> from sklearn_xc import TextClassifierXC
    >>> from sklearn_xc.inspection import compare_models
    >>> texts = ["how to freeze soup", "freezing bread dough", "clear soup stock", "rye bread"]
    >>> tags = ["freezing;soup", "freezing;bread", "soup", "bread"]
    >>> small = TextClassifierXC(separator=";").fit(texts[:2], tags[:2])
    >>> large = TextClassifierXC(separator=";").fit(texts, tags)
    >>> found = compare_models(
    ...     small, large, ["clear soup", "dark rye"] * 10, ["soup", "bread"] * 10, k=2,
    ...     metrics=["P@1"], names=("small", "large"), random_state=0,
    ... )
    >>> found.n_right_alone
    (0, 20)
    >>> found.to_dict()["verdict"]
    'large is better than small in P@1, by more than luck.'
    >>> found.to_frames()["metrics"][["name", "a", "b"]]
      name    a    b
    0  P@1  0.0  1.0
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "comparison.html")
    ...     found.to_html(page)
    ...     page.read_text().startswith("<!doctype html>")
    True
    """

    names: tuple[str, str]
    kinds: tuple[str, str]
    k: int
    n: int
    confidence: float
    label_names: list
    n_trained: tuple[int | None, int | None]
    metrics: list[Difference]
    groups: list[Group]
    labels: LabelChanges
    n_right_alone: tuple[int, int]
    cases: list[Case]
    n_shown: int

    @property
    def verdict(self) -> str:
        """Return in a sentence which model is better, and whether that is more than luck."""
        a, b = self.names
        better = [one.name for one in self.metrics if one.low > 0]
        worse = [one.name for one in self.metrics if one.high < 0]
        others = len(self.metrics) - len(better) - len(worse)
        if not better and not worse:
            which = "No metric differs" if others > 1 else f"{self.metrics[0].name} does not differ"
            return f"{which} by more than luck: no reason to prefer either."
        if better and worse:
            return (
                f"Neither is better in all: {b} is better in {_listed(better)}, {a} in "
                f"{_listed(worse)}, each by more than luck."
            )
        winner, loser, what = (b, a, better) if better else (a, b, worse)
        rest = " The other metrics do not differ by more than luck." if others > 1 else ""
        if others == 1:
            (name,) = (one.name for one in self.metrics if not one.is_clear)
            rest = f" {name} does not differ by more than luck."
        return f"{winner} is better than {loser} in {_listed(what)}, by more than luck.{rest}"

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the report for notebooks."""
        return as_fragment(self)

    def to_html(self, path: Any) -> None:
        """Write the report as one web page that needs nothing but a browser.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is replaced when the page is complete.
        """
        with open_atomic(path) as stream:
            stream.write(as_page(self).encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as dictionaries, lists, numbers and strings, as in JSON.

        Returns
        -------
        dict
            ``names``, ``kinds``, ``k``, ``n``, ``confidence``, ``verdict``, ``metrics``,
            ``groups``, ``labels`` (those for which the models differ, largest gain first), and
            ``cases``.
        """
        labels = self._label_records()
        differ = [one for one in labels if one["only_a"] or one["only_b"]]
        differ.sort(key=lambda one: (one["only_a"] - one["only_b"], one["p_value"]))
        return {
            "names": list(self.names),
            "kinds": list(self.kinds),
            "k": self.k,
            "n": self.n,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "metrics": [_plain(one) for one in self.metrics],
            "groups": [_plain(one) | {"recall": _plain(one.recall)} for one in self.groups],
            "labels": differ,
            "cases": [self._case_record(case) for case in self.cases],
        }

    def to_frames(self) -> dict[str, Any]:
        """Return the tables as pandas data frames.

        Returns
        -------
        dict of str to DataFrame
            "metrics", "groups" and "labels"; the last lists all labels that are true for some
            instance.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "ModelComparison.to_frames needs pandas: pip install pandas. to_dict does without."
            ) from error
        groups = [
            {"lower": one.lower, "upper": one.upper, "n_labels": one.n_labels,
             "n_true": one.n_true, **{k: v for k, v in _plain(one.recall).items() if k != "name"}}
            for one in self.groups
        ]  # fmt: skip
        return {
            "metrics": pd.DataFrame([_plain(one) for one in self.metrics]),
            "groups": pd.DataFrame(groups),
            "labels": pd.DataFrame(self._label_records()),
        }

    def _label_records(self) -> list[dict[str, Any]]:
        columns = {name: values.tolist() for name, values in self.labels._asdict().items()}
        columns["label"] = [self.label_names[place] for place in columns["label"]]
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _case_record(self, case: Case) -> dict[str, Any]:
        return {
            "row": case.row,
            "instance": case.instance,
            "truth": case.truth,
            "right": self.names[case.right],
            "answers": {
                name: [
                    {"label": one.label, "score": one.score, "is_true": one.is_true}
                    for one in answers
                ]
                for name, answers in zip(self.names, case.answers, strict=True)
            },
            "explanations": [
                {
                    "of": what,
                    "label": made.label,
                    "score": made.score,
                    "intercept": made.intercept,
                    "features": [str(one) for one in made.features.tolist()],
                    "contributions": made.contributions.astype(float).tolist(),
                    "other": made.other,
                }
                for what, made in case.explanations
            ],
            "notes": case.notes,
        }


def _plain(record: Any) -> dict[str, Any]:
    """Return a named tuple as a dictionary of Python's numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in record._asdict().items()
    }


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
