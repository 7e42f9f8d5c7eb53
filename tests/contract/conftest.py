"""Every estimator, small sizes that keep the tests quick, and an encoder that reads texts."""

import pytest
import rows_as_texts
from registry import ENTRIES

from sklearn_xc._training import boosting
from sklearn_xc.embedding.encoders.transformer import passes


@pytest.fixture(scope="module", params=ENTRIES)
def entry(request):
    return ENTRIES[request.param]


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Have fusions and stacks boost 3 trees: 30 take most of the time of a fit of 60 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosting, "_TREES", 3)
        yield


@pytest.fixture(scope="module", autouse=True)
def reads_texts():
    """Have rows be read as texts, by a tiny transformer that takes several chunks for a few."""
    if not rows_as_texts.HAS_TRANSFORMERS:
        yield
        return
    rows_as_texts.write_tiny_bert()
    with pytest.MonkeyPatch.context() as patch:
        rows_as_texts.make_public(patch)
        patch.setattr(passes, "_TOKENS", 64)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield
