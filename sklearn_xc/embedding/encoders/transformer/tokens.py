"""Tokens of texts: made once, kept during training, and cut into chunks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.embedding.encoders.transformer.libraries import tokenizers

#: Lengths are padded to multiples, so that chunks have few shapes: the bits of a vector may depend
#: on the length of its text alone.
_MULTIPLE = 8
#: Least number of texts of a chunk: one alone is passed twice, see ``unit_vectors``.
_FEWEST = 2
#: Texts that the tokenizer is given at a time.
_TOGETHER = 4096


class TokenRows(NamedTuple):
    """Tokens of texts.

    Attributes
    ----------
    ids : ndarray of int32 of shape (n_tokens,)
    starts, counts : ndarray of int64 of shape (n,)
        First token and number of tokens of each text; at least one.
    """

    ids: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


class Chunk(NamedTuple):
    """Texts of about the same length, embedded together.

    Attributes
    ----------
    rows : ndarray of int64 of shape (m,)
        Which texts.
    ids : ndarray of int64 of shape (m, length)
        Their tokens, padded at the end.
    mask : ndarray of int64 of shape (m, length)
        1 for a token, 0 for padding.
    """

    rows: np.ndarray
    ids: np.ndarray
    mask: np.ndarray

    @property
    def n_tokens(self) -> int:
        """Number of tokens, padding included."""
        return int(self.ids.size)


def chunks_of(
    rows: TokenRows, most_tokens: int, filler: int, longest: int, *, of_one_width: bool
) -> Iterator[Chunk]:
    """Yield all texts in chunks, by rising length.

    Parameters
    ----------
    rows : TokenRows
    most_tokens : int
        Most tokens of a chunk, padding included; two longer texts are one too.
    filler : int
        The padding token.
    longest : int
        Maximum number of tokens of a text.
    of_one_width : bool
        Whether all texts of a chunk are padded to the same width, on which bits may depend.
        Otherwise there are fewer chunks.
    """
    widths = np.minimum(-(-rows.counts // _MULTIPLE) * _MULTIPLE, longest)
    order = np.argsort(widths, kind="stable")
    first = 0
    while first < len(order):
        last = first + 1
        while (
            last < len(order)
            and (last - first < _FEWEST or (last + 1 - first) * widths[order[last]] <= most_tokens)
            and not (of_one_width and widths[order[last]] > widths[order[first]])
        ):
            last += 1
        places = order[first:last]
        counts, width = rows.counts[places], int(widths[places[-1]])
        mask = np.arange(width) < counts[:, None]
        ids = np.full(mask.shape, filler, np.int64)
        at = np.minimum(rows.starts[places, None] + np.arange(width), len(rows.ids) - 1)
        ids[mask] = rows.ids[at[mask]]
        yield Chunk(places, ids, mask.astype(np.int64))
        first = last


class Tokenizer:
    """Turns texts into tokens.

    Parameters
    ----------
    content : str
        Of the tokenizer, as JSON.
    max_length : int
        Maximum number of tokens of a text.
    lower_case : bool
        Whether to lower-case texts first.
    """

    def __init__(self, content: str, max_length: int, lower_case: bool) -> None:
        self._tokenizer: Any = tokenizers().Tokenizer.from_str(content)
        self._tokenizer.enable_truncation(max_length)
        self._tokenizer.no_padding()
        self.max_length = max_length
        self._lower_case = lower_case
        # By text, where its tokens begin among those kept, and how many they are.
        self._known: dict[str, tuple[int, int]] = {}
        self._kept, self._n_kept = np.empty(0, np.int32), 0

    def tokens(self, texts: Any, *, keep: bool = False) -> TokenRows:
        """Return the tokens of texts.

        Parameters
        ----------
        texts : ndarray of str objects of shape (n,)
        keep : bool, default=False
            Whether they are kept, to be found at the next call.
        """
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        made, known = [self._kept[: self._n_kept]], dict[str, tuple[int, int]]()
        end = self._n_kept
        for first in range(0, len(new), _TOGETHER):
            part = new[first : first + _TOGETHER]
            for text, ids in zip(part, self._made(part), strict=True):
                known[text] = end, len(ids)
                made.append(ids)
                end += len(ids)
        ids = np.concatenate(made) if len(made) > 1 else made[0]
        if keep and new:
            self._keep(ids)
            self._known.update(known)
        places = [known.get(text) or self._known[text] for text in texts]
        starts, counts = np.array(places, np.int64).reshape(-1, 2).T
        return TokenRows(ids, starts, counts)

    def _keep(self, ids: np.ndarray) -> None:
        """Keep all these tokens, in an array that has room for more."""
        if len(ids) > len(self._kept):
            room = np.empty(2 * len(ids), np.int32)
            room[: self._n_kept] = self._kept[: self._n_kept]
            self._kept = room
        self._kept[self._n_kept : len(ids)] = ids[self._n_kept :]
        self._n_kept = len(ids)

    def _made(self, texts: list[str]) -> Iterator[np.ndarray]:
        if self._lower_case:
            texts = [text.lower() for text in texts]
        # Halves of surrogate pairs are no characters, and would be refused.
        texts = [text.encode("utf-8", "replace").decode() for text in texts]
        for encoding in self._tokenizer.encode_batch_fast(texts):
            ids = encoding.ids
            yield np.array(ids if ids else [0], np.int32)
