"""Shapes of graph inputs, and how unknown ones are given."""

import numpy as np
import onnx
import pytest

from parapipe.errors import ModelError
from tests.cases.small_models import floats, graph_of, imported, parsed

DYNAMIC = """g (float[batch,3,height,width] image, float[batch,?] extra) => (float[batch,k] y) {
    p = GlobalAveragePool(image)
    f = Flatten(p)
    y = Concat<axis = 1>(f, extra)
}"""


def test_all_unknown_dimensions_are_listed_at_once_with_the_way_to_give_them():
    with pytest.raises(ModelError) as caught:
        graph_of(DYNAMIC)
    assert str(caught.value) == (
        "'test.onnx' has inputs with unknown dimensions: 'image' [1 x 3 x height x width], "
        "'extra' [1 x ?]; give their sizes, as in `shapes` image=1x3x640x640 `shapes` extra=1x128"
    )


def test_what_is_known_already_is_shown_as_a_number():
    with pytest.raises(ModelError, match=r"'image' \[2 x 3 x height x width\]"):
        graph_of(DYNAMIC, dims={"batch": 2})


def test_dimensions_are_given_by_name_and_shapes_by_input():
    graph = graph_of(DYNAMIC, dims={"batch": 2, "height": 8, "width": 9}, shapes={"extra": (2, 5)})
    assert graph.tensors["image"].shape == (2, 3, 8, 9)
    assert graph.tensors["y"].shape == (2, 8)


def test_a_shape_gives_its_named_dimensions_to_other_inputs():
    text = "g (float[n,4] a, float[n,4] b) => (float[n,4] y) { y = Add(a, b) }"
    graph = graph_of(text, shapes={"a": (7, 4)})
    assert graph.tensors["b"].shape == (7, 4)


def test_a_shape_that_contradicts_the_file_is_an_error():
    text = "g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }"
    assert graph_of(text, shapes={"x": (1, 3)}).tensors["y"].shape == (1, 3)
    with pytest.raises(ModelError, match=r"x is \[1 x 3\] in the file, not 5x3"):
        graph_of(text, shapes={"x": (5, 3)})


def test_a_size_of_minus_1_in_the_file_is_unknown():
    model = parsed("g (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -1
    with pytest.raises(ModelError, match=r"'x' \[1 x 3 x \? x 4\]"):
        imported(model)


def test_a_size_of_0_in_the_file_is_none_at_all_unless_another_is_given():
    model = parsed("g (float[0,3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }")
    assert imported(model).tensors["x"].shape == (0, 3)
    assert imported(model, shapes={"x": (4, 3)}).tensors["x"].shape == (4, 3)


DYNAMIC_RESULT = """g (float[6] x) => (int64[1,k] y) {
    n = NonZero(x)
    y = Neg(n)
}"""


def test_a_shape_may_be_given_to_a_result_that_depends_on_values():
    with pytest.raises(ModelError, match=r"'n' \(NonZero.*`shapes` n=1x3x224x224, declare"):
        graph_of(DYNAMIC_RESULT)
    graph = graph_of(DYNAMIC_RESULT, shapes={"n": (1, 5)})
    assert graph.tensors["y"].shape == (1, 5)
    assert graph.tensors["n"].dtype == "int64"


def test_shapes_of_results_that_contradict_the_inputs_are_named_all_at_once():
    text = "g (float[2] x) => (float[2] y) { a = Exp(x) y = Neg(a) }"
    with pytest.raises(ModelError, match=r"'a' is 2, not 3; 'y' is 2, not 4, as follows from"):
        graph_of(text, shapes={"a": (3,), "y": (4,)})


UNKNOWN_TYPE = """g (float[1,3] x) => (float[1,4] z) {
    y = com.example.Turn(x)
    z = Relu(y)
}"""


def unknown_type(**shapes):
    return graph_of(UNKNOWN_TYPE, domains=["com.example"], shapes=shapes)


def test_a_result_of_an_unknown_operator_takes_a_shape_with_its_data_type():
    tensor = unknown_type(y=("float16", (1, 4))).tensors["y"]
    assert (tensor.shape, tensor.dtype, tensor.size_bytes) == ((1, 4), "float16", 8)


def test_a_result_of_which_nothing_is_known_is_named_with_what_to_write():
    with pytest.raises(ModelError, match=r"1 result .*give shapes, as in `shapes` y=float32:1x3"):
        unknown_type()
    with pytest.raises(ModelError, match=r"give 'y' a data type, as in `shapes` y=float32:1x4"):
        unknown_type(y=(1, 4))


def test_a_data_type_that_is_none_or_that_the_model_contradicts_is_told():
    with pytest.raises(ModelError, match="no data type 'float23', did you mean 'float32'"):
        unknown_type(y=("float23", (1, 4)))
    with pytest.raises(ModelError, match=r"x is float32 in the file, not int8"):
        unknown_type(x=("int8", (1, 3)), y=("float32", (1, 4)))
    with pytest.raises(ModelError, match=r"'z' is float32, not int8"):
        unknown_type(y=("float32", (1, 4)), z=("int8", (1, 4)))
    assert unknown_type(x=("float32", (1, 3)), y=("float32", (1, 4))).inputs == ("x",)


def test_an_optional_input_has_the_shape_and_bytes_of_the_tensor_that_it_holds():
    text = "g (optional(float[2,3]) x) => (float[2,3] y) { y = OptionalGetElement(x) }"
    tensor = graph_of(text, opset=18).tensors["x"]
    assert (tensor.shape, tensor.dtype, tensor.size_bytes) == ((2, 3), "optional(float32)", 24)


def test_an_input_of_unknown_rank_can_be_given():
    model = parsed("g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match=r"'x' \[any rank\]"):
        imported(model)
    assert imported(model, shapes={"x": (2, 2, 2)}).tensors["y"].shape == (2, 2, 2)


def test_a_name_that_is_not_in_the_model_is_an_error_with_those_that_are():
    with pytest.raises(
        ModelError, match=r"no dimension named bach: it has batch, height, width; di"
    ):
        graph_of(DYNAMIC, dims={"bach": 1})
    with pytest.raises(ModelError, match=r"no input named img: it has extra, image; did you mean"):
        graph_of(DYNAMIC, shapes={"img": (1, 3, 8, 8)})
    with pytest.raises(ModelError, match="it has none that is named"):
        graph_of("g (float[1] x) => (float[1] y) { y = Relu(x) }", dims={"n": 1})


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"dims": {"batch": -1}}, "batch=-1 is no size"),
        ({"shapes": {"image": (1, 3, 8)}}, "image has 4 dimensions, not 3"),
        ({"shapes": {"image": (1, 3, 8, -1)}}, "image=1x3x8x-1 has a dimension below 0"),
        ({"dims": {"batch": 1}, "shapes": {"extra": (2, 5)}}, "batch is both 1 and 2"),
    ],
)
def test_a_wrong_size_says_what_is_wrong(options, mistake):
    with pytest.raises(ModelError, match=mistake):
        graph_of(DYNAMIC, **options)


def test_several_wrong_sizes_are_told_at_once():
    with pytest.raises(ModelError, match=r"batch=-2 is no size; .*height=-1 is no size"):
        graph_of(DYNAMIC, dims={"batch": -2, "height": -1})


def test_a_cache_may_be_empty_before_the_first_token():
    text = """g (float[1,2,past,4] old, float[1,2,1,4] new) => (float[1,2,all,4] y) {
        y = Concat<axis = 2>(old, new)
    }"""
    graph = graph_of(text, dims={"past": 0})
    assert (graph.tensors["old"].size_bytes, graph.tensors["y"].shape) == (0, (1, 2, 1, 4))
    assert graph_of(text, shapes={"old": (1, 2, 0, 4)}).tensors["y"].shape == (1, 2, 1, 4)


@pytest.mark.parametrize("given", [{"dims": {"n": 0}}, {"shapes": {"x": (0, 3)}}])
def test_a_size_of_0_that_leaves_nothing_of_a_result_is_refused(given):
    text = "g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }"
    with pytest.raises(ModelError, match=r"computes nothing with .*'y' \[0 x 3\] would be empty"):
        graph_of(text, **given)


def test_initializers_listed_as_inputs_are_constants():
    text = "g (float[2,3] x, float[3] w) => (float[2,3] y) { y = Add(x, w) }"
    graph = graph_of(text, w=floats(3))
    assert graph.inputs == ("x",)
    assert set(graph.constants) == {"w"}


def test_an_input_that_is_no_tensor_is_refused():
    text = (
        "g (seq(float[2]) s) => (float[2] y) { i = Constant<value_int = 0>() y = SequenceAt(s, i) }"
    )
    with pytest.raises(ModelError, match=r"no dense tensors of a known type \('s'\)"):
        graph_of(text)


def test_the_model_given_is_not_changed():
    model = parsed(DYNAMIC)
    before = onnx.ModelProto()
    before.CopyFrom(model)
    imported(model, shapes={"image": (1, 3, 4, 4), "extra": (1, 5)})
    assert model == before


def test_an_input_that_nobody_reads_is_left_out():
    text = "g (float[2] x, float[3] idle) => (float[2] y) { y = Relu(x) }"
    assert graph_of(text).inputs == ("x",)


def test_a_scalar_input_has_an_empty_shape():
    graph = graph_of("g (float x) => (float y) { y = Relu(x) }", two=np.float32(2))
    assert graph.tensors["x"].shape == ()
    assert graph.tensors["x"].size_bytes == 4


def copied(shape):
    return f"g (float[{shape}] x) => (y) {{ y = Neg(x) }}"


@pytest.mark.parametrize(
    ("shape", "expected", "told"),
    [
        ("batch_size,3,4,4", (1, 3, 4, 4), "dimension 'batch_size' is taken as 1"),
        ("N,3,4,4", (1, 3, 4, 4), "by --dim N=…"),
        ("?,3,4,4", (1, 3, 4, 4), "dimension 1 of 'x' is taken as 1"),
        ("?,3,4,4", (1, 3, 4, 4), "by --shape x=1x3x4x4"),
        ("anything,7", (1, 7), "dimension 'anything' is taken as 1"),
        ("2,batch,8", (2, 1, 8), "dimension 'batch' is taken as 1"),
        ("1,boxes,4", (1, 1, 4), "dimension 'boxes' is taken as 1"),
    ],
)
def test_a_batch_and_a_lone_open_dimension_are_taken_as_1_and_it_is_said(shape, expected, told):
    graph = graph_of(copied(shape))
    assert graph.tensors["x"].shape == expected
    (note,) = graph.notes
    assert told in note


def test_what_is_given_is_not_assumed():
    assert graph_of(copied("batch,7"), dims={"batch": 4}).notes == ()
    assert graph_of(copied("?,7"), shapes={"x": (4, 7)}).notes == ()


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ("1,3,height,width", "`shapes` x=1x3x640x640, or by `dims` height=640 `dims` width=640"),
        ("1,3,?,48", "`shapes` x=1x3x640x48"),
        ("n,sequence,64", "`shapes` x=1x128x64, or by `dims` sequence=128"),
        ("height,width,3", "or by `dims` height=1 `dims` width=128"),
        ("1,p,q", "or by `dims` p=128 `dims` q=128"),
        ("samples", "or by `dims` samples=1"),
    ],
)
def test_other_sizes_are_asked_for_by_the_names_of_the_model(shape, advice):
    with pytest.raises(ModelError, match=f"give their sizes, as in .*{advice}"):
        graph_of(copied(shape))


@pytest.mark.parametrize(
    ("total", "dims", "advice"),
    [
        ("total", {}, r"mask=1x256 .*old=1x2x128x8, or by `dims` sequence=128 `dims` past=128$"),
        ("past + sequence", {}, r"mask=1x256 .*old=1x2x128x8"),
        ("total", {"past": 512}, r"mask=1x640, or by `dims` sequence=128$"),
    ],
)
def test_the_sizes_asked_for_fit_each_other(total, dims, advice):
    with pytest.raises(ModelError, match=advice):
        imported(cached(total), dims=dims)


@pytest.mark.parametrize(
    ("total", "past"),
    [
        ("total_sequence_length", "past_sequence_length"),
        ("past + sequence_length", "past"),
        ("before + sequence_length", "before"),
    ],
)
def test_all_of_a_cache_is_what_was_and_what_is_new_and_a_note_says_so(total, past):
    model = cached(total, past, "sequence_length")
    graph = imported(model, dims={past: 512, "sequence_length": 1})
    assert graph.tensors["mask"].shape == (1, 513)
    (note,) = graph.notes
    assert note == (
        f"dimension '{total}' is taken as 513, {past} and sequence_length together; give another "
        f"by --dim '{total}=…'"
    )
    given = imported(model, dims={past: 512, "sequence_length": 1, total: 600})
    assert (given.tensors["mask"].shape, given.notes) == ((1, 600), ())


def cached(total, past="past", new="sequence"):
    """Return a model that reads new tokens, a mask of all, and a cache."""
    text = """g (int64[1,n] ids, int64[1,t] mask, float[1,2,p,8] old)
        => (int64[1,n] a, int64[1,t] b, float[1,2,p,8] c) {
        a = Abs(ids) b = Abs(mask) c = Abs(old) }"""
    model = parsed(text)
    names = {"n": new, "t": total, "p": past}
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = names[dim.dim_param]
    return model


def test_a_lone_dimension_with_which_the_model_does_not_work_out_is_asked_for():
    text = "g (float[1,steps] x) => (y) { y = Reshape(x, to) }"
    with pytest.raises(ModelError, match=r"'x' \[1 x steps\]; give their sizes"):
        graph_of(text, to=np.array([2, 3]))
    empty = "g (float[1,1,steps] x) => (y) { y = Slice(x, start, end, axes) }"
    ends = {"start": np.array([1]), "end": np.array([9]), "axes": np.array([2])}
    with pytest.raises(ModelError, match=r"'x' \[1 x 1 x steps\]; give their sizes"):
        graph_of(empty, **ends)


def test_a_batch_is_the_same_in_all_inputs():
    text = "g (float[n,4] a, float[3,n] b) => (y) { y = MatMul(b, a) }"
    graph = graph_of(text)
    assert graph.tensors["b"].shape == (3, 1)
    assert len(graph.notes) == 1
