"""What a training of word vectors holds at its peak."""

import numpy as np

from sklearn_xc.gradients import Gradient, SampledGradient
from sklearn_xc.gradients.exact import ExactGradient
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.spill import is_in_file
from sklearn_xc.skip_gram.problem import Cooccurrences
from sklearn_xc.skip_gram.training import MOST_KEPT, SCORES, WORDS

#: Bytes of a number of a vector, and of a context with its gradient in a mini-batch.
_NUMBER, _SCORED = 4, 8
#: Arrays as large as the input vectors, and as the output vectors: while output vectors take a step
#: (values, last steps; gradients, the reference and its part of them, and what is on the way), and
#: while input vectors do.
_ARRAYS = ((2, 6), (4, 3))
#: An index that does not say what it holds.
_ROW_COPIES = 2.0


def require_room(
    counts: Cooccurrences, dim: int, gradient: Gradient, index: object, n_candidates: int,
    n_sampled: int, allowed: int | None, who: str,
) -> None:  # fmt: skip
    """Raise an error if a training does not fit into what is allowed, and what the machine has.

    Parameters
    ----------
    counts : Cooccurrences
        Of which what is in memory counts.
    dim : int
        Of the vectors.
    gradient, index, n_candidates, n_sampled
        As of the training; `index` is a ``MipsIndex``.
    allowed : int or None
        Bytes.
    who : str
        Name of the estimator.

    Raises
    ------
    MemoryBudgetError
    """
    n_words, n_contexts = len(counts.of_words), counts.n_contexts
    of_inputs, of_outputs = _NUMBER * n_words * dim, _NUMBER * n_contexts * (dim + 1)
    needed = max(a * of_inputs + b * of_outputs for a, b in _ARRAYS)
    needed += sum(
        array.nbytes
        for array in (counts.indptr, counts.contexts, counts.counts)
        if not is_in_file(array)
    )
    most = int(np.diff(counts.indptr).max()) + n_candidates
    if isinstance(gradient, ExactGradient):
        needed += 3 * _NUMBER * max(n_contexts, min(SCORES, WORDS * n_contexts))
    else:
        needed += WORDS * (most * _SCORED + 3 * n_sampled * _NUMBER)
        if not isinstance(gradient, SampledGradient):
            needed += int(getattr(index, "row_copies", _ROW_COPIES) * of_outputs)
            needed += _NUMBER * n_words * min(MOST_KEPT, n_candidates)
    require_bytes(
        needed, allowed,
        f"vectors, {n_words} words and {n_contexts} contexts x {dim} x {_NUMBER} bytes, several "
        "times over for steps",
        "Lower embedding_dim, or raise min_count.", who,
    )  # fmt: skip
