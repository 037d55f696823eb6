"""Constants are read one at a time from a model file."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from parapipe.errors import ModelError
from parapipe.graph.skim import Weights

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def saved(folder, *, initializers=(), nodes=(), **options):
    graph = helper.make_graph(
        [*nodes, helper.make_node("Relu", ["x"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))],
        list(initializers),
    )
    path = folder / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **options)
    return path


def test_an_initializer_is_read_however_its_values_are_stored(tmp_path):
    raw = numpy_helper.from_array(VALUES, "raw")
    typed = helper.make_tensor("typed", TensorProto.FLOAT, (2, 3), VALUES.reshape(-1).tolist())
    with Weights(saved(tmp_path, initializers=[raw, typed])) as weights:
        assert np.array_equal(weights.read("raw"), VALUES)
        assert np.array_equal(weights.read("typed"), VALUES)
        assert "raw" in weights
        assert "x" not in weights


def test_external_data_are_read(tmp_path):
    raw = numpy_helper.from_array(VALUES, "raw")
    path = saved(
        tmp_path,
        initializers=[raw],
        save_as_external_data=True,
        location="data.bin",
        size_threshold=0,
    )
    with Weights(path) as weights:
        assert np.array_equal(weights.read("raw"), VALUES)
    (tmp_path / "data.bin").unlink()
    with Weights(path) as weights, pytest.raises(ModelError, match="constant 'raw' of"):
        weights.read("raw")


def test_external_data_may_have_several_names(tmp_path):
    """Installers and caches make hard links; `model_source` accepts them, and so does this."""
    raw = numpy_helper.from_array(VALUES, "raw")
    external = {"save_as_external_data": True, "location": "data.bin", "size_threshold": 0}
    path = saved(tmp_path, initializers=[raw], **external)
    (tmp_path / "again.bin").hardlink_to(tmp_path / "data.bin")
    with Weights(path) as weights:
        assert np.array_equal(weights.read("raw"), VALUES)


def test_a_constant_node_is_read_whatever_it_holds(tmp_path):
    tensor = numpy_helper.from_array(VALUES, "inner")
    nodes = [
        helper.make_node("Constant", [], ["tensor"], value=tensor),
        helper.make_node("Constant", [], ["ints"], value_ints=[1, 2]),
    ]
    with Weights(saved(tmp_path, nodes=nodes)) as weights:
        assert np.array_equal(weights.read("tensor"), VALUES)
        assert weights.read("ints").tolist() == [1, 2]


def test_an_initializer_of_a_branch_is_read_and_an_outer_one_counts_first(tmp_path):
    def branch(name):
        inner = [numpy_helper.from_array(VALUES + 1, name) for name in ("same", name)]
        node = helper.make_node("Add", ["same", name], [f"{name}_out"])
        output = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, (2, 3))
        return helper.make_graph([node], name, [], [output], inner)

    whether = numpy_helper.from_array(np.array(True), "whether")
    same = numpy_helper.from_array(VALUES, "same")
    node = helper.make_node(
        "If", ["whether"], ["chosen"], then_branch=branch("a"), else_branch=branch("b")
    )
    with Weights(saved(tmp_path, initializers=[whether, same], nodes=[node])) as weights:
        assert np.array_equal(weights.read("a"), VALUES + 1)
        assert np.array_equal(weights.read("same"), VALUES)


def test_a_sparse_constant_is_refused(tmp_path):
    values = helper.make_tensor("values", TensorProto.FLOAT, (1,), [1.0])
    indices = helper.make_tensor("indices", TensorProto.INT64, (1,), [4])
    sparse = helper.make_sparse_tensor(values, indices, (6,))
    node = helper.make_node("Constant", [], ["sparse"], sparse_value=sparse)
    refused = pytest.raises(ModelError, match=r"constant 'sparse' of .* is sparse or empty")
    with Weights(saved(tmp_path, nodes=[node])) as weights, refused:
        weights.read("sparse")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"none\.onnx' cannot be read"):
        Weights(tmp_path / "none.onnx")
