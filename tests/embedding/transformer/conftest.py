"""Tiny models for the tests of the folder, which are left out where PyTorch and its kin are not."""

import importlib.util
from pathlib import Path

import pytest

_NEEDED = ("torch", "transformers", "tokenizers", "sentence_transformers")
_NEED_NOTHING = ("conftest.py", "test_without_torch.py")
if any(importlib.util.find_spec(name) is None for name in _NEEDED):
    collect_ignore = [
        path.name for path in Path(__file__).parent.glob("*.py") if path.name not in _NEED_NOTHING
    ]


@pytest.fixture(scope="session", autouse=True)
def _offline():
    """Have nothing fetched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        if importlib.util.find_spec("huggingface_hub") is not None:
            patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Return a function: the folder of a model of a kind, as transformers writes it."""
    from tiny import make_folder

    made = {}

    def folder(kind="bert", dropout=0.1):
        if (kind, dropout) not in made:
            at = tmp_path_factory.mktemp("model")
            made[kind, dropout] = make_folder(at, kind, dropout=dropout)
        return made[kind, dropout]

    return folder


@pytest.fixture(scope="session")
def start(folders):
    """Return a function that makes an encoder of a kind, or of a model, and starts it."""
    from tiny import HIDDEN, make_texts

    from sklearn_xc.embedding.encoders import TransformerEncoder

    def start(kind="bert", dim=HIDDEN, texts=None, dropout=0.1, model=None, **parameters):
        model = folders(kind, dropout) if model is None else model
        encoder = TransformerEncoder(model, **parameters)
        encoder.start(make_texts() if texts is None else texts, dim, 0)
        return encoder

    return start
