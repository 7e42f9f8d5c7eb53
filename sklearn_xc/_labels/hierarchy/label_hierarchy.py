"""LabelHierarchy: which labels are below which."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_sequence, check_count, refuse_masks_and_dates
from sklearn_xc._labels.hierarchy.answers import (
    consistent,
    deepest,
    read_indicator,
    read_ranking,
    read_scores,
    with_ancestors,
)
from sklearn_xc._labels.hierarchy.graph import (
    WHO,
    ancestors_of,
    depths_of,
    names_and_edges,
    names_and_edges_of_paths,
    pairs_of,
    parents_of,
)
from sklearn_xc._labels.name_lists import are_name_lists, check_separator, read_name_lists
from sklearn_xc._labels.names import check_label_names, did_you_mean
from sklearn_xc.metrics.check import topk_of_csr


class LabelHierarchy:
    """Labels below and above one another, as in a thesaurus, a product taxonomy or folders.

    A node may have several parents; nodes that are not labels of a model may lie above those that
    are. Make a hierarchy with :meth:`from_paths`, :meth:`from_parents` or :meth:`from_edges`.

    Labels given as columns or positions are the first nodes: column j is node j, and a matrix with
    fewer columns than there are nodes lacks the last nodes. `labels` of the methods that make a
    hierarchy puts the labels of a model first, :meth:`restricted` keeps only these. Lists of names
    are matched by name: that of a node of :meth:`from_paths` is its whole path, since last parts
    may recur, and otherwise as given.

    Parameters
    ----------
    names : array-like of shape (n_nodes,)
        Names of the nodes: distinct texts or integers.
    edges : array-like of int of shape (n_edges, 2)
        Positions of a child and one of its parents, each pair once.

    Attributes
    ----------
    names : ndarray of shape (n_nodes,)
        Names of the nodes, of dtype object if these are texts.
    n_nodes : int
        Number of nodes.
    parents : csr_array of bool of shape (n_nodes, n_nodes)
        A row for each child.
    roots : ndarray of int64 of shape (n_roots,)
        Positions of the nodes without parents.
    ancestors : csr_array of bool of shape (n_nodes, n_nodes)
        All nodes above each node, without the node itself. Computed on first access.

    Raises
    ------
    ValueError
        For names that are equal or of different kinds, edges that are repeated, lead from a node
        to itself or are out of range, and cycles; the message names the nodes.
    TypeError
        For anything other than names and edges.
    MemoryBudgetError
        On any use of `ancestors`, if these do not fit into memory.

    See Also
    --------
    sklearn_xc.metrics.hierarchical_f1 : F1 with ancestors on both sides.

    Notes
    -----
    A hierarchy never changes once it is made: clones of an object that holds one share it. Its
    arrays are read-only. Memory grows with the number of edges and of pairs of a node and an
    ancestor: five bytes each, and up to four times that while they are made. A million nodes take
    some seconds.

    Examples
    --------
    >>> from sklearn_xc import LabelHierarchy
    >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant", "moss": "plant"})
    >>> kinds.with_ancestors([["oak"], ["moss", "tree"]])
    [['oak', 'tree', 'plant'], ['tree', 'moss', 'plant']]
    >>> kinds.deepest([["oak", "tree", "plant", "moss"]])
    [['oak', 'moss']]
    """

    def __init__(self, names: Any, edges: Any) -> None:
        names = check_label_names(names, None, f"{WHO}: names")
        if not len(names):
            raise ValueError(f"{WHO}: a hierarchy has at least one node. Got none.")
        self._set(names, _as_parents(names, edges), None)
        self._depths, cycle = depths_of(self.parents)
        if cycle:
            shown = [*map(repr, names[[*cycle, cycle[0]]].tolist())]
            shown = shown if len(shown) < 9 else [*shown[:4], "...", *shown[-4:]]
            raise ValueError(
                f"{WHO}: no node may be above itself. Got a cycle from child to parent: "
                f"{' > '.join(shown)}."
            )

    def _folder_state(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"names": self.names, "edges": np.column_stack(self.parents.nonzero())}

    @classmethod
    def _from_folder_state(cls, state: dict[str, Any]) -> "LabelHierarchy":
        """Return a hierarchy made, and checked, by the constructor."""
        return cls(**state)

    def _set(self, names: np.ndarray, parents: sp.csr_array, ancestors: Any) -> None:
        names.flags.writeable = False
        self.names = names
        self.n_nodes = len(names)
        self.parents = _frozen(parents)
        self.roots = np.flatnonzero(np.diff(parents.indptr) == 0)
        self._ancestors = ancestors
        self._position: dict[Any, int] = {}

    @classmethod
    def from_parents(cls, parents: Any, labels: Any = None) -> "LabelHierarchy":
        """Make a hierarchy from the parents of each node.

        Parameters
        ----------
        parents : mapping of name to name or names, or pandas Series
            The parent of each name, or a list of several; None for none. Names that occur only as
            parents have no parents.
        labels : array-like of shape (n_labels,), default=None
            Names of the first nodes, such as ``classes_``; those that `parents` does not mention
            stand alone.

        Returns
        -------
        LabelHierarchy
            Nodes: `labels`, then names in the order of `parents`, then the others.

        Raises
        ------
        ValueError, TypeError
            For anything else, and as the class.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> pets = LabelHierarchy.from_parents({"dog": ["mammal", "pet"], "mammal": None})
        >>> pets.names.tolist()
        ['dog', 'mammal', 'pet']
        """
        if not callable(getattr(parents, "items", None)) or hasattr(parents, "columns"):
            raise TypeError(
                f"{WHO}: parents must be a mapping of names to names. Got {type(parents).__name__}."
            )
        pairs = [(child, one) for child, given in parents.items() for one in parents_of(given)]
        return cls(*names_and_edges([child for child, _ in parents.items()], pairs, labels))

    @classmethod
    def from_edges(cls, edges: Any, labels: Any = None) -> "LabelHierarchy":
        """Make a hierarchy from pairs of names.

        Parameters
        ----------
        edges : iterable of (child, parent), or array-like of shape (n_edges, 2)
            Names, texts or integers.
        labels : array-like of shape (n_labels,), default=None
            Names of the first nodes; those without an edge stand alone.

        Returns
        -------
        LabelHierarchy
            Nodes: `labels`, then names in order of first appearance.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> LabelHierarchy.from_edges([("oak", "tree"), ("tree", "plant")], labels=["tree"]).names
        array(['tree', 'oak', 'plant'], dtype=object)
        """
        return cls(*names_and_edges([], pairs_of(edges), labels))

    @classmethod
    def from_paths(cls, paths: Any, *, separator: str = "/") -> "LabelHierarchy":
        """Make a hierarchy from paths, in which the part before a separator is above the rest.

        Parameters
        ----------
        paths : iterable of n_paths str
            Such as "plants/trees/oak", each once. Each prefix of a path is also a node, whether
            listed or not.
        separator : str, default="/"
            What separates names. Blanks around it make no difference to which node is above which.

        Returns
        -------
        LabelHierarchy
            Nodes: the paths, then prefixes that are not listed. Each is named by its path.

        Raises
        ------
        ValueError, TypeError
            For anything else, and as the class.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> shop = LabelHierarchy.from_paths(["Home > Lamps", "Garden > Lamps"], separator=" > ")
        >>> shop.names.tolist()
        ['Home > Lamps', 'Garden > Lamps', 'Home', 'Garden']
        """
        if check_separator(separator, WHO) is None:
            raise ValueError(f"{WHO}: separator must be a text such as '/'. Got None.")
        return cls(*names_and_edges_of_paths(paths, separator))

    @property
    def ancestors(self) -> sp.csr_array:
        """All nodes above each node, a csr_array of bool."""
        if self._ancestors is None:
            self._ancestors = _frozen(ancestors_of(self.parents, self._depths))
        return self._ancestors

    def restricted(self, classes: Any) -> "LabelHierarchy":
        """Return the hierarchy of only the labels of a model.

        A label stays above another even if the nodes between them are left out.

        Parameters
        ----------
        classes : array-like of shape (n_labels,)
            ``classes_`` of a classifier: names of nodes.

        Returns
        -------
        LabelHierarchy
            Nodes: `classes`. The parents of each are its nearest ancestors among them.

        Raises
        ------
        ValueError
            For a class that is not a node.

        Examples
        --------
        Without the tree, the oak is still below the plant:

        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant", "moss": "plant"})
        >>> kinds.restricted(["oak", "plant"]).with_ancestors([["oak"]])
        [['oak', 'plant']]
        """
        names = check_label_names(classes, None, f"{WHO}: classes")
        chosen = self._find(names.tolist(), "classes")
        if np.array_equal(chosen, np.arange(self.n_nodes)):
            return self
        above = sp.csr_array(self.ancestors[chosen][:, chosen])
        above.sort_indices()
        made = object.__new__(type(self))  # without the search for cycles: there are none
        made._set(self.names[chosen], deepest(above, above), _frozen(above))
        return made

    def encode(self, y: Any) -> sp.csr_array:
        """Return names as an indicator of nodes.

        Parameters
        ----------
        y : sequence of n lists of names, or of n names
            As :class:`~sklearn_xc.TextClassifierXC` returns them.

        Returns
        -------
        csr_array of int8 of shape (n, n_nodes)

        Raises
        ------
        ValueError, TypeError
            For a name that is not a node, and for anything other than names.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant", "moss": "plant"})
        >>> kinds.names.tolist()
        ['oak', 'tree', 'moss', 'plant']
        >>> kinds.encode([["oak"], ["moss", "tree"]]).toarray()
        array([[1, 0, 0, 0],
               [0, 1, 1, 0]], dtype=int8)
        """
        y = as_sequence(y)
        if _is_flat(y):
            y = [[name] for name in (y.tolist() if hasattr(y, "tolist") else y)]
        rows = read_name_lists(y, None, WHO)
        columns = self._find([name for row in rows for name in row], "y")
        indptr = np.cumsum([0, *map(len, rows)])
        ones = np.ones(len(columns), np.int8)
        Y = sp.csr_array((ones, columns, indptr), shape=(len(rows), self.n_nodes))
        Y.sort_indices()
        return Y

    def with_ancestors(self, y: Any) -> Any:
        """Return labels with all their ancestors.

        For targets before ``fit``, and for what ``predict`` returns: afterwards, no label lacks
        its ancestors.

        Parameters
        ----------
        y : {array-like, sparse matrix} of shape (n, n_labels), or sequence of n lists of names, \
                or of n names
            An indicator with a column for each of the first nodes, or names.

        Returns
        -------
        csr_array, csr_matrix or ndarray of shape (n, n_nodes), or list of n lists of names
            In the form of `y`, a CSR if it is sparse, and of the same dtype. Names are in the
            order of the nodes.

        Raises
        ------
        ValueError, TypeError
            For a name that is not a node, more columns than nodes, and anything other than an
            indicator or names.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_paths(["plant/oak", "plant/moss"])
        >>> kinds.with_ancestors(np.array([[1, 0], [0, 0]]))
        array([[1, 0, 1],
               [0, 0, 0]])
        """
        return self._changed(y, with_ancestors)

    def deepest(self, y: Any) -> Any:
        """Return labels without those that are above another label of the same row.

        Parameters
        ----------
        y : {array-like, sparse matrix} of shape (n, n_labels), or sequence of n lists of names, \
                or of n names
            As in :meth:`with_ancestors`.

        Returns
        -------
        csr_array, csr_matrix or ndarray of shape (n, n_nodes), or list of n lists of names
            As in :meth:`with_ancestors`.

        Raises
        ------
        ValueError, TypeError
            As in :meth:`with_ancestors`.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant", "moss": "plant"})
        >>> kinds.deepest([["oak", "tree", "moss"], ["plant"]])
        [['oak', 'moss'], ['plant']]
        """
        return self._changed(y, deepest)

    def consistent_topk(
        self, labels: Any, scores: Any, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels, each scored at least as high as the best label below it.

        ``hierarchy.consistent_topk(*topk(model, X, 5))`` ranks no label above its ancestors, and
        adds ancestors that are missing from the ranking.

        Parameters
        ----------
        labels : array-like of int of shape (n, k_given)
            Positions of nodes, -1 for none, of the best labels of each row, as
            :func:`sklearn_xc.topk` returns them. If some nodes are not labels of the model, use
            ``hierarchy.restricted(model.classes_)``.
        scores : array-like of float of shape (n, k_given)
            Scores of any kind: margins or probabilities.
        k : int, default=None
            Number of labels to return; None for as many as are given.

        Returns
        -------
        labels : ndarray of int64 of shape (n, k)
            Padded with -1; ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Padded with -inf.

        Raises
        ------
        ValueError, TypeError
            For other shapes, positions that are not nodes, and NaN.

        Notes
        -----
        Raising a label to the largest score below it is the smallest change that makes scores
        consistent without lowering any. For probabilities it gives a bound: an instance that has a
        label also has the label's ancestors, so these are at least as likely as the likeliest
        label below. A noisy-or would assume that the labels below are independent, which is rarely
        true of siblings. Source: "Max" of [1]_, the constraint of [2]_; applied here after
        training, and only to the given labels.

        Nothing is lost by this. If a label is neither among the k best nor above one of them, no
        label below it scores more than the last of these. So for `k` up to ``k_given``, the scores
        are those of a ranking of all labels, however many there are.

        References
        ----------
        .. [1] G. Obozinski et al., "Consistent probabilistic outputs for protein function
           prediction", Genome Biology 9 (Suppl 1), S6, 2008.
        .. [2] E. Giunchiglia and T. Lukasiewicz, "Coherent hierarchical multi-label classification
           networks", NeurIPS 2020.

        Examples
        --------
        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "moss": "plant", "tree": "plant"})
        >>> labels, scores = kinds.consistent_topk([[0, 3, 2]], [[0.9, 0.4, 0.2]])
        >>> kinds.names[labels]
        array([['oak', 'tree', 'plant']], dtype=object)
        >>> scores
        array([[0.9, 0.9, 0.9]])
        """
        given = read_ranking(labels, scores, self.n_nodes, WHO)
        k = np.shape(labels)[1] if k is None else check_count(k, f"{WHO}: k")
        return topk_of_csr(consistent(given, self.ancestors), k)

    def consistent_scores(self, scores: Any) -> Any:
        """Return sparse scores in which no label lacks its ancestors or scores above them.

        Parameters
        ----------
        scores : sparse matrix of shape (n, n_labels)
            Scores of the best labels of each row, as ``decision_function`` or ``predict_proba``
            returns them after a sparse fit; entries that are not stored are not scored.

        Returns
        -------
        csr_array or csr_matrix of shape (n, n_nodes)
            Scores by the rule of :meth:`consistent_topk`.

        Raises
        ------
        ValueError, TypeError
            For more columns than nodes, NaN, and anything that is not sparse.

        Examples
        --------
        A tree is at least as likely as an oak:

        >>> from scipy.sparse import csr_array
        >>> from sklearn_xc import LabelHierarchy
        >>> kinds = LabelHierarchy.from_parents({"oak": "tree", "tree": "plant"})
        >>> kinds.consistent_scores(csr_array([[0.9, 0.2, 0.95]])).toarray()
        array([[0.9 , 0.9 , 0.95]])
        """
        given = read_scores(scores, self.n_nodes, f"{WHO}: scores")
        return _as_given(consistent(given, self.ancestors), scores)

    def __repr__(self) -> str:
        """Return its size."""
        return f"LabelHierarchy({self.n_nodes} nodes, {self.parents.nnz} edges)"

    def __sklearn_clone__(self) -> "LabelHierarchy":
        return self

    def _changed(self, y: Any, change: Any) -> Any:
        y = as_sequence(y)
        is_names = are_name_lists(y) or _is_flat(y)
        given = self.encode(y) if is_names else y
        changed = change(read_indicator(given, self.n_nodes, f"{WHO}: Y"), self.ancestors)
        if is_names:
            names = self.names[changed.indices].tolist()
            ends = changed.indptr.tolist()
            return [names[a:b] for a, b in pairwise(ends)]
        dtype = np.dtype(getattr(y, "dtype", np.int64)).newbyteorder("=")
        return _as_given(changed.astype(dtype), y)

    def _find(self, names: list, argument: str) -> np.ndarray:
        """Return the position of each name."""
        if not self._position:
            self._position = {name: at for at, name in enumerate(self.names.tolist())}
        known = self._position
        unknown = list(dict.fromkeys(name for name in names if name not in known))
        if unknown:
            raise ValueError(
                f"{WHO}: {argument} must hold names of nodes. Got {len(unknown)} that are none, "
                f"{unknown[0]!r} first: labels= of the method that made the hierarchy takes names "
                f"that have no parents.{did_you_mean(unknown[0], known)}"
            )
        return np.array([known[name] for name in names], np.int64)


def _as_parents(names: np.ndarray, edges: Any) -> sp.csr_array:
    """Return checked edges as a matrix with a row for each child."""
    n = len(names)
    refuse_masks_and_dates(edges, f"{WHO}: edges")
    array = np.asarray(edges)
    if not array.size:
        array = np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise TypeError(
            f"{WHO}: edges must be pairs of positions, a child and its parent. Got shape "
            f"{array.shape} and dtype {array.dtype}: from_edges takes names."
        )
    outside = (array < 0) | (array >= n)
    if outside.any():
        raise ValueError(
            f"{WHO}: edges must hold positions of the {n} nodes. Got {array[outside][0]}."
        )
    children, parents = array.astype(np.int64).T
    if (children == parents).any():
        name = names[children[children == parents]].tolist()[0]
        raise ValueError(f"{WHO}: no node may be its own parent. Got {name!r}.")
    matrix = sp.coo_array((np.ones(len(children), np.int64), (children, parents)), (n, n)).tocsr()
    if (matrix.data > 1).any():
        child, parent = (names[at[0]] for at in (matrix > 1).nonzero())
        raise ValueError(f"{WHO}: edges must be distinct. Got {parent!r} twice for {child!r}.")
    matrix.sort_indices()
    return matrix.astype(bool)


def _is_flat(y: Any) -> bool:
    """Return whether y has one name for each row."""
    if hasattr(y, "ndim"):
        return y.ndim == 1 and not are_name_lists(y)
    return isinstance(y, list | tuple) and isinstance(next(iter(y), None), str | int | np.integer)


def _frozen(matrix: sp.csr_array) -> sp.csr_array:
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def _as_given(matrix: sp.csr_array, given: Any) -> Any:
    """Return a CSR in the container of an argument."""
    if not sp.issparse(given):
        return matrix.toarray()
    return sp.csr_matrix(matrix) if isinstance(given, sp.spmatrix) else matrix
