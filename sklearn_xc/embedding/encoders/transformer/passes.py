"""Passes of texts through a network, chunk by chunk, in threads.

A mini-batch is cut into chunks by its texts alone, and their gradients are summed in turn: the bits
do not depend on the number of threads.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._parallel.threads import count_threads, for_row_ranges
from sklearn_xc.embedding.encoders.transformer.libraries import one_thread, torch
from sklearn_xc.embedding.encoders.transformer.network import Network, dropping, unit_vectors

#: Tokens of a chunk, on a CPU and on a GPU.
_TOKENS = 1024
_TOKENS_ON_GPU = 2**15
#: Bytes that passes may keep for their gradients on a CPU, and the share of a GPU's free memory.
KEPT_BYTES = 2**30
_KEPT_SHARE = 0.4
#: Lengths are padded to multiples, so that chunks have few shapes: the bits of a vector may depend
#: on the length of its text alone.
_MULTIPLE = 8
#: Least number of texts of a chunk: one alone is passed twice, see ``unit_vectors``.
_FEWEST = 2


class Settings(NamedTuple):
    """How passes are made.

    Attributes
    ----------
    device : torch.device
    precision : {"float32", "bfloat16"}
    max_length : int
        Maximum number of tokens of a text.
    """

    device: Any
    precision: str
    max_length: int

    def threads(self, n_jobs: int | None) -> int:
        """Return how many threads take chunks."""
        is_one = n_jobs is None or self.device.type != "cpu"
        return 1 if is_one else count_threads(n_jobs)


class Chunk(NamedTuple):
    """Texts of about the same length, embedded together.

    Attributes
    ----------
    rows : ndarray of int64 of shape (m,)
        Numbers of the texts.
    ids : ndarray of int64 of shape (m, length)
        Their tokens, padded at the end.
    mask : ndarray of int64 of shape (m, length)
        1 for a token, 0 for padding.
    """

    rows: np.ndarray
    ids: np.ndarray
    mask: np.ndarray


class Passed(NamedTuple):
    """A mini-batch after the forward pass.

    Attributes
    ----------
    V : ndarray of float32 of shape (n, dim)
    chunks : list of Chunk
    held : list of tensor or None
        Vectors of each chunk, with their graph; None for those to be passed again.
    seeds : list of int
        For the dropout of each.
    """

    V: np.ndarray
    chunks: list[Chunk]
    held: list[Any]
    seeds: list[int]


def encode(
    network: Network, texts: np.ndarray, out: np.ndarray, settings: Settings, n_jobs: int | None
) -> None:
    """Write the vectors of texts to the rows of `out`."""
    chunks = _chunks(network, texts, settings, of_one_width=True)
    network.module(settings.device)

    def work(first: int, last: int) -> None:
        with one_thread(), torch().inference_mode():
            for chunk in chunks[first:last]:
                out[chunk.rows] = _vectors(network, chunk, settings).cpu().numpy()

    for_row_ranges(work, len(chunks), 1, settings.threads(n_jobs))


def forward(
    network: Network, texts: np.ndarray, seed: int, settings: Settings, n_jobs: int | None
) -> Passed:
    """Return the vectors of a mini-batch in training."""
    chunks = _chunks(network, texts, settings, of_one_width=False)
    network.module(settings.device)
    seeds = [(seed + i * 0x9E3779B97F4A7C15) % 2**63 for i in range(len(chunks))]
    is_held = _which_held(chunks, network, settings)
    V = np.zeros((len(texts), network.dim), np.float32)
    held: list[Any] = [None] * len(chunks)

    def work(first: int, last: int) -> None:
        with one_thread():
            for i in range(first, last):
                drops = dropping(seeds[i], settings.device)
                with torch().set_grad_enabled(is_held[i]), drops:
                    vectors = _vectors(network, chunks[i], settings)
                V[chunks[i].rows] = vectors.detach().cpu().numpy()
                held[i] = vectors if is_held[i] else None

    for_row_ranges(work, len(chunks), 1, settings.threads(n_jobs))
    return Passed(V, chunks, held, seeds)


def gradients(
    network: Network, passed: Passed, by_rows: np.ndarray, settings: Settings, n_jobs: int | None
) -> dict[str, Any]:
    """Return the gradient by each weight, from that by the rows of ``passed.V``.

    None for a weight that vectors do not depend on.
    """
    network.module(settings.device)
    parameters = network.parameters()
    tensors = list(parameters.values())
    total: list[Any] = [None] * len(tensors)
    n_workers = settings.threads(n_jobs)
    found: list[Any] = [None] * len(passed.chunks)

    def work(begin: int, first: int, last: int) -> None:
        with one_thread(), torch().enable_grad():
            for i in range(begin + first, begin + last):
                chunk, vectors = passed.chunks[i], passed.held[i]
                passed.held[i] = None
                if vectors is None:
                    with dropping(passed.seeds[i], settings.device):
                        vectors = _vectors(network, chunk, settings)
                by_vectors = torch().from_numpy(by_rows[chunk.rows]).to(vectors)
                found[i] = torch().autograd.grad(vectors, tensors, by_vectors, allow_unused=True)

    for first in range(0, len(passed.chunks), n_workers):
        last = min(first + n_workers, len(passed.chunks))
        for_row_ranges(partial(work, first), last - first, 1, n_workers)
        with one_thread():
            for i in range(first, last):
                total = [_sum(one, other) for one, other in zip(total, found[i], strict=True)]
                found[i] = None
    return dict(zip(parameters, total, strict=True))


def _vectors(network: Network, chunk: Chunk, settings: Settings) -> Any:
    return unit_vectors(network, settings.device, chunk.ids, chunk.mask, settings.precision)


def _sum(total: Any, gradient: Any) -> Any:
    """Return the sum of two gradients, in place of the first; either may be missing."""
    if total is None or gradient is None:
        return total if gradient is None else gradient.contiguous()
    return total.add_(gradient)


def _chunks(
    network: Network, texts: np.ndarray, settings: Settings, *, of_one_width: bool
) -> list[Chunk]:
    most = _TOKENS if settings.device.type == "cpu" else _TOKENS_ON_GPU
    tokens = network.tokens(texts, settings.max_length)
    return list(chunks_of(tokens, most, network.filler, network.max_length, of_one_width))


def chunks_of(
    tokens: list[np.ndarray], most_tokens: int, filler: int, longest: int, of_one_width: bool
) -> Iterator[Chunk]:
    """Yield all texts in chunks, by ascending length.

    Parameters
    ----------
    tokens : list of ndarray of int64
        Of each text.
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
    counts = np.array([len(ids) for ids in tokens], np.int64)
    widths = np.minimum(-(-counts // _MULTIPLE) * _MULTIPLE, longest)
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
        mask = np.arange(widths[places[-1]]) < counts[places, None]
        ids = np.full(mask.shape, filler, np.int64)
        ids[mask] = np.concatenate([tokens[i] for i in places])
        yield Chunk(places, ids, mask.astype(np.int64))
        first = last


def _which_held(chunks: list[Chunk], network: Network, settings: Settings) -> list[bool]:
    """Return for which chunks the pass is kept for the gradient: the first that fit."""
    room: float = KEPT_BYTES
    if settings.device.type == "cuda":
        room = _KEPT_SHARE * torch().cuda.mem_get_info(settings.device)[0]
    ends = np.cumsum([chunk.ids.size for chunk in chunks]) * network.token_bytes
    return [bool(end <= room) for end in ends]
