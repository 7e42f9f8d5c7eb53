"""Passes of texts through a network, chunk by chunk, in threads.

A mini-batch is cut into chunks by its texts alone, and their gradients are summed in turn: the bits
do not depend on the number of threads.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._parallel.row_ranges import for_row_ranges
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc.embedding.encoders.transformer.libraries import one_thread, torch
from sklearn_xc.embedding.encoders.transformer.network import (
    Dropping,
    Network,
    token_bytes,
    unit_vectors,
)
from sklearn_xc.embedding.encoders.transformer.tokens import Chunk, TokenRows, chunks_of

#: Tokens of a chunk, on a CPU and on a GPU.
_TOKENS, _TOKENS_ON_GPU = 1024, 2**15
#: Bytes that passes may keep for their gradients on a CPU, and the share of a GPU's free memory.
KEPT_BYTES, _KEPT_SHARE = 2**30, 0.4


def chunk_tokens(device: str = "cpu") -> int:
    """Return the most tokens of a chunk, on a kind of device."""
    return _TOKENS if device == "cpu" else _TOKENS_ON_GPU


class Settings(NamedTuple):
    """How passes are made.

    Attributes
    ----------
    device : torch.device
    precision : {"float32", "bfloat16"}
    dropout : float or None
        Share of hidden units to drop in training; None is the setting of each layer.
    checkpointing : bool or "auto"
        Whether a pass is made again for its gradient, and not kept.
    """

    device: Any
    precision: str
    dropout: float | None
    checkpointing: Any

    def threads(self, n_jobs: int | None) -> int:
        """Return how many threads take chunks."""
        is_one = n_jobs is None or self.device.type != "cpu"
        return 1 if is_one else count_threads(n_jobs)


class Passed(NamedTuple):
    """A mini-batch after the forward pass.

    Attributes
    ----------
    V : ndarray of float32 of shape (n, dim)
    chunks : list of Chunk
        Texts of about the same length.
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
    network: Network, rows: TokenRows, out: np.ndarray, settings: Settings, n_jobs: int | None
) -> None:
    """Write the vectors of texts to the rows of `out`."""
    device, module = settings.device, network.module(settings.device)
    own = _chunks(network, rows, device, of_one_width=True)

    def work(first: int, last: int) -> None:
        with one_thread(), torch().inference_mode():
            for chunk in own[first:last]:
                vectors = _vectors(module, network, chunk, settings)
                out[chunk.rows] = vectors.cpu().numpy()

    for_row_ranges(work, len(own), 1, settings.threads(n_jobs))


def forward(
    network: Network, rows: TokenRows, seed: int, settings: Settings, n_jobs: int | None
) -> Passed:
    """Return the vectors of a mini-batch in training."""
    device, module = settings.device, network.module(settings.device)
    own = _chunks(network, rows, device, of_one_width=False)
    seeds = [(seed + i * 0x9E3779B97F4A7C15) % 2**63 for i in range(len(own))]
    is_held = _which_held(own, network, settings)
    V = np.zeros((len(rows.starts), network.dim), np.float32)
    held: list[Any] = [None] * len(own)

    def work(first: int, last: int) -> None:
        with one_thread():
            for i in range(first, last):
                dropping = Dropping(seeds[i], settings.dropout, device)
                with torch().set_grad_enabled(is_held[i]), dropping:
                    vectors = _vectors(module, network, own[i], settings)
                V[own[i].rows] = vectors.detach().cpu().numpy()
                held[i] = vectors if is_held[i] else None

    for_row_ranges(work, len(own), 1, settings.threads(n_jobs))
    return Passed(V, own, held, seeds)


def gradients(
    network: Network, passed: Passed, by_rows: np.ndarray, settings: Settings, n_jobs: int | None
) -> dict[str, Any]:
    """Return the gradient by each weight, from that by the rows of ``passed.V``."""
    device, module = settings.device, network.module(settings.device)
    parameters = network.parameters()
    names, tensors = list(parameters), list(parameters.values())
    total: list[Any] = []
    n_workers = settings.threads(n_jobs)
    found: list[Any] = [None] * len(passed.chunks)

    def work(begin: int, first: int, last: int) -> None:
        with one_thread(), torch().enable_grad():
            for i in range(begin + first, begin + last):
                chunk, vectors = passed.chunks[i], passed.held[i]
                passed.held[i] = None
                if vectors is None:
                    with Dropping(passed.seeds[i], settings.dropout, device):
                        vectors = _vectors(module, network, chunk, settings)
                by_vectors = torch().from_numpy(by_rows[chunk.rows]).to(device, vectors.dtype)
                found[i] = torch().autograd.grad(vectors, tensors, by_vectors)

    for first in range(0, len(passed.chunks), n_workers):
        last = min(first + n_workers, len(passed.chunks))
        for_row_ranges(partial(work, first), last - first, 1, n_workers)
        with one_thread():
            for i in range(first, last):
                total = _added(total, found[i])
                found[i] = None
    return dict(zip(names, total, strict=True))


def _vectors(module: Any, network: Network, chunk: Chunk, settings: Settings) -> Any:
    ids, mask = (torch().from_numpy(array).to(settings.device) for array in (chunk.ids, chunk.mask))
    return unit_vectors(module, network, ids, mask, settings.precision)


def _added(total: list[Any], some: Any) -> list[Any]:
    """Return the sums of two lists of gradients, those of the first in place."""
    if not total:
        return [gradient.contiguous() for gradient in some]
    return [one.add_(other) for one, other in zip(total, some, strict=True)]


def _chunks(network: Network, rows: TokenRows, device: Any, *, of_one_width: bool) -> list[Chunk]:
    most = chunk_tokens(device.type)
    return list(
        chunks_of(rows, most, network.filler, network.max_length, of_one_width=of_one_width)
    )


def _which_held(own: list[Chunk], network: Network, settings: Settings) -> list[bool]:
    """Return for which chunks the pass is kept for the gradient: the first that fit."""
    if settings.checkpointing != "auto":
        return [not settings.checkpointing] * len(own)
    room: float = KEPT_BYTES
    if settings.device.type == "cuda":
        room = _KEPT_SHARE * torch().cuda.mem_get_info(settings.device)[0]
    ends = np.cumsum([chunk.n_tokens for chunk in own]) * token_bytes(network.config)
    return [bool(end <= room) for end in ends]
