"""Random directed acyclic graphs, and what they mean worked out node by node."""

import numpy as np
from hypothesis import strategies as st

from sklearn_xc import LabelHierarchy


@st.composite
def graphs(draw, most=12):
    """Return a number of nodes and distinct edges (child, parent), without cycles."""
    n = draw(st.integers(1, most))
    order = draw(st.permutations(range(n)))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] > p[1])
    found = draw(st.sets(pairs, max_size=2 * n)) if n > 1 else set()
    return n, [(order[a], order[b]) for a, b in sorted(found)]


def made(graph):
    n, edges = graph
    return LabelHierarchy(np.arange(n), np.array(edges, int).reshape(-1, 2))


def above(edges, node):
    """Return the set of nodes above one, by walking up."""
    found, todo = set(), [node]
    while todo:
        child = todo.pop()
        for one, parent in edges:
            if one == child and parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


def closed(edges, nodes):
    """Return nodes and all above them."""
    return set(nodes).union(*(above(edges, node) for node in nodes))
