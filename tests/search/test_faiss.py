"""The faiss index; what all indexes promise is in test_indexes."""

import sys

import numpy as np
import pytest

from sklearn_xc.search import FaissIndex


def test_without_the_library_the_message_names_the_extra(columns, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"sklearn-xc\[faiss\]"):
        FaissIndex().build(columns(9, 3)[0])


class TestFaiss:
    @pytest.fixture(autouse=True)
    def _faiss(self):
        self.faiss = pytest.importorskip("faiss")

    def test_few_lists_may_hold_fewer_candidates(self, columns):
        W, V = columns(400, 6, is_whole=False)
        index = FaissIndex(n_clusters=40, n_probe=1)
        index.build(W)
        found = index.query(V, 200)
        assert (found.counts < 200).all()
        assert (found.counts > 0).any()

    def test_a_changed_row_changes_its_list(self, columns):
        W, V = columns(400, 6, is_whole=False)
        index = FaissIndex(n_clusters=20, n_probe=1)
        index.build(W)
        W[:50] = 10 * V[1]
        index.update(np.arange(50, dtype=np.int32))
        found = index.query(V[1:2], 60)
        assert set(found.labels[0, :50]) == set(range(50))
        lists = index._index.invlists
        assert sum(lists.list_size(c) for c in range(20)) == 400

    def test_the_threads_of_the_process_are_given_back(self, columns):
        W, V = columns(100, 6)
        before = self.faiss.omp_get_max_threads()
        index = FaissIndex(n_jobs=2)
        index.build(W)
        index.query(V, 5)
        assert self.faiss.omp_get_max_threads() == before
