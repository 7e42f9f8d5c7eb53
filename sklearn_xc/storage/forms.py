"""Records that have another form in a folder than in a pickle."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn_xc._plain_state import KIND, STATE, as_plain, from_plain
from sklearn_xc.weights import compact
from sklearn_xc.weights.compact import HeldCompact
from sklearn_xc.weights.label_weights import CompactLabelWeights, LabelWeights
from sklearn_xc.weights.stored import BY_PART, StoredWeights, as_stored
from sklearn_xc.weights.tensors import Tensors

_BESIDE = ("intercept", "prior", "unseen")


class ByPart(NamedTuple):
    """An array of which a part is checked when it is read."""

    array: Any


class OneFile(NamedTuple):
    """Arrays by name that are in one file."""

    arrays: Any


def _write_weights(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return weights by feature, of the plain state of `LabelWeights`."""
    form = as_stored({**state, "coef": from_plain(state["coef"])})
    if form is None:
        return None
    arrays = {
        name: ByPart(array) if name in BY_PART else array for name, array in form["arrays"].items()
    }
    beside = {name: state[name] for name in _BESIDE}
    return {**beside, **form, "arrays": arrays}


def _read_weights(state: dict[str, Any]) -> LabelWeights:
    beside = [state.pop(name) for name in _BESIDE]
    return LabelWeights.held_by(StoredWeights(**state), *beside)


def _write_compact(state: dict[str, Any]) -> dict[str, Any]:
    arrays = {
        name: ByPart(array) if name in compact.BY_PART else array
        for name, array in state["arrays"].items()
    }
    return {**state, "arrays": arrays}


def _read_compact(state: dict[str, Any]) -> CompactLabelWeights:
    beside = [state.pop(name) for name in _BESIDE]
    return CompactLabelWeights.held_by(HeldCompact(**state), *beside)


def _write_tensors(state: dict[str, Any]) -> dict[str, Any]:
    return {"arrays": OneFile(state["arrays"])}


def _read_tensors(state: dict[str, Any]) -> Tensors:
    return Tensors(**state)


def _write_encoder(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return an encoder without objects of other libraries, which only ``fit`` needs."""
    objects = {
        name: {KIND: "NotSaved", STATE: (type(state[name]).__name__,)}
        for name in ("model", "tokenizer")
        if not isinstance(state[name], str | os.PathLike | dict | None)
    }
    return {**state, **objects} if objects else None


def _read_encoder(state: dict[str, Any]) -> Any:
    return from_plain({KIND: "TransformerEncoder", STATE: state})


def _compacted(state: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the compact record of the same weights, of the plain state of `LabelWeights`."""
    held = compact.compact(from_plain(state["coef"])).state()
    return "CompactLabelWeights", as_plain({**held, **{name: state[name] for name in _BESIDE}})


class Form(NamedTuple):
    """How a record is kept in a folder.

    `write` makes its form of its plain state, or None if that has none; `read` reads it; `format`
    is the first format of folders that has it; `compact` returns a smaller record of about the
    same.
    """

    write: Callable[..., Any]
    read: Callable[..., Any]
    format: int
    compact: Callable[..., tuple[str, dict[str, Any]]] | None = None


#: By the name of a record.
FORMS = {
    "LabelWeights": Form(_write_weights, _read_weights, 1, _compacted),
    "CompactLabelWeights": Form(_write_compact, _read_compact, 2),
    "TransformerEncoder": Form(_write_encoder, _read_encoder, 3),
    "Tensors": Form(_write_tensors, _read_tensors, 3),
}
