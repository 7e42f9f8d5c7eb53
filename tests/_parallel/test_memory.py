"""Sizes as text and numbers, and refusals before allocation."""

import pytest

from sklearn_xc._parallel import memory
from sklearn_xc._parallel.memory import format_bytes, parse_bytes, require_bytes
from sklearn_xc.exceptions import MemoryBudgetError


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1.5e9, 1_500_000_000),
        ("512 MiB", 512 * 2**20),
        (" 1.5 k ", 1536),
        ("100 B", 100),
    ],
)
def test_parse_bytes(size, expected):
    assert parse_bytes(size, "max_memory") == expected


@pytest.mark.parametrize("size", ["", "-1GB", "8 GBs", "1.2.3GB", "nan", 0])
def test_parse_bytes_names_the_argument_and_what_came(size):
    with pytest.raises(ValueError, match=rf"max_memory must be a positive .* '8GB'. Got {size!r}"):
        parse_bytes(size, "max_memory")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1023, "1023 bytes"),
        (1.5 * 2**20, "1.5 MiB"),
        (3 * 2**40, "3.0 TiB"),
        (5000 * 2**40, "5000.0 TiB"),
    ],
)
def test_format_bytes(size, text):
    assert format_bytes(size) == text
    if size:
        assert parse_bytes(text.replace("bytes", "B"), "x") == size


def test_require_bytes(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2000)
    require_bytes(2001, None, "little", "advice")
    monkeypatch.setattr(memory, "_SMALL", 0)
    require_bytes(1000, 1000, "what", "advice")
    require_bytes(2000, None, "what", "advice")
    with pytest.raises(
        MemoryBudgetError,
        match=r"^1001 bytes are needed and max_memory allows 1000 bytes\. "
        r"The largest array is the scores\. Buy a machine\.$",
    ):
        require_bytes(1001, 1000, "the scores", "Buy a machine.")
    with pytest.raises(MemoryBudgetError, match=r"this machine has 2\.0 KiB"):
        require_bytes(2001, 10**9, "the scores", "Buy a machine.")
    with pytest.raises(MemoryBudgetError, match=r"^Name: 2\.0 KiB are needed"):
        require_bytes(2001, None, "the scores", "Buy a machine.", "Name")
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    require_bytes(10**18, None, "what", "advice")
