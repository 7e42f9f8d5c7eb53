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
        (
            {"a.bias": np.ones((4, 3), np.float16).T},
            r"tensors\.arrays\.a\.bias: must be an",
        ),
        ({"a.bias": None}, r"a\.bias: must be an array of .* Got None"),
        ({"a.bias": np.zeros(4)}, r"must be \['float16', 4\]. Got \['float64', 4\]"),
        ({"a.bias": np.zeros(5, np.float16)}, r"must be \['float16', 4\]. Got \['float16', 5\]"),
        ({"other": np.ones(3)}, "arrays: must be a dict of the arrays"),
    ],
)
def test_what_is_refused(change, says):
    made = Tensors(arrays())
    object.__setattr__(made, "arrays", arrays() | change)
    if not says:
        check_attributes(made, "tensors")
        return
    with pytest.raises(MisfitError, match=says):
        check_attributes(made, "tensors")
