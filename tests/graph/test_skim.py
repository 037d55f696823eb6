"""Reading a model without its weights."""

import os
import tracemalloc
from itertools import pairwise

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_model
from parapipe.graph.skim import KEPT_BYTES, skim
from tests.cases.small_models import floats, parsed, value

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"


def written(tmp_path, model):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def matmul_with(weights):
    node = helper.make_node("MatMul", ["x", weights.name], ["y"])
    graph = helper.make_graph(
        [node], "g", [value("x", [1, weights.dims[0]])], [value("y", None)], [weights]
    )
    return helper.make_model(graph)


def test_a_small_model_is_read_as_it_is(tmp_path):
    model = parsed(
        "g (float[2,3] x) => (float[2,3] y) { c = Constant<value_ints = [1, 2]>() y = Add(x, w) }",
        w=floats(3),
    )
    assert skim(written(tmp_path, model)) == model


@pytest.mark.parametrize(
    ("elements", "kept"), [(KEPT_BYTES // 4, True), (KEPT_BYTES // 4 + 1, False)]
)
def test_data_are_dropped_above_the_limit(tmp_path, elements, kept):
    model = matmul_with(numpy_helper.from_array(floats(elements, 1), "w"))
    (weights,) = skim(written(tmp_path, model)).graph.initializer
    assert (len(weights.raw_data) > 0) is kept
    assert (weights.name, list(weights.dims), weights.data_type) == ("w", [elements, 1], 1)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64, np.uint64])
def test_data_in_typed_fields_are_dropped_too(tmp_path, dtype):
    array = np.ones((100, 1000), dtype)
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    weights = helper.make_tensor("w", element_type, array.shape, array.reshape(-1).tolist())
    (found,) = skim(written(tmp_path, matmul_with(weights))).graph.initializer
    assert found.ByteSize() < 20
    assert list(found.dims) == [100, 1000]


def test_constants_lose_their_data_inside_subgraphs_as_well(tmp_path):
    big = numpy_helper.from_array(floats(200, 200), "big")
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=big)], "then", [], [value("c", [200, 200])]
    )
    node = helper.make_node("If", ["flag"], ["y"], then_branch=inner, else_branch=inner)
    flag = value("flag", [], TensorProto.BOOL)
    model = helper.make_model(helper.make_graph([node], "g", [flag], [value("y", [200, 200])]))
    found = skim(written(tmp_path, model))
    assert found.ByteSize() < 1000
    constant = found.graph.node[0].attribute[0].g.node[0].attribute[0].t
    assert (list(constant.dims), constant.raw_data) == ([200, 200], b"")


def test_a_file_of_256_mib_takes_less_than_1_mib_of_memory(tmp_path):
    size = 2**28
    model = matmul_with(TensorProto(name="w", data_type=1, dims=[1024, size // 4096]))
    # The data come last in the file, as a hole, so zeros on disk take no room.
    tensor = model.graph.initializer[0].SerializeToString() + _tag(9) + _varint(size)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString() + _tag(5) + _varint(len(tensor) + size) + tensor
    model.ClearField("graph")
    start = model.SerializeToString() + _tag(7) + _varint(len(graph) + size) + graph
    path = tmp_path / "big.onnx"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
    tracemalloc.start()
    try:
        model = skim(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(model.graph.initializer[0].dims) == [1024, 65536]
    assert model.ByteSize() < 1000
    assert peak < 2**20


def _varint(number):
    return (
        bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])
    )


def _tag(field):
    return _varint(field << 3 | 2)


def test_each_kind_of_bad_file_has_its_own_message(tmp_path):
    content = parsed(RELU).SerializeToString()
    files = {
        "empty.onnx": (b"", "is empty"),
        "cut.onnx": (content[:-3], "is truncated"),
        "text.onnx": (b"this is a text file\n", "is no ONNX model"),
        "unicode.onnx": ("\u00e4\u00f6\u00fc text\n".encode(), "is no ONNX model"),
        "picture.onnx": (b"\x89PNG\r\n\x1a\n" + bytes(100), "is no ONNX model"),
        "lfs.onnx": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        "hollow.onnx": (onnx.ModelProto(ir_version=8).SerializeToString(), "holds no graph"),
    }
    for name, (bad, message) in files.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(ModelError, match=message) as caught:
            skim(tmp_path / name)
        assert name in str(caught.value)


def test_a_missing_file_and_a_folder_have_their_own_messages(tmp_path):
    with pytest.raises(ModelError, match=r"there is no file '.*none\.onnx'"):
        skim(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        skim(tmp_path)


def test_a_model_without_opsets_is_refused(tmp_path):
    model = parsed(RELU)
    del model.opset_import[:]
    with pytest.raises(ModelError, match="does not say which opset"):
        skim(written(tmp_path, model))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("skim") / "any.onnx"


def outcome(path):
    """The message of the one error that a user sees; empty if the file is read."""
    try:
        skim(path)
    except ModelError as error:
        return str(error)
    return ""


@given(content=st.binary(min_size=1, max_size=200))
def test_any_bytes_give_a_model_or_one_model_error(scratch, content):
    scratch.write_bytes(content)
    assert "\n" not in outcome(scratch)


def test_a_model_cut_anywhere_is_a_model_error(scratch):
    content = parsed(RELU).SerializeToString()
    for length in range(1, len(content)):
        scratch.write_bytes(content[:length])
        with pytest.raises(ModelError):
            skim(scratch)


def test_a_length_that_lies_is_no_endless_loop_and_no_crash(scratch):
    content = bytearray(parsed(RELU).SerializeToString())
    for position, (before, _) in enumerate(pairwise(content)):
        changed = bytearray(content)
        changed[position] = before ^ 0x7F
        scratch.write_bytes(changed)
        assert "\n" not in outcome(scratch)


def test_a_model_of_more_than_2_gib_is_read_without_its_weights(tmp_path):
    elements = 600 * 2**20  # of 4 bytes: 2.3 GiB, more than protobuf's parser takes
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[elements // 4, 4])
    head = tensor.SerializeToString() + b"\x4a" + varint(4 * elements)
    rest = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, elements // 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    ).SerializeToString()
    tensor_bytes = len(head) + 4 * elements
    graph_head = b"\x2a" + varint(tensor_bytes) + head
    opsets = onnx.ModelProto(opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        graph_bytes = len(rest) + len(graph_head) + 4 * elements
        file.write(b"\x08\x08" + opsets + b"\x3a" + varint(graph_bytes) + rest + graph_head)
        file.seek(4 * elements - 1, os.SEEK_CUR)
        file.write(b"\0")
    assert path.stat().st_size > 2**31
    tracemalloc.start()
    try:
        graph = import_model(path, digests=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert graph.operators[0].work.macs == elements
    assert peak < 8 * 2**20


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def message(number, content):
    """A field of a protobuf message that holds a message or a text."""
    size, length = len(content), bytearray()
    while size >= 128:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


def nested(depth, *, typed):
    """A model with an If inside an If, as bytes: protobuf itself would not write the deepest."""

    def graph(node, output):
        result = value(output, [1, 4]) if typed else onnx.ValueInfoProto(name=output)
        return message(1, node) + message(2, b"g") + message(12, result.SerializeToString())

    def leaf(output):
        return graph(helper.make_node("Identity", ["x"], [output]).SerializeToString(), output)

    def chosen(inside, output):
        branches = [("then_branch", inside), ("else_branch", leaf(f"else_{output}"))]
        node = helper.make_node("If", ["c"], [output], output).SerializeToString()
        for name, branch in branches:
            node += message(5, message(1, name.encode()) + message(6, branch) + b"\xa0\x01\x05")
        return node

    inside = leaf("t0")
    for level in range(1, depth):
        inside = graph(chosen(inside, f"t{level}"), f"t{level}")
    whole = message(1, chosen(inside, "y")) + message(2, b"g")
    ends = [
        (11, value("x", [1, 4])),
        (11, helper.make_tensor_value_info("c", TensorProto.BOOL, [])),
    ]
    for number, each in (*ends, (12, value("y", [1, 4]))):
        whole += message(number, each.SerializeToString())
    opset = message(8, helper.make_opsetid("", 17).SerializeToString())
    return b"\x08\x08" + opset + message(7, whole)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 20, *range(28, 36), 300])
def test_subgraphs_nested_deep_are_read_or_refused_in_one_line(tmp_path, depth, typed):
    path = tmp_path / "deep.onnx"
    path.write_bytes(nested(depth, typed=typed))
    try:
        read = [each.type for each in import_model(path).operators]
    except ModelError as error:
        read = str(error)
    assert read == ["If"] or "nested" in read
    if not 20 < depth < 33:
        assert (read == ["If"]) is (depth <= 20)
