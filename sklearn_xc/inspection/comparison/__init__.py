"""Two models on the same instances: what one gains on the other, for which labels, and why.

::

    compare_models    compare.py          asks both models, and puts the parts together
                      common_labels.py    labels and truth of both, matched by name
                      measures.py         metrics, groups of labels, single labels
                      cases.py            instances of which one model is right, explained
    ModelComparison   model_comparison.py the parts, as text, page, dictionary and frames
                      as_text.py          for terminals
                      as_html.py          for notebooks, and as a page
"""

from sklearn_xc.inspection.comparison.compare import compare_models
from sklearn_xc.inspection.comparison.model_comparison import ModelComparison

__all__ = ["ModelComparison", "compare_models"]
