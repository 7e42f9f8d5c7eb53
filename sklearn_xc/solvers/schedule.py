"""How learning rates fall."""

from dataclasses import dataclass


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

    def within_epoch(self, epochs: float, n_visits: int) -> tuple[float, float]:
        """Return the rate r after some epochs, and s: after t of n visits more it is r / (1 + s t).

        Epochs of `n_visits` visits each.
        """
        slowing = 1.0 / (n_visits * (1.0 + epochs)) if self.decay == "1/t" else 0.0
        return self.after(epochs), slowing
