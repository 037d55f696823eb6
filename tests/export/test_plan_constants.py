"""The constants of a plan, those that nodes compute included."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from parapipe.errors import ModelError
from parapipe.export.constants import Constants
from tests.cases.armcl_plans import plan_for

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


def constants_of(folder, nodes, *, initializers=None, shape=(1, 3)):
    """The constants of a model that ends with MatMul(x, last result)."""
    last = nodes[-1].output[0]
    graph = helper.make_graph(
        [*nodes, helper.make_node("MatMul", ["x", last], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(v, n) for n, v in (initializers or {"w": WEIGHTS}).items()],
    )
    path = folder / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return Constants(plan_for(path), path)


def test_what_nodes_compute_from_initializers_is_computed(tmp_path):
    nodes = [
        helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]),
        helper.make_node("Mul", ["turned", "turned"], ["square"]),
    ]
    with constants_of(tmp_path, nodes) as constants:
        assert np.array_equal(constants.read("square"), WEIGHTS.T**2)
        assert np.array_equal(constants.read("w"), WEIGHTS)


def test_what_follows_from_the_shape_of_an_input_is_computed(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["floats", "flat"], ["row"]),
        helper.make_node("Add", ["w", "row"], ["sum"]),
    ]
    initializers = {"w": np.zeros((3, 2), np.float32), "flat": np.array([1, 2])}
    with constants_of(tmp_path, nodes, initializers=initializers) as constants:
        assert constants.read("sum").tolist() == [[1, 3]] * 3
        assert constants.read("shape").tolist() == [1, 3]


def test_the_opset_is_that_of_the_model(tmp_path):
    nodes = [helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0])]
    with constants_of(tmp_path, nodes) as constants:
        assert constants.opset() == 17
        assert constants.opset("com.microsoft") == 0


def test_what_is_no_constant_is_an_error(tmp_path):
    nodes = [helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0])]
    with constants_of(tmp_path, nodes) as constants, pytest.raises(ModelError, match="'none'"):
        constants.read("none")
