"""Samplers: which instances make a mini-batch, and the labels that they are contrasted with.

::

    start(n, n_epochs, seed, n_jobs)
          |
    refresh(epoch, state)          instances, true labels, embeddings
          |
          v
      [sampler] --> batches(epoch)      instances of each mini-batch, each instance once
          |
          +-------> negatives(rows)     labels besides those of the mini-batch
          |
          +-------> select(losses)      which instances of a mini-batch count

* ``NgameSampler``: clusters of the embeddings, found again every few epochs; larger ones with time.
* ``InBatchSampler``: random instances.
* ``AnceSampler``: random instances, and negatives that a search finds every few epochs.
* ``TasSampler``: clusters of the untrained encoder's embeddings, which never change.
* ``OrderedSgdSampler``: random instances; those with the largest losses count.
* ``balanced_clusters`` finds the clusters.

Random numbers depend on the seed and the epoch, and no result on the number of threads. To add a
sampler, write its file, after the protocol in ``protocol.py``, and give it a line in ``SAMPLERS``:
the tests read that table. One of your own is passed as an instance.
"""

from sklearn_xc.embedding.samplers.clusters import balanced_clusters
from sklearn_xc.embedding.samplers.in_batch import AnceSampler, InBatchSampler, OrderedSgdSampler
from sklearn_xc.embedding.samplers.ngame import NgameSampler, TasSampler
from sklearn_xc.embedding.samplers.protocol import BatchSampler, Positives, TrainingState

__all__ = [
    "SAMPLERS",
    "AnceSampler",
    "BatchSampler",
    "InBatchSampler",
    "NgameSampler",
    "OrderedSgdSampler",
    "Positives",
    "TasSampler",
    "TrainingState",
    "balanced_clusters",
]

SAMPLERS: dict[str, type[BatchSampler]] = {
    "ngame": NgameSampler,
    "in_batch": InBatchSampler,
    "ance": AnceSampler,
    "tas": TasSampler,
    "o_sgd": OrderedSgdSampler,
}
