"""Tokens of texts, and their chunks: random tables against what must hold of them."""

import numpy as np
import pytest
from tiny import make_texts, make_tokenizer

from sklearn_xc.embedding.encoders.transformer.tokens import Tokenizer, TokenRows, chunks_of

TEXTS = make_texts(50, seed=3)


def make_rows(rng, n, longest):
    """Return tokens of texts that stand anywhere among others, and share some."""
    counts = rng.integers(1, longest + 1, n)
    ids = rng.integers(1, 100, counts.sum() + longest).astype(np.int32)
    return TokenRows(ids, rng.integers(0, len(ids) - counts + 1), counts)


@pytest.mark.parametrize("of_one_width", [True, False])
@pytest.mark.parametrize("longest", [1, 8, 13, 40])
def test_chunks(of_one_width, longest):
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 60):
        for most in (1, 8, 50, 200, 10**6):
            rows = make_rows(rng, n, longest)
            chunks = list(chunks_of(rows, most, 99, longest, of_one_width=of_one_width))
            found = np.concatenate([chunk.rows for chunk in chunks]) if chunks else []
            assert sorted(found) == list(range(n))
            widths = [chunk.ids.shape[1] for chunk in chunks]
            assert widths == sorted(widths)
            for chunk in chunks:
                m, width = chunk.ids.shape
                assert chunk.mask.shape == (m, width)
                assert chunk.n_tokens == m * width
                assert m <= 2 or m * width <= most
                assert width % 8 == 0 or width == longest
                counts = rows.counts[chunk.rows]
                assert width - 8 < counts.max() <= width
                if of_one_width:  # each by itself would be as wide
                    assert (-(-counts // 8) * 8 >= width).all()
                for i, row in enumerate(chunk.rows):
                    first, count = rows.starts[row], rows.counts[row]
                    np.testing.assert_array_equal(
                        chunk.ids[i, :count], rows.ids[first : first + count]
                    )
                    assert (chunk.ids[i, count:] == 99).all()
                    assert chunk.mask[i].tolist() == [1] * count + [0] * (width - count)
            n_alone = sum(len(chunk.rows) == 1 for chunk in chunks)
            assert n_alone <= (len(set(widths)) if of_one_width else 1)
            if not of_one_width and most == 10**6:
                assert len(chunks) == min(n, 1)


def tokens_of(rows):
    return [
        rows.ids[first : first + count].tolist()
        for first, count in zip(rows.starts, rows.counts, strict=True)
    ]


def make(max_length=20, lower_case=False):
    return Tokenizer(make_tokenizer().backend_tokenizer.to_str(), max_length, lower_case)


@pytest.mark.parametrize("keep", [True, False])
def test_tokens_are_those_of_the_tokenizer(monkeypatch, keep):
    """Whatever was kept before, and however many are made at a time."""
    monkeypatch.setattr("sklearn_xc.embedding.encoders.transformer.tokens._TOGETHER", 7)
    read = make_tokenizer()
    expected = [read(text, truncation=True, max_length=20)["input_ids"] for text in TEXTS]
    tokenizer, rng = make(), np.random.default_rng(0)
    assert tokens_of(tokenizer.tokens(TEXTS[:0], keep=keep)) == []
    for _ in range(12):
        some = rng.integers(0, len(TEXTS), rng.integers(1, 30))
        assert tokens_of(tokenizer.tokens(TEXTS[some], keep=keep)) == [expected[i] for i in some]
        # Others in between, which are not kept.
        others = rng.permutation(len(TEXTS))[:9]
        assert tokens_of(tokenizer.tokens(TEXTS[others])) == [expected[i] for i in others]
    assert tokens_of(tokenizer.tokens(TEXTS[[3, 1, 3]])) == [expected[i] for i in (3, 1, 3)]


def test_lower_case():
    shouted = np.array([text.upper() for text in TEXTS], object)
    expected = tokens_of(make().tokens(TEXTS))
    assert tokens_of(make(lower_case=True).tokens(shouted)) == expected
    assert tokens_of(make().tokens(shouted)) != expected
