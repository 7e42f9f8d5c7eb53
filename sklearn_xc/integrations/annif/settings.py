"""Settings of an Annif project for its model, as texts or as values of TOML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn_xc._labels.names import did_you_mean
from sklearn_xc.command_line.models import read_value

#: Name of the backend in a project: ``backend=sklearn_xc``.
BACKEND = "sklearn_xc"
ESTIMATORS = (
    "OvALinearXC",
    "OvALinearXCCV",
    "SoftmaxUMax",
    "ImplicitSoftmaxSGD",
    "DecompMIPSClassifier",
    "NGAMEEmbeddingXC",
    "StackingXC",
)
CALIBRATIONS = ("spline", "sigmoid", "none")
#: Parameters of the estimator and of the vectorizer begin so.
_PREFIXES = {"set": "estimator", "vectorizer": "vectorizer"}
#: Of the other keys; Annif shows them as those of the backend.
DEFAULTS = {"estimator": "OvALinearXC", "calibration": "spline", "min_df": 1}
_KEYS = (*_PREFIXES, *DEFAULTS)
#: Keys that Annif itself reads.
_ANNIF_KEYS = (
    *("name", "language", "backend", "vocab", "analyzer"),
    *("transform", "limit", "access", "allow_learn"),
)


class SettingsError(ValueError):
    """A project has invalid settings."""


@dataclass(frozen=True)
class Settings:
    """Settings of a project for its model.

    Attributes
    ----------
    estimator : str
        One of `ESTIMATORS`.
    parameters : dict
        Of the estimator, by name.
    vectorizer : dict
        Of the vectorizer, by name.
    calibration : str or None
        A method of TopKCalibrator; None for none, and for an estimator that has probabilities of
        its own.
    """

    estimator: str = "OvALinearXC"
    parameters: dict[str, Any] = field(default_factory=dict)
    vectorizer: dict[str, Any] = field(default_factory=dict)
    calibration: str | None = "spline"


def read_settings(config: Mapping[str, Any]) -> Settings:
    """Return the settings in the section of a project.

    Parameters
    ----------
    config : mapping of str to object
        ``estimator``, ``calibration``, ``min_df``; ``set.NAME`` and ``vectorizer.NAME``, or
        mappings under ``set`` and ``vectorizer``; and the keys of Annif itself.

    Returns
    -------
    Settings

    Raises
    ------
    SettingsError
        For an unknown key, estimator or calibration, and for a `min_df` that is not a number.

    Examples
    --------
    >>> from sklearn_xc.integrations.annif.settings import read_settings
    >>> read_settings({"language": "en", "set.C": "1"}).parameters
    {'C': 1}
    """
    config = {**DEFAULTS, **config}
    estimator = str(config["estimator"])
    if estimator not in ESTIMATORS:
        raise SettingsError(f"estimator must be one of {', '.join(ESTIMATORS)}. Got {estimator!r}.")
    _refuse_unknown_keys(config)
    calibration = str(config["calibration"]).lower()
    if calibration not in CALIBRATIONS:
        raise SettingsError(
            f"calibration must be one of {', '.join(CALIBRATIONS)}. Got {calibration!r}."
        )
    return Settings(
        estimator,
        _below("set", config),
        {"min_df": read_count(config, "min_df", 1), **_below("vectorizer", config)},
        None if calibration == "none" or estimator == "StackingXC" else calibration,
    )


def _refuse_unknown_keys(config: Mapping[str, Any]) -> None:
    known = (*_KEYS, *_ANNIF_KEYS)
    prefixes = tuple(f"{prefix}." for prefix in _PREFIXES)
    for key in config:
        if key not in known and not key.startswith(prefixes):
            hint = did_you_mean(key, known)
            raise SettingsError(f"A project with backend=sklearn_xc has no key {key!r}.{hint}")


def read_count(config: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number of at least 1.

    Raises
    ------
    SettingsError
        For anything else.
    """
    value = read_value(config.get(key, default))
    if type(value) is not int or value < 1:
        raise SettingsError(f"{key} must be a whole number of at least 1. Got {config.get(key)!r}.")
    return value


def _below(prefix: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all keys that begin with a prefix, or are in a table of that name."""
    found = {}
    for key, value in config.items():
        if key == prefix:
            if not isinstance(value, Mapping):
                raise SettingsError(
                    f"{prefix}.NAME = VALUE sets a parameter of the {_PREFIXES[prefix]}. Got "
                    f"{prefix} = {value!r}."
                )
            found.update({name: read_value(one) for name, one in value.items()})
        elif key.startswith(f"{prefix}."):
            found[key.removeprefix(f"{prefix}.")] = read_value(value)
    return found
