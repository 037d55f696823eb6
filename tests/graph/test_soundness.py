"""Damaged models are refused for their cause, all offenders at once."""

import onnx
import pytest
from onnx import TensorProto, helper

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_model
from tests.cases.small_models import imported, parsed


def model(*tensors, **fields):
    found = parsed("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    found.graph.initializer.extend(tensors or [TensorProto(name="w", data_type=1, **fields)])
    return found


@pytest.mark.parametrize(
    ("fields", "mistake"),
    [
        ({"dims": [2], "raw_data": bytes(7)}, "'w' has 7 of 8 bytes"),
        ({"dims": [3], "float_data": [1, 2]}, "'w' has 2 of 3 numbers"),
        ({"dims": [2], "int64_data": [1, 2]}, "'w' has 0 of 2 numbers"),
        ({"dims": [-2]}, "'w' has the shape -2"),
    ],
)
def test_a_tensor_whose_data_do_not_fit_is_named(fields, mistake):
    with pytest.raises(ModelError, match=rf"damaged tensors \({mistake}\)"):
        imported(model(**fields))


def test_all_damaged_tensors_are_named_those_of_bodies_too():
    bad = TensorProto(name="c", data_type=1, dims=[2], raw_data=b"")
    bad.raw_data = b"123"
    found = model(dims=[2], raw_data=bytes(9))
    found.graph.node.append(helper.make_node("Constant", [], ["c"], value=bad))
    with pytest.raises(ModelError, match=r"'w' has 9 of 8 bytes, 'c' has 3 of 8 bytes"):
        imported(found)


def test_a_type_that_there_is_not_is_named():
    tensor = TensorProto(name="w", dims=[2])
    with pytest.raises(ModelError, match="'w' is of type 0, which does not exist"):
        imported(model(tensor))


@pytest.mark.parametrize(("dtype", "size"), [("UINT4", 3), ("INT4", 3), ("FLOAT", 20)])
def test_whole_data_pass_those_of_half_bytes_too(dtype, size):
    element_type = TensorProto.DataType.Value(dtype)
    tensor = TensorProto(name="w", data_type=element_type, dims=[5], raw_data=bytes(size))
    found = parsed("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    found.graph.initializer.append(tensor)
    assert len(imported(found).operators) == 1


def test_an_opset_newer_than_the_installed_onnx_says_so():
    newest = onnx.defs.onnx_opset_version()
    text = "g (float[2] x) => (float[2] y) { y = Exp(x) }"
    assert imported(parsed(text, opset=newest)).operators
    with pytest.raises(ModelError, match=rf"version {newest + 1} of .*'ai.onnx'.* knows {newest}"):
        imported(parsed(text, opset=newest + 1))


@pytest.mark.parametrize("version", [0, -1, 2**40])
def test_a_version_that_there_is_not_is_refused(version):
    found = parsed("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    found.opset_import[0].version = version
    with pytest.raises(ModelError, match=f"needs version {version} of"):
        imported(found)


def test_names_that_are_no_text_are_refused():
    content = parsed("g (float[2] x) => (float[2] y) { y = Exp(x) }").SerializeToString()
    found = onnx.ModelProto()
    found.ParseFromString(content.replace(b"Exp", b"E\xff\xfe"))
    with pytest.raises(ModelError, match="no text in UTF-8"):
        imported(found)


@pytest.mark.parametrize(
    ("call", "mistake"),
    [("Add(x)", "it has 1 inputs"), ("Exp(x, x)", "it has 2 inputs")],
)
def test_an_operator_with_too_few_or_too_many_inputs_is_named(call, mistake):
    with pytest.raises(ModelError, match=mistake):
        imported(parsed(f"g (float[2] x) => (float[2] y) {{ y = {call} }}"))


def test_a_shape_of_millions_of_dimensions_is_refused_before_it_takes_memory():
    text = "g (float[1] x, int64[4294967296] s) => (float[1] y) { y = Expand(x, s) }"
    with pytest.raises(ModelError, match="'s' is a shape of 4294967296 dimensions"):
        imported(parsed(text))


@pytest.mark.parametrize("name", ["value_int", "value_float"])
def test_a_constant_that_holds_what_its_name_does_not_say_is_no_value(name):
    found = parsed("g (float[2] x) => (float[2] y) { c = Constant<value_int = 1>() y = Add(x, c) }")
    del found.graph.node[0].attribute[:]
    found.graph.node[0].attribute.add(name=name)
    with pytest.raises(ModelError, match="it holds no value"):
        imported(found)


def test_an_operator_type_as_long_as_a_page_is_refused():
    found = parsed("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    found.graph.node[0].op_type = "a" * 201
    with pytest.raises(ModelError, match="types of more than 200 characters"):
        imported(found)


def test_a_place_of_external_data_that_is_no_text_is_refused(tmp_path):
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights")
    path = tmp_path / "model.onnx"
    path.write_bytes(model(tensor).SerializeToString().replace(b"weights", b"weight\xff"))
    with pytest.raises(ModelError, match="no text in UTF-8"):
        import_model(path)
