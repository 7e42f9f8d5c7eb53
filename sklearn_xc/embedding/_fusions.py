"""The ways of fusing that learn, by name; "sum" is that of none."""

from typing import Any

from sklearn_xc.embedding._boosted_fusion import BoostedFusion
from sklearn_xc.embedding._tree_fusion import TreeFusion

#: Of the parameter ``fusion``.
FUSIONS: dict[str, Any] = {"boosting": BoostedFusion, "tree": TreeFusion}
