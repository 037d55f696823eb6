"""Shapes, types and constants of a whole graph."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from parapipe.errors import ModelError
from parapipe.graph.infer import MOST_ELEMENTS
from tests.cases.small_models import floats, graph_of, imported, parsed, types_of, value


def test_a_view_as_torch_exports_it_is_a_reshape_by_a_constant():
    # x.view(x.size(0), -1)
    graph = graph_of("""g (float[n,3,4,4] x) => (float[n,k] y) {
        zero = Constant<value_int = 0>()
        shape = Shape(x)
        size = Gather<axis = 0>(shape, zero)
        axes = Constant<value_ints = [0]>()
        first = Unsqueeze(size, axes)
        minus = Constant<value_ints = [-1]>()
        target = Concat<axis = 0>(first, minus)
        y = Reshape(x, target)
    }""", dims={"n": 2})  # fmt: skip
    assert types_of(graph) == ["Reshape"]
    assert graph.tensors["y"].shape == (2, 48)
    assert graph.operators[0].attributes["shape"] == (2, -1)
    # Constant and Shape nodes have no names of their own here.
    assert graph.constants["target"].nodes == (
        "shape", "zero", "size", "axes", "first", "minus", "target"
    )  # fmt: skip


def test_an_upsampling_by_a_computed_size_has_a_known_shape():
    graph = graph_of("""g (float[1,2,5,6] x) => (float[?,?,?,?] y) {
        shape = Shape(x)
        head = Slice(shape, zero, two)
        tail = Slice(shape, two, four)
        doubled = Mul(tail, two)
        sizes = Concat<axis = 0>(head, doubled)
        y = Resize(x, , , sizes)
    }""", zero=np.array([0]), two=np.array([2]), four=np.array([4]))  # fmt: skip
    assert types_of(graph) == ["Resize"]
    assert graph.tensors["y"].shape == (1, 2, 10, 12)
    assert graph.operators[0].attributes["sizes"] == (1, 2, 10, 12)


def test_a_range_and_an_expand_that_depend_on_a_shape_are_constants():
    graph = graph_of("""g (float[3,5] x) => (float[?,?] y) {
        shape = Shape(x)
        one = Constant<value_int = 1>()
        n = Gather<axis = 0>(shape, one)
        zero = Constant<value_int = 0>()
        steps = Range(zero, n, one)
        wide = Expand(steps, shape)
        mask = Cast<to = 1>(wide)
        y = Add(x, mask)
    }""")  # fmt: skip
    assert types_of(graph) == ["Add"]
    assert graph.constants["mask"].shape == (3, 5)
    assert set(graph.constants) == {"mask"}


def test_what_only_a_shape_reads_is_dropped():
    text = """g (float[2,3] x) => (int64[2] y) {
        a = Exp(x) s = Shape(a) i = Cast<to = 7>(x) y = Add(s, j) k = Shape(i)
    }"""
    with pytest.raises(ModelError, match="no output that depends on an input"):
        graph_of(text, j=np.array([1, 2]))


@pytest.mark.parametrize(("elements", "known"), [(MOST_ELEMENTS, True), (MOST_ELEMENTS + 1, False)])
def test_large_constants_are_recorded_but_not_computed(elements, known):
    graph = graph_of("""g (float[1] x) => (float[?] y) {
        w = ConstantOfShape(length)
        v = Exp(w)
        y = Add(x, v)
    }""", length=np.array([elements]))  # fmt: skip
    assert graph.constants["v"].shape == (elements,)
    assert graph.constants["v"].nodes == ("w", "v")
    assert types_of(graph) == ["Add"]
    text = """g (float[1] x) => (float[?] y) {
        n = ReduceSum<keepdims = 1>(w) s = Cast<to = 7>(n) y = Expand(x, s)
    }"""
    weights = np.zeros(elements, np.float32)
    weights[0] = 3
    if known:
        assert graph_of(text, w=weights).tensors["y"].shape == (3,)
    else:
        with pytest.raises(ModelError, match=r"operator 'y' \(Expand: "):
            graph_of(text, w=weights)


def test_random_numbers_are_no_constants():
    graph = graph_of("""g (float[2] x) => (float[2] y) {
        noise = RandomNormal<shape = [2]>()
        y = Add(x, noise)
    }""")  # fmt: skip
    assert types_of(graph) == ["RandomNormal", "Add"]


def test_an_if_whose_condition_is_known_is_its_branch():
    text = """g (float[2,1] x) => (float[?] y) {
        shape = Shape(x)
        last = Gather<axis = 0>(shape, one)
        is_one = Equal(last, one)
        s = If (is_one) <
            then_branch = t () => (float[2] a) { a = Squeeze(x, axes) },
            else_branch = e () => (float[2,1] b) { b = Identity(x) }
        >
        y = Exp(s)
    }"""
    graph = graph_of(text, one=np.array(1), axes=np.array([1]))
    assert types_of(graph) == ["Squeeze", "Exp"]
    assert graph.tensors["y"].shape == (2,)


def test_graph_outputs_that_are_constants_or_inputs_are_left_out():
    text = """g (float[2] x) => (float[2] y, float[2] x, float[2] w, int64[1] s) {
        y = Add(x, w) s = Shape(x)
    }"""
    graph = graph_of(text, w=floats(2))
    assert graph.outputs == ("y",)
    assert types_of(graph) == ["Add"]


def test_an_operator_nobody_knows_is_kept_with_the_shape_that_the_file_declares():
    model = parsed(
        "g (float[2,3] x) => (float[2,3] y) { a = my.Twist(x) y = Relu(a) }", domains=["my"]
    )
    model.graph.value_info.append(value("a", [2, 3]))
    graph = imported(model)
    assert types_of(graph) == ["Twist", "Relu"]
    twist = graph.operators[0]
    assert (twist.domain, twist.work.modelled, twist.work.macs) == ("my", False, 0)
    assert twist.work.read_bytes == twist.work.written_bytes == 24


def test_operators_without_a_declared_shape_are_named_all_at_once():
    text = """g (float[2] x) => (float[2] y) {
        a = my.Twist(x) b = Relu(a) c = my.Turn(x) d = Abs(c) y = Add(b, d)
    }"""
    with pytest.raises(ModelError) as caught:
        graph_of(text, domains=["my"])
    message = str(caught.value)
    assert "4 results of unknown shape" in message
    assert "operator 'a' (my.Twist: of a type that parapipe does not know)" in message
    assert "operator 'c' (my.Turn: " in message
    assert "'b'" not in message
    assert "value_info" in message


def test_named_dimensions_of_declared_shapes_are_filled_in():
    model = parsed(
        "g (float[n,3] x) => (float[n,3] y) { a = my.Twist(x) y = Relu(a) }", domains=["my"]
    )
    model.graph.value_info.append(value("a", ["n", 3]))
    assert imported(model, dims={"n": 4}).tensors["a"].shape == (4, 3)


def test_inferred_shapes_win_over_declared_ones():
    model = parsed("g (float[n,3] x) => (float[1,3] y) { a = Exp(x) y = Relu(a) }")
    model.graph.value_info.append(value("a", [1, 3]))
    graph = imported(model, shapes={"x": (8, 3)})
    assert graph.tensors["a"].shape == graph.tensors["y"].shape == (8, 3)


def test_shapes_that_do_not_fit_say_why():
    text = "g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }"
    told = r"operator 'y' \(Add: Incompatible dimensions\), which reads 2x3, 4: give sizes of"
    with pytest.raises(ModelError, match=told):
        graph_of(text, w=floats(4))


def test_a_result_whose_shape_depends_on_a_frame_is_an_error():
    with pytest.raises(ModelError, match=r"operator 'y' \(NonZero: no shape follows"):
        graph_of("g (float[2,3] x) => (int64[2,k] y) { y = NonZero(x) }")


def test_a_data_type_that_cannot_be_counted_is_an_error():
    model = parsed("g (float[2] x) => (float[2] y) { y = Cast<to = 99>(x) }", opset=23)
    with pytest.raises(ModelError, match="does not specify a valid type"):
        imported(model)


def test_outputs_that_nobody_reads_are_left_out_where_they_are_optional():
    text = """g (float[1,2,4,4] x) => (float[1,2,2,2] y) {
        y, indices = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    }"""
    assert graph_of(text).operators[0].outputs == ("y",)
    text = "g (float[4] x) => (float[2] y) { y, rest = Split<num_outputs = 2>(x) }"
    assert graph_of(text, opset=18).operators[0].outputs == ("y", "rest")


def test_unnamed_nodes_and_those_that_share_a_name_go_by_their_first_output():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="same"),
        helper.make_node("Abs", ["a"], ["b"], name="same"),
        helper.make_node("Exp", ["b"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"], name="own"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", [2])], [value("y", [2])])
    found = imported(helper.make_model(graph))
    assert [operator.name for operator in found.operators] == ["a", "b", "c", "own"]
    assert [operator.members for operator in found.operators] == [("a",), ("b",), ("c",), ("own",)]
    assert [operator.id for operator in found.operators] == ["a", "b", "c", "y"]


def test_the_long_name_of_the_standard_domain_means_the_same():
    model = parsed("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    model.graph.node[0].domain = "ai.onnx"
    model.opset_import[0].domain = "ai.onnx"
    (operator,) = imported(model).operators
    assert (operator.domain, operator.work.modelled) == ("", True)


def test_a_sparse_initializer_counts_as_the_dense_tensor():
    model = parsed("g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }", opset=13)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [2])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    assert imported(model).constants["w"].shape == (2, 3)


def test_functions_of_the_model_are_inlined():
    model = parsed("g (float[2] x) => (float[2] y) { y = my.Twice(x) }", domains=["my"])
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    opset = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("my", "Twice", ["a"], ["b"], body, opset))
    assert types_of(imported(model)) == ["Add"]


def test_a_model_that_reads_no_input_is_refused():
    text = "g (float[2] x) => (float[2] y) { y = RandomNormal<shape = [2]>() }"
    with pytest.raises(ModelError, match="no output that depends on an input"):
        graph_of(text)
