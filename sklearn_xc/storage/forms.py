"""Records that have another form in a folder than in a pickle, read part by part."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn_xc._plain_state import from_plain
from sklearn_xc.weights.label_weights import LabelWeights
from sklearn_xc.weights.stored import BY_PART, StoredWeights, as_stored


@dataclass(frozen=True)
class ByPart:
    """An array of which a part is checked when it is read.

    Attributes
    ----------
    array : ndarray
    """

    array: Any


def _write_weights(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return weights by feature, of the plain state of `LabelWeights`."""
    form = as_stored({**state, "coef": from_plain(state["coef"])})
    if form is None:
        return None
    arrays = {
        name: ByPart(array) if name in BY_PART else array for name, array in form["arrays"].items()
    }
    beside = {name: state[name] for name in ("intercept", "prior", "unseen")}
    return {**beside, **form, "arrays": arrays}


def _read_weights(state: dict[str, Any]) -> LabelWeights:
    beside = [state.pop(name) for name in ("intercept", "prior", "unseen")]
    return LabelWeights.in_files(StoredWeights(**state), *beside)


#: By the name of a record, what makes its form in a folder of its plain state (None: it has none),
#: and what reads that.
FORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "LabelWeights": (_write_weights, _read_weights),
}
