"""Named arrays of a network."""

import numpy as np
import pytest

from sklearn_xc._state.schema import MisfitError, check_attributes
from sklearn_xc._weights.tensors import Tensors


def arrays():
    return {
        "a.weight": np.ones((3, 4), np.float32),
        "a.bias": np.zeros(4, np.float16),
        "empty": np.empty((2, 0)),
        "n": np.array(5),
        "is": np.array([True]),
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"a.bias": np.array([1, np.nan])}, r"tensors\.arrays\.a\.bias: must be finite numbers"),
        ({"a.bias": np.array(np.inf)}, "must be finite numbers"),
        ({"a.bias": np.ones((4, 3)).T}, "must be an array of"),
        ({"a.bias": np.ones(6)[::2]}, "must be an array of"),
        ({"a.bias": None}, r"a\.bias: must be an array of .* Got None"),
        ({"a.bias": {"b": np.ones(3)}}, "must be an array of"),
        ({3: np.ones(3)}, "arrays: must be a dict of arrays"),
    ],
)
def test_what_is_refused(change, says):
    made = Tensors(arrays() | change)
    if not says:
        check_attributes(made, "tensors")
        return
    with pytest.raises(MisfitError, match=says):
        check_attributes(made, "tensors")
