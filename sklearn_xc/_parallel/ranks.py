"""Processes that train one model together, as PyTorch's launcher ``torchrun`` starts them.

All of them run the same program on the same data, with the same seeds, and so come to the same
model. What takes long is shared: each works out a part, and all have the sum.
"""

import os
import sys
from typing import Any

import numpy as np


class Ranks:
    """The processes of one training; a single one where there is no launcher.

    Attributes
    ----------
    rank, size : int
        Number of this process, from 0, and how many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    def sum(self, tensor: Any) -> None:
        """Have a tensor of torch, of one shape everywhere, be the sum of those of all processes."""
        if self.size > 1:
            _torch().distributed.all_reduce(tensor)

    def from_first(self, value: Any) -> Any:
        """Return the value that the first process has."""
        if self.size == 1:
            return value
        held = [value]
        _torch().distributed.broadcast_object_list(held, src=0)
        return held[0]

    def from_all(self, value: Any) -> list[Any]:
        """Return the values that all processes have, which may be of any kind."""
        held = [value] * self.size
        if self.size > 1:
            _torch().distributed.all_gather_object(held, value)
        return held

    def share(self, n: int) -> np.ndarray:
        """Return which of n parts are this process's."""
        return np.arange(self.rank, n, self.size)


#: One process, by itself.
ALONE = Ranks()


def ranks() -> Ranks:
    """Return the processes that train together with this one, which are connected if need be.

    They are those of ``torch.distributed`` if it is initialised, or those of the launcher, which
    says in ``RANK`` and ``WORLD_SIZE`` how many it has started. GPUs speak by NCCL, others by gloo.
    """
    started = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    if started == 1 and "torch" not in sys.modules:
        return ALONE
    distributed = _torch().distributed
    if not distributed.is_available():
        return ALONE
    if not distributed.is_initialized():
        if started == 1:
            return ALONE
        has_gpu = _torch().cuda.is_available()
        if has_gpu:
            _torch().cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        distributed.init_process_group("nccl" if has_gpu else "gloo")
    return Ranks(distributed.get_rank(), distributed.get_world_size())


def _torch() -> Any:
    import torch
    import torch.distributed

    return torch
