"""Labels below and above one another: categories, broader terms, folders.

label_hierarchy.py  LabelHierarchy: how it is made, and what it does to labels and answers
edges.py            mappings, paths and pairs as names and edges
closure.py          all ancestors of each node; cycles
answers.py          indicators and rankings with ancestors, and without
"""

from sklearn_xc.hierarchy.label_hierarchy import LabelHierarchy

__all__ = ["LabelHierarchy"]
