"""What training did: an epoch's figures, and those of a fit as a table."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class EpochReport(NamedTuple):
    """What an epoch has seen.

    Attributes
    ----------
    loss : float
        Weighted mean of the instances, as seen in the steps.
    violations : float
        Of all pairs of an instance and a label of its mini-batch that is not its drawn one, the
        share that was a negative within the margin.
    sampler_s, seconds : float
        Wall seconds of the sampler's refresh, and of all.
    """

    loss: float
    violations: float
    sampler_s: float
    seconds: float

    @classmethod
    def joined(cls, reports: Sequence["EpochReport"]) -> "EpochReport":
        """Return what label shards have seen in an epoch: means, and the time of all."""
        losses, shares, sampler_s, seconds = map(np.array, zip(*reports, strict=True))
        return cls(
            float(losses.mean()), float(shares.mean()), float(sampler_s.sum()),
            float(seconds.sum()),
        )  # fmt: skip

    def __str__(self) -> str:
        return f"loss {self.loss:.4g}, {100 * self.violations:.2g} % of negatives within the margin"


#: ``fit_report_``: columns of equal length.
FitReport = dict[str, np.ndarray]


def of_module(report: FitReport, module: str) -> FitReport:
    """Return the epochs of one module."""
    at = report["module"] == module
    return {name: values[at] for name, values in report.items()}


def extended(report: FitReport | None, module: str, epochs: Sequence[EpochReport]) -> FitReport:
    """Return a report with the epochs of a module behind the others, numbered on.

    Parameters
    ----------
    report : dict of ndarray or None
        None for an empty one.
    module : {"encoder", "classifier"}
    epochs : sequence of EpochReport
    """
    if report is None:
        report = {
            "module": np.empty(0, "<U10"), "epoch": np.empty(0, np.int64), "loss": np.empty(0),
            "violations": np.empty(0), "seconds": np.empty(0),
        }  # fmt: skip
    first = 1 + int((report["module"] == module).sum())
    new = {
        "module": np.full(len(epochs), module, "<U10"),
        "epoch": np.arange(first, first + len(epochs)),
        "loss": np.array([epoch.loss for epoch in epochs], np.float64),
        "violations": np.array([epoch.violations for epoch in epochs], np.float64),
        "seconds": np.array([epoch.seconds for epoch in epochs], np.float64),
    }
    return {name: np.concatenate([values, new[name]]) for name, values in report.items()}
