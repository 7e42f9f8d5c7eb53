"""Writes the saved transformer of ``golden``: ``python make_transformer_golden.py FOLDER``.

As ``tests/_state/make_golden.py`` does for all that needs no PyTorch.
"""

import contextlib
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from tiny import make_folder, make_texts

sys.path.append(str(Path(__file__).parents[2] / "_state"))

from make_golden import write

from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
from sklearn_xc.embedding.encoders import TransformerEncoder

TEXTS = list(make_texts(60, seed=5))


def model():
    """Return a model of texts whose transformer was trained, with a projection."""
    Y = sp.csr_array((np.random.default_rng(0).random((60, 6)) < 0.3).astype(np.int8))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return NGAMEEmbeddingXC(
            TransformerEncoder(make_folder("tiny"), warmup_steps=2),
            embedding_dim=8,
            label_features=LabelFeatures(TEXTS[:6]),
            max_iter=2,
            classifier_max_iter=2,
            random_state=0,
        ).fit(TEXTS, Y)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(Path(sys.argv[1]), "transformer", model(), TEXTS[:10])
