"""Embeddings of training texts, which a fit asks for several times while the encoder stays."""

from collections.abc import Callable

import numpy as np

from sklearn_xc.embedding._memory import pieces_of
from sklearn_xc.embedding._texts import DTYPE, TextRows
from sklearn_xc.parallel.progress import Lines
from sklearn_xc.parallel.spill import empty_rows

#: Texts that are worked out between two lines.
_OF_LINE = 2048


class Remembered:
    """What an encoder makes of training texts, each worked out when it is first asked for.

    Parameters
    ----------
    texts : ndarray of str objects of shape (n,)
        Of training. Others are worked out each time.
    dim : int
    who : str
        The estimator's name, for messages.
    is_told : bool, default=False
        Whether lines tell how far it is.
    """

    def __init__(self, texts: np.ndarray, dim: int, who: str, *, is_told: bool = False) -> None:
        self._texts, self._who, self._is_told = texts, who, is_told
        self._place = {text: i for i, text in enumerate(texts)}
        self._vectors = empty_rows(len(texts), dim, DTYPE, who)
        self._is_there = np.zeros(len(texts), bool)

    def encoded(self, rows: TextRows, encode: Callable[[TextRows], np.ndarray]) -> np.ndarray:
        """Return the embeddings of texts, (n, dim), in an array of the caller's own.

        Parameters
        ----------
        rows : TextRows of shape (n, 1)
        encode : callable
            Works out those of others.
        """
        at = np.array([self._place.get(text, -1) for text in rows.texts], np.int64)
        of_training = np.flatnonzero(at >= 0)
        missing = np.unique(at[of_training][~self._is_there[at[of_training]]])
        if len(missing):
            self._work_out(missing, encode)
        out = empty_rows(len(at), self._vectors.shape[1], DTYPE, self._who)
        out[of_training] = self._vectors[at[of_training]]
        others = np.flatnonzero(at < 0)
        if len(others):
            out[others] = encode(TextRows.of(rows.texts[others]))
        return out

    def _work_out(self, missing: np.ndarray, encode: Callable[[TextRows], np.ndarray]) -> None:
        n = len(missing)
        lines = Lines(self._who, "text", n) if self._is_told else None
        for rows in pieces_of(n, _OF_LINE):
            at = missing[rows]
            self._vectors[at] = encode(TextRows.of(self._texts[at]))
            self._is_there[at] = True
            if lines is not None:
                n_done = int(rows[-1]) + 1
                lines.show(n_done, "embedded", n_done / n)
        if lines is not None:
            lines.close()
