"""What keeps the contract quick."""

import pytest

from sklearn_xc.embedding import _boosted_fusion


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Have fusions boost 3 trees: 30 take most of the time of a fit of 60 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_boosted_fusion, "_TREES", 3)
        yield
