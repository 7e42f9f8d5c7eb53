"""X and Y in files that are mapped, read-only."""

import numpy as np
import pytest
import scipy.sparse as sp
from fitted import assert_same_answers, assert_same_model
from registry import ENTRIES
from small_data import awkward

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


def in_files(array, path):
    """Return an array that is mapped from a file, read-only."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_arrays_in_files(name, kind, tmp_path):
    """The model and its answers are those of arrays in memory."""
    entry = ENTRIES[name]
    X, Y = awkward()
    if kind == "dense":
        mapped = [in_files(one.toarray(), tmp_path / f"{i}.npy") for i, one in enumerate((X, Y))]
        X, Y = X.toarray(), Y.toarray()
        assert all(isinstance(one, np.memmap) for one in mapped)
    else:
        mapped = []
        for i, one in enumerate((X, Y)):
            arrays = [
                in_files(getattr(one, part), tmp_path / f"{i}-{part}.npy")
                for part in ("data", "indices", "indptr")
            ]
            mapped.append(sp.csr_array(tuple(arrays), shape=one.shape, copy=False))
            assert not mapped[-1].data.flags.writeable
    expected, model = entry.make().fit(X, Y), entry.make().fit(*mapped)
    assert_same_model(model, expected)
    assert_same_answers(model, expected, mapped[0], entry)
