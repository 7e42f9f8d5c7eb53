"""Screens for the small data of these tests, which would go without."""

import pytest

from sklearn_xc.one_vs_all.solver import screening


@pytest.fixture(autouse=True)
def screens(monkeypatch):
    monkeypatch.setattr(screening, "FEWEST_NONZEROS", 0)
