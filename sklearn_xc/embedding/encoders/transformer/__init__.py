"""A pretrained transformer as an encoder of texts.

::

    encoder.py        TransformerEncoder: parameters, and the methods that training calls
      |-- pretrained.py      models from folders, packages or a hub
      |-- network.py         the layers, kept as arrays and computed by PyTorch; AdamW
      |-- passes.py          texts, in chunks, through the layers and back, by threads
      |-- stored_vectors.py  embeddings of a frozen model in a folder
      '-- libraries.py       imports PyTorch and its kin, when they are used
"""

from sklearn_xc.embedding.encoders.transformer.encoder import TransformerEncoder

__all__ = ["TransformerEncoder"]
