"""Encoders of instances and labels: unit vectors, and how they learn.

::

    inputs --> forward --> V --> [loss] --> gradient by V --> learn --> parameters take a step
        '----> encode --> V                                             (_training/adam.py)

* ``BagOfEmbeddings`` adds up the vectors of the features of sparse rows;
* ``TransformerEncoder`` reads texts, by a pretrained transformer.

Inputs are sparse rows, or texts for an encoder that declares ``reads = "texts"``. An encoder has no
say in the loss. To add one, write its file, after the protocol in ``protocol.py``, and give it a
line in ``ENCODERS``: the tests read that table. One of your own is passed as an instance.
"""

from sklearn_xc.embedding.encoders.bag import BagOfEmbeddings
from sklearn_xc.embedding.encoders.protocol import Encoder, ForwardPass
from sklearn_xc.embedding.encoders.transformer import TransformerEncoder

__all__ = ["ENCODERS", "BagOfEmbeddings", "Encoder", "ForwardPass", "TransformerEncoder"]

ENCODERS: dict[str, type[Encoder]] = {"bag": BagOfEmbeddings, "transformer": TransformerEncoder}
"""Sums of feature vectors, or a pretrained transformer of texts; on the unit sphere."""
