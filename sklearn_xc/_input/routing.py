"""Arguments of ``fit`` for the estimators inside another one."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from sklearn_xc._warnings import warn


class RoutesFit:
    """Passes arguments of ``fit`` on to the estimators inside and to `cv`.

    The rules are those of :class:`sklearn.calibration.CalibratedClassifierCV`, but without metadata
    routing weights reach the last step of a Pipeline, too.
    """

    #: Whether weights also count after the training of the parts.
    _weighs_answers = True

    def _routed_parts(self) -> dict[str, Any]:
        """Return the estimators to fit, by name; None for a default. Defined by subclasses."""
        raise NotImplementedError

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that ``fit`` passes on to the estimators inside and to `cv`.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(method_mapping=to_fit, **self._routed_parts())
        return router.add(cv=getattr(self, "cv", None), method_mapping=to_split)

    def _routed(self, weight: np.ndarray | None, params: Mapping[str, Any]) -> Bunch:
        """Return the arguments of ``fit`` of each part, by its name, and of ``cv.split``."""
        parts = self._routed_parts()
        caller = type(self).__name__
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, **params)
        else:
            if params and not parts.keys() - {"final_estimator"}:
                raise TypeError(
                    f"{caller}: fit got {sorted(params)}, but trains no estimator that takes them. "
                    "Arguments for cv need metadata routing: "
                    "sklearn.set_config(enable_metadata_routing=True)."
                )
            routed = Bunch(cv=Bunch(split={}))
            for name, part in parts.items():
                further = {} if name == "final_estimator" else params
                routed[name] = Bunch(fit={**further, **self._weight_argument(name, part, weight)})
        for name, part in parts.items():
            if part is None and weight is not None:
                routed[name] = Bunch(fit={"sample_weight": weight})
        return routed

    def _weight_argument(self, name: str, part: Any, weight: np.ndarray | None) -> dict[str, Any]:
        """Return weights as an argument of ``fit`` of a part, in a Pipeline of its last step."""
        if part is None or weight is None:
            return {}
        prefix = ""
        while hasattr(part, "steps"):
            step, part = part.steps[-1]
            prefix += f"{step}__"
        taken = signature(part.fit).parameters.values()
        takes_weights = any(
            one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in taken
        )
        if self._weighs_answers and not takes_weights:
            warn(
                f"{type(self).__name__}: {name} does not take sample_weight: it is trained without "
                "weights, and only what is learned from its scores is weighted.",
            )
            return {}
        return {f"{prefix}sample_weight": weight}
