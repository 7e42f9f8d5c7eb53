"""How training went: a loss over the epochs, or what solving each label took."""

from typing import Any

import numpy as np

from sklearn_xc._topk import unwrap
from sklearn_xc.inspection._style import (
    axes_for,
    check_name,
    finish,
    line_style,
    look,
    mark,
    next_number,
    require_matplotlib,
)

_WHO = "ConvergenceDisplay"
#: Columns of an estimator's report that no display can show as a curve.
_NO_CURVE = ("module", "epoch", "status", "name")
_WORDS = {
    "n_iter": "Newton steps of the label",
    "n_products": "products with the label's Hessian",
    "suboptimality": "bound on the label's objective above its minimum",
    "gradient_norm": "norm of the label's gradient",
    "log_loss": "log-loss (mean of the monitored pairs)",
    "loss": "training loss (mean)",
    "seconds": "seconds",
    "index_recall": "recall of the search index",
    "violations": "share of negatives within the margin",
}
#: Losses that span more than this factor have a logarithmic axis.
_WIDE = 100.0
_DASHES = ("-", "--", "-.")


class ConvergenceDisplay:
    """The course of training, from ``fit_report_``.

    For a model trained in epochs, this shows a column of the report, such as the loss, over the
    epochs or over the seconds since the start, and, on an axis to the right, the score of held-out
    instances if the model has ``validation_scores_``. For a one-vs-all model, which solves each
    label separately, it shows the share of labels that took at most a given number of Newton
    steps, or the same for another column.

    Parameters
    ----------
    x : ndarray of float64 of shape (n_points,)
        The epochs, numbered from 1, or the seconds from the start to the end of each epoch; or, by
        label, the distinct values of the column, in increasing order.
    y : ndarray of float64 of shape (n_points,)
        The column after each epoch; or the share of labels with at most the value in `x`.
    quantity : str
        The column of ``fit_report_``.
    over : {"epoch", "seconds", "label"}
        What `x` is; "label" if the report has a row for each label.
    modules : ndarray of str of shape (n_points,), default=None
        Which module was trained; each module has its own line. None for a single module.
    validation_scores : ndarray of float64 of shape (n_epochs,), default=None
        nDCG@5 of held-out instances after each epoch of the fit without them.
    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
    lines_ : list of matplotlib lines
        One for each module.
    validation_ax_, validation_line_ : matplotlib axes and line, or None
        The axis to the right and the line of the held-out score.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.inspection import ConvergenceDisplay
    >>> X, Y = make_xc_classification(60, 30, 8, nnz_per_row=6, random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(OvALinearXC().fit(X, Y))
    >>> display.quantity, display.over, float(display.y[-1])
    ('n_iter', 'label', 1.0)
    """

    def __init__(
        self,
        *,
        x: np.ndarray,
        y: np.ndarray,
        quantity: str,
        over: str,
        modules: np.ndarray | None = None,
        validation_scores: np.ndarray | None = None,
        name: str | None = None,
    ) -> None:
        self.x, self.y, self.quantity, self.over = x, y, quantity, over
        self.modules, self.validation_scores, self.name = modules, validation_scores, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        quantity: str | None = None,
        over: str = "epoch",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ConvergenceDisplay":
        """Read the report of a fitted estimator, and plot.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``fit_report_``; may be the last step of a Pipeline, or in a search.
        quantity : str, default=None
            A numeric column of ``fit_report_``. None takes "loss", or "n_iter" for a one-vs-all
            model, whose "suboptimality" shows how exactly labels are solved. The "log_loss" of a
            softmax is less noisy than its "loss".
        over : {"epoch", "seconds"}, default="epoch"
            The x axis for a model trained in epochs. Seconds are cumulative over all modules.
        name : str, default=None
            Name of the model, for the legend; None takes the name of its class.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            For an estimator without such a report, and for invalid arguments.
        """
        require_matplotlib(f"{_WHO}.from_estimator")
        if not isinstance(over, str) or over not in ("epoch", "seconds"):
            raise ValueError(f"{_WHO}: over must be 'epoch' or 'seconds'. Got {over!r}.")
        fitted = _with_report(estimator)
        report, who = fitted.fit_report_, type(fitted).__name__
        by_label = "n_iter" in report
        quantity = ("n_iter" if by_label else "loss") if quantity is None else quantity
        values = _column(report, quantity, who)
        name = check_name(who if name is None else name, _WHO)
        if by_label:
            x, counts = np.unique(values, return_counts=True)
            return cls(
                x=x, y=np.cumsum(counts) / len(values), quantity=quantity, over="label", name=name
            ).plot(ax=ax, **kwargs)
        is_timed = over == "seconds"
        steps = report.get("epoch", np.arange(1, len(values) + 1))
        scores = None if is_timed else getattr(fitted, "validation_scores_", None)
        return cls(
            x=np.cumsum(report["seconds"]) if is_timed else np.asarray(steps, np.float64),
            y=values,
            quantity=quantity,
            over=over,
            modules=report.get("module"),
            validation_scores=scores,
            name=name,
        ).plot(ax=ax, **kwargs)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> "ConvergenceDisplay":
        """Draw a line for each module, and the held-out score if there is one.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        name : str, default=None
            Name of the model, for the legend; None takes `name` of the display.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        ConvergenceDisplay
            Itself, with `ax_`, `figure_`, `lines_`, `validation_ax_` and `validation_line_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes, or `name` is not a string.
        ValueError
            If something else has been drawn on the axes.
        """
        name = check_name(self.name if name is None else name, _WHO)
        ax = axes_for(ax, f"{_WHO}.plot")
        number = next_number(ax)
        if number and (ax.get_xlabel(), ax.get_ylabel()) != self._labels():
            raise ValueError(
                f"{_WHO}: ax must show {self.quantity} by {self.over}, or nothing yet. Got axes of "
                f"{ax.get_ylabel()!r} by {ax.get_xlabel()!r}; quantity= and over= choose."
            )
        modules = np.full(len(self.x), "") if self.modules is None else self.modules
        self.lines_ = []
        for part, module in enumerate(dict.fromkeys(modules.tolist())):
            at = modules == module
            label = ": ".join(word for word in (name, module) if word)
            options = look(number) | {"linestyle": _DASHES[part % len(_DASHES)]}
            options |= {"label": label} if label else {}
            if self.over == "label":
                options |= {"marker": "", "drawstyle": "steps-post"}
            options = line_style(options, kwargs)
            x, y = self.x[at], self.y[at]
            if self.over == "label":  # shares rise from 0
                x, y = np.append(x[:1], x), 100 * np.append(0.0, y)
            self.lines_ += ax.plot(x, y, **options)
        mark(self.lines_, number)
        self._draw_validation(ax, name, number, kwargs)
        self._describe(ax)
        others = [] if self.validation_ax_ is None else [self.validation_ax_]
        finish(ax, "center right" if others or self.over == "label" else "best", *others)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_validation(
        self, ax: Any, name: str | None, number: int, kwargs: dict[str, Any]
    ) -> None:
        gid = f"held out {id(ax)}"
        beside = [other for other in ax.figure.axes if other.get_gid() == gid]
        self.validation_ax_, self.validation_line_ = (beside[0] if beside else None), None
        if self.validation_scores is None:
            return
        if self.validation_ax_ is None:
            self.validation_ax_ = ax.twinx()
            self.validation_ax_.set_gid(gid)
            self.validation_ax_.set_ylabel("nDCG@5 of held-out instances (%)")
            self.validation_ax_.spines["top"].set_visible(False)
        options = look(number) | {
            "linestyle": ":", "markerfacecolor": "white", "color": self.lines_[0].get_color(),
            "label": "held out" if name is None else f"{name}: held out",
        }  # fmt: skip
        drawn = self.validation_ax_.plot(
            np.arange(1, len(self.validation_scores) + 1),
            100 * self.validation_scores,
            **line_style(options, {**kwargs, "label": options["label"], "linestyle": ":"}),
        )
        (self.validation_line_,) = drawn
        mark(drawn, number)

    def _labels(self) -> tuple[str, str]:
        """Return what stands at the x axis and at the y axis."""
        words = _WORDS.get(self.quantity, self.quantity.replace("_", " "))
        if self.over == "label":
            return words, "labels at or below (%)"
        return "epoch" if self.over == "epoch" else "training time (s)", words

    def _describe(self, ax: Any) -> None:
        x_label, y_label = self._labels()
        if self.over == "label":
            if self.quantity not in ("n_iter", "n_products") and self.x[0] > 0:
                ax.set_xscale("log")
            ax.set_ylim(0, 103)
        else:
            values = np.concatenate([line.get_ydata() for line in ax.lines])
            values = values[np.isfinite(values)]
            if values.min() > 0 and values.max() > _WIDE * values.min():
                ax.set_yscale("log")
        ax.set_xlabel(x_label)
        ax.set_ylabel(y_label)
        if self.over == "epoch" or self.quantity in ("n_iter", "n_products"):
            ax.xaxis.get_major_locator().set_params(integer=True)


def _with_report(estimator: Any) -> Any:
    """Return the classifier that has a report of epochs or labels, inside an estimator."""
    fitted, _ = unwrap(estimator, None)
    if not hasattr(fitted, "fit_report_") and hasattr(fitted, "classifier_"):  # of texts
        fitted, _ = unwrap(fitted.classifier_, None)
    report = getattr(fitted, "fit_report_", {})
    if not {"loss", "n_iter"} & set(report):
        raise ValueError(
            f"{_WHO}: the estimator must be fitted and have a fit_report_ with a column 'loss' or "
            f"'n_iter'. Got {type(fitted).__name__} without one."
        )
    return fitted


def _column(report: dict[str, np.ndarray], quantity: Any, who: str) -> np.ndarray:
    known = [name for name in report if name not in _NO_CURVE]
    if not isinstance(quantity, str) or quantity not in known:
        raise ValueError(
            f"{_WHO}: quantity must be one of {', '.join(known)} for {who}. Got {quantity!r}."
        )
    values = np.asarray(report[quantity], np.float64)
    if not np.isfinite(values).any():
        raise ValueError(
            f"{_WHO}: quantity must be one of which fit_report_ has finite values. Got "
            f"{quantity!r} of {who}, which has none."
        )
    return values
