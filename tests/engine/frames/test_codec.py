"""A frame comes out of its bytes as it went in."""

import pickle

import numpy as np
import pytest

from bnnviz.engine.frames import codec


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.array(2.5),
        np.empty((0, 4), np.float32),
        np.array([True, False]),
        np.arange(3, dtype=np.int8)[::-1],
        np.array(["a", "bc"]),
        np.array([None, {"x": 1}], dtype=object),
        np.array([1 + 2j]),
    ],
    ids=str,
)
def test_arrays_come_back_with_type_shape_and_values(array):
    back = pickle.loads(codec.dumps({"frame": {"part": {"array": array}}}))["frame"]["part"]["array"]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


def test_the_rest_comes_back_too():
    reply = {"state": "running", "message": "", "frame": None, "numbers": [1, 2.5, np.float64(3.0), np.int64(4)]}
    assert pickle.loads(codec.dumps(reply)) == reply
