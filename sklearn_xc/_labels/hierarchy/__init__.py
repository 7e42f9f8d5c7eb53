"""Labels below and above one another: categories, broader terms, folders.

label_hierarchy.py  LabelHierarchy: how it is made, and what it does to labels and answers
graph.py            names and edges of mappings, pairs and paths; depths, cycles, ancestors
answers.py          indicators and rankings with ancestors, and without
"""

from sklearn_xc._labels.hierarchy.label_hierarchy import LabelHierarchy

__all__ = ["LabelHierarchy"]
