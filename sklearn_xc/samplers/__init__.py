"""Samplers: which instances make a mini-batch, and what they are set against.

::

    refresh(epoch, scene)          embeddings of now, true labels
          |
          v
      [sampler] --> batches(epoch)      instances of each mini-batch, each instance once
          |
          +-------> negatives(rows)     labels besides those of the mini-batch
          |
          +-------> select(losses)      which instances of a mini-batch count

* ``NgameSampler``: clusters of the embeddings, made anew every few epochs; larger ones with time.
* ``InBatchSampler``: random instances.
* ``AnceSampler``: random instances, and negatives that a search finds every few epochs.
* ``TasSampler``: clusters of features that never change.
* ``OrderedSgdSampler``: random instances, of which those with the largest losses count.
* ``balanced_clusters`` makes the clusters.

Random numbers depend on the seed and the epoch, and no result on the number of threads. To add a
sampler, write its file, after the protocol in ``protocol.py``, and give it a line in ``SAMPLERS``:
the tests read that table.
"""

from collections.abc import Callable

from sklearn_xc.samplers.ance import AnceSampler
from sklearn_xc.samplers.balanced import balanced_clusters
from sklearn_xc.samplers.in_batch import InBatchSampler
from sklearn_xc.samplers.ngame import NgameSampler
from sklearn_xc.samplers.o_sgd import OrderedSgdSampler
from sklearn_xc.samplers.protocol import BatchSampler, Positives, Scene
from sklearn_xc.samplers.tas import TasSampler

__all__ = [
    "SAMPLERS",
    "AnceSampler",
    "BatchSampler",
    "InBatchSampler",
    "NgameSampler",
    "OrderedSgdSampler",
    "Positives",
    "Scene",
    "TasSampler",
    "balanced_clusters",
]

SAMPLERS: dict[str, Callable[..., BatchSampler]] = {
    "ngame": NgameSampler,
    "in_batch": InBatchSampler,
    "ance": AnceSampler,
    "tas": TasSampler,
    "o_sgd": OrderedSgdSampler,
}
