"""Quality against cost of several models, and which of them no other beats in both."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_numbers
from sklearn_xc.inspection._names_beside_points import write_names
from sklearn_xc.inspection._style import (
    axes_for,
    check_name,
    finish,
    line_style,
    log_ticks,
    look,
    mark,
    next_number,
    require_matplotlib,
)

_WHO = "ParetoFrontDisplay"
_NAMED = ("auto", "all", "front", None)
#: More names than this hide each other, and the points.
_MANY = 30


class ParetoFrontDisplay:
    """Quality of models against their cost, with the Pareto front as a line.

    A model is on the front unless another is at least as good at no higher cost, and better in one
    of the two. To draw another set of models on the same axes, call
    ``display.plot(ax=first.ax_)``.

    Parameters
    ----------
    names : list of n str
        Names of the models.
    quality : ndarray of float64 of shape (n,)
        The larger the better.
    cost : ndarray of float64 of shape (n,)
        The smaller the better, above 0.
    on_front : ndarray of bool of shape (n,)
        Whether the model is on the front.
    quality_label, cost_label : str
        Labels of the axes, with the unit.
    name : str, default=None
        Name of the set of models, for the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
    line_ : matplotlib line
        The front, cheapest first.
    points_ : matplotlib line
        All models.
    texts_ : list of matplotlib annotations
        Names of models.

    Examples
    --------
    >>> from sklearn_xc.inspection import ParetoFrontDisplay
    >>> display = ParetoFrontDisplay.from_results(
    ...     ["small", "slow", "large"], quality=[51.0, 50.0, 60.5], cost=[2.0, 9.0, 40.0],
    ...     quality_label="P@1 (%)", cost_label="training (s)",
    ... )
    >>> display.on_front
    array([ True, False,  True])
    """

    def __init__(
        self,
        *,
        names: list[str],
        quality: np.ndarray,
        cost: np.ndarray,
        on_front: np.ndarray,
        quality_label: str,
        cost_label: str,
        name: str | None = None,
    ) -> None:
        self.names, self.quality, self.cost, self.on_front = names, quality, cost, on_front
        self.quality_label, self.cost_label, self.name = quality_label, cost_label, name

    @classmethod
    def from_results(
        cls,
        names: Any,
        quality: Any,
        cost: Any,
        *,
        quality_label: str = "quality",
        cost_label: str = "cost (s)",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ParetoFrontDisplay":
        """Plot measured models.

        Parameters
        ----------
        names : sequence of n str
            Names of the models.
        quality : array-like of float of shape (n,)
            The larger the better.
        cost : array-like of float of shape (n,)
            The smaller the better: seconds, bytes; above 0.
        quality_label, cost_label : str
            Labels of the axes, with the unit.
        name : str, default=None
            Name of the set of models, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ParetoFrontDisplay

        Raises
        ------
        ValueError
            If an argument is invalid; the message names it and says what was expected.
        TypeError
            For a masked array.
        """
        require_matplotlib(f"{_WHO}.from_results")
        names = _check_names(names)
        for argument, words in (("quality_label", quality_label), ("cost_label", cost_label)):
            if not isinstance(words, str):
                raise ValueError(f"{_WHO}: {argument} must be a str. Got {words!r}.")
        quality = check_numbers(quality, f"{_WHO}: quality", len(names), "name")
        cost = check_numbers(cost, f"{_WHO}: cost", len(names), "name")
        if (cost <= 0).any():
            at = int((cost <= 0).argmax())
            raise ValueError(
                f"{_WHO}: cost must be above 0, its axis is logarithmic. Got {cost[at]:g} for "
                f"{names[at]!r}."
            )
        return cls(
            names=names,
            quality=quality,
            cost=cost,
            on_front=_front(quality, cost),
            quality_label=quality_label,
            cost_label=cost_label,
            name=check_name(name, _WHO),
        ).plot(ax=ax, **kwargs)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Any,
        *,
        quality: str = "mean_test_score",
        cost: str = "mean_fit_time",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ParetoFrontDisplay":
        """Plot the candidates of a search.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of a fitted search. Candidates that failed, whose quality or cost is
            NaN, are left out; the others are named by the parameters that vary.
        quality, cost : str
            The columns to draw, such as "mean_test_P@1" and "mean_score_time".
        name : str, default=None
            Name of the search, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ParetoFrontDisplay

        Raises
        ------
        ValueError
            As in ``from_results``, and for results without these columns.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.inspection import ParetoFrontDisplay
        >>> from sklearn_xc.model_selection import GridSearchCV
        >>> X = np.tile(np.eye(3), (4, 1))
        >>> search = GridSearchCV(OvALinearXC(), {"C": [0.1, 1.0]}, scoring="P@1", cv=2)
        >>> search = search.fit(X, csr_array(X))
        >>> display = ParetoFrontDisplay.from_cv_results(search.cv_results_)
        >>> len(display.on_front), bool(display.on_front.any())
        (2, True)
        """
        require_matplotlib(f"{_WHO}.from_cv_results")
        if not hasattr(cv_results, "keys") or "params" not in cv_results:
            raise ValueError(
                f"{_WHO}: cv_results must be cv_results_ of a fitted search, a dict with 'params'. "
                f"Got {type(cv_results).__name__}."
            )
        for argument, column in (("quality", quality), ("cost", cost)):
            if not isinstance(column, str) or column not in cv_results:
                means = [key for key in cv_results if key.startswith("mean_")]
                raise ValueError(
                    f"{_WHO}: {argument} must be one of {', '.join(means)}. Got {column!r}."
                )
        values = np.asarray(cv_results[quality], np.float64)
        costs = np.asarray(cv_results[cost], np.float64)
        kept = np.isfinite(values) & np.isfinite(costs)
        if not kept.any():
            raise ValueError(
                f"{_WHO}: cv_results must have a candidate that did not fail. Got {len(kept)} that "
                "failed."
            )
        names = [
            one for one, keep in zip(_names_of(cv_results["params"]), kept, strict=True) if keep
        ]
        words = {
            "mean_fit_time": "mean time to fit (s)",
            "mean_score_time": "mean time to score (s)",
        }
        return cls.from_results(
            names, values[kept], costs[kept], quality_label=quality.replace("_", " "),
            cost_label=words.get(cost, cost.replace("_", " ")), name=name, ax=ax, **kwargs,
        )  # fmt: skip

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        label_points: str | None = "auto",
        **kwargs: Any,
    ) -> "ParetoFrontDisplay":
        """Draw the models as points, the front as a line, and names beside the points.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        name : str, default=None
            Name of the set of models, for the legend; None takes `name` of the display.
        label_points : {"auto", "all", "front"} or None, default="auto"
            Which models to name; "auto" names all if there are at most 30, otherwise those on the
            front. Names are placed for the current size of the figure.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.plot`` for the front.

        Returns
        -------
        ParetoFrontDisplay
            Itself, with `ax_`, `figure_`, `line_`, `points_` and `texts_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes, or `name` is not a string.
        ValueError
            For any other `label_points`.
        """
        if not (label_points is None or isinstance(label_points, str)) or (
            label_points not in _NAMED
        ):
            raise ValueError(f"{_WHO}: label_points must be one of {_NAMED}. Got {label_points!r}.")
        name = check_name(self.name if name is None else name, _WHO)
        ax = axes_for(ax, f"{_WHO}.plot")
        number = next_number(ax)
        options = look(number) | ({} if name is None else {"label": name})
        order = np.lexsort((self.quality, self.cost))
        front = order[self.on_front[order]]
        drawn = ax.plot(self.cost[front], self.quality[front], **line_style(options, kwargs))
        (self.line_,) = drawn
        (self.points_,) = ax.plot(
            self.cost, self.quality, linestyle="", alpha=0.55,
            **{**look(number), "color": self.line_.get_color()},
        )  # fmt: skip
        mark([self.line_, self.points_], number)
        log_ticks(ax)
        ax.margins(0.12)
        ax.set_xlabel(self.cost_label)
        ax.set_ylabel(self.quality_label)
        finish(ax, "lower right")
        only_front = label_points == "front" or (label_points == "auto" and len(order) > _MANY)
        shown = np.flatnonzero(self.on_front | (not only_front))
        self.texts_ = []
        if label_points is not None:
            self.texts_ = write_names(
                ax, [self.names[i] for i in shown], self.cost[shown], self.quality[shown],
                fontsize=8, color=self.line_.get_color(),
            )  # fmt: skip
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _front(quality: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which points no other beats: of the cheapest first, those better than all before."""
    order = np.lexsort((-quality, cost))
    best = np.maximum.accumulate(quality[order])
    before = np.concatenate(([-np.inf], best[:-1]))
    better = quality[order] > before
    # Equal points are all on the front, or none is.
    is_equal = np.zeros(len(order), bool)
    is_equal[1:] = (np.diff(quality[order]) == 0) & (np.diff(cost[order]) == 0)
    first = np.maximum.accumulate(np.where(is_equal, 0, np.arange(len(order))))
    front = np.empty(len(order), bool)
    front[order] = better[first]
    return front


def _check_names(names: Any) -> list[str]:
    is_some = hasattr(names, "__iter__") and not isinstance(names, str)
    found = list(names) if is_some else []
    if not found or not all(isinstance(one, str) for one in found):
        raise ValueError(f"{_WHO}: names must be a sequence of str, at least one. Got {names!r}.")
    return found


def _names_of(params: list[dict[str, Any]]) -> list[str]:
    """Return the parameters that differ between candidates, of each, as "C=1, loss=hinge"."""
    keys = list(dict.fromkeys(key for one in params for key in one))
    varying = [key for key in keys if len({repr(one.get(key)) for one in params}) > 1] or keys
    return [
        ", ".join(f"{key.split('__')[-1]}={one[key]}" for key in varying if key in one)
        for one in params
    ]
