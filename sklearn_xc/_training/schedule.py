"""How learning rates fall."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Schedule:
    """Learning rates by the number of epochs done.

    Attributes
    ----------
    rate : float
        At the beginning.
    decay : float or "1/t"
        What the rate is multiplied with after each epoch, or ``rate / (1 + epochs)``, falling also
        within an epoch.
    """

    rate: float
    decay: float | str

    def after(self, epochs: float) -> float:
        """Return the rate after some epochs and a part of one."""
        if self.decay == "1/t":
            return self.rate / (1.0 + epochs)
        return self.rate * float(self.decay) ** int(epochs)

    def following(self, epochs: int, n_epochs: int) -> float:
        """Return the sum of the rates of the next epochs, in units of that of the last one done."""
        if self.decay == "1/t":
            return float((epochs / (epochs + 1.0 + np.arange(n_epochs))).sum())
        decay = float(self.decay)
        return n_epochs if decay == 1.0 else decay * (1.0 - decay**n_epochs) / (1.0 - decay)

    def within_epoch(self, epochs: float, n_visits: int) -> tuple[float, float]:
        """Return the rate r after some epochs, and s: after t of n visits more it is r / (1 + s t).

        Epochs of `n_visits` visits each.
        """
        slowing = 1.0 / (n_visits * (1.0 + epochs)) if self.decay == "1/t" else 0.0
        return self.after(epochs), slowing
