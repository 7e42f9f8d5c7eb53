"""The package without PyTorch: nothing imports it before it is used, and the message says how."""

import subprocess
import sys

import pytest

LIBRARIES = ("torch", "transformers", "tokenizers", "huggingface_hub", "sentence_transformers")
PROGRAM = f"""
import pickle, sys
import numpy as np
import sklearn_xc, sklearn_xc.embedding.encoders
from sklearn.base import clone
from sklearn_xc.embedding.encoders import ENCODERS, TransformerEncoder
encoder = clone(TransformerEncoder(max_length=20)).set_params(pooling='cls')
assert repr(encoder) == "TransformerEncoder(max_length=20, pooling='cls')"
assert ENCODERS['transformer']().get_params()['pooling'] is None
assert pickle.loads(pickle.dumps(encoder)).max_length == 20
print([name for name in {LIBRARIES} if name in sys.modules])

class Missing:
    @staticmethod
    def find_spec(name, *others):
        if name in {LIBRARIES}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
for model in ('sentence-transformers/all-MiniLM-L6-v2', 'neither/here'):
    for call in ('start', 'default_dim'):
        encoder = TransformerEncoder(model)
        texts = np.array(['red', 'car'], object)
        try:
            encoder.start(texts, 8, 0) if call == 'start' else encoder.default_dim()
        except ImportError as error:
            print(error)
"""


@pytest.fixture(scope="module")
def lines():
    """Return what a program writes that first uses an encoder, then starts it without PyTorch."""
    command = [sys.executable, "-W", "error::ImportWarning", "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_nothing_is_imported_before_a_start(lines):
    assert lines[0] == "[]"


def test_what_to_install(lines):
    assert len(lines) == 5
    for line in lines[1:]:
        assert line.startswith("TransformerEncoder needs ")
        assert 'pip install "sklearn-xc[transformer]"' in line
        assert "encoder='bag' needs nothing" in line
