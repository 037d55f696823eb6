from dataclasses import replace

import pytest

from parapipe.cost.signature import Signature, shape_text, signature_of
from tests.cases.hand_built import GraphBuilder


def signature_of_last(builder):
    graph = builder.graph()
    return signature_of(graph.operators[-1], graph)


def one(kind, *shapes, output, **attributes):
    builder = GraphBuilder(**{f"x{i}": shape for i, shape in enumerate(shapes)})
    builder.add(kind, list(builder.inputs), output, **attributes)
    return signature_of_last(builder)


def test_a_convolution_is_known_by_kernel_strides_and_shapes_without_the_batch():
    builder = GraphBuilder(image=(1, 3, 224, 224))
    builder.conv("image", 64, (7, 7), stride=2)
    assert signature_of_last(builder) == Signature(
        "Conv", "7x7", "2x2", "", "3x224x224", "64x112x112", "float32"
    )


def test_a_kernel_that_no_attribute_states_is_that_of_the_weights():
    builder = GraphBuilder(x=(1, 8, 10, 10))
    weights = builder.constant("w", (4, 8, 1, 7))
    builder.add("Conv", ["x", weights], (1, 4, 10, 10))
    assert signature_of_last(builder).kernel == "1x7"
    assert signature_of_last(builder).strides == "1x1"


def test_a_depthwise_convolution_is_a_convolution_with_a_group_per_channel():
    builder = GraphBuilder(x=(1, 32, 112, 112))
    builder.conv("x", 32, group=32)
    assert signature_of_last(builder).attributes == "group=32"


def test_a_dilated_convolution_is_another_than_a_dense_one():
    builder = GraphBuilder(x=(1, 8, 16, 16))
    builder.conv("x", 8, dilations=(2, 2))
    assert signature_of_last(builder).attributes == "dilations=2x2"


def test_padding_makes_no_difference():
    plain, padded = GraphBuilder(x=(1, 8, 16, 16)), GraphBuilder(x=(1, 8, 16, 16))
    plain.conv("x", 8, pads=(1, 1, 1, 1))
    padded.conv("x", 8, auto_pad="SAME_UPPER")
    assert signature_of_last(plain) == signature_of_last(padded)


def test_a_global_pool_is_a_pool_as_large_as_its_input():
    pool = one("GlobalAveragePool", (1, 1024, 7, 7), output=(1, 1024, 1, 1))
    assert pool == one(
        "AveragePool", (1, 1024, 7, 7), output=(1, 1024, 1, 1), kernel_shape=(7, 7), strides=(2, 2)
    )
    assert (pool.kernel, pool.strides, pool.output) == ("7x7", "1x1", "1024")


def test_a_product_of_one_row_with_a_constant_is_gemm_with_a_flat_input():
    row, unflattened = (1, 9216), (1, 256, 6, 6)
    for kind, shape in (
        ("Gemm", row),
        ("MatMul", row),
        ("Gemm", unflattened),
        ("MatMul", unflattened),
    ):
        builder = GraphBuilder(x=shape)
        weights = builder.constant("w", (9216, 4096))
        builder.add(kind, ["x", weights], (1, 4096))
        assert signature_of_last(builder) == Signature(
            "Gemm", "", "", "", "9216", "4096", "float32"
        )


def test_a_product_of_many_rows_with_a_constant_stays_a_product():
    builder = GraphBuilder(x=(1, 128, 768))
    builder.add("MatMul", ["x", builder.constant("w", (768, 3072))], (1, 128, 3072))
    assert signature_of_last(builder) == Signature(
        "MatMul", "", "", "", "128x768", "128x3072", "float32"
    )


def test_a_product_of_activations_keeps_both_shapes():
    product = one("MatMul", (1, 12, 128, 64), (1, 12, 64, 128), output=(1, 12, 128, 128))
    assert (product.type, product.inputs) == ("MatMul", "12x128x64 12x64x128")


def test_clip_stands_for_relu6_and_reshape_for_every_view():
    assert one("Relu6", (1, 8, 4, 4), output=(1, 8, 4, 4)).type == "Clip"
    views = {
        one(kind, (1, 1536, 1, 1), output=(1, 1536)) for kind in ("Flatten", "Reshape", "Squeeze")
    }
    assert views == {Signature("Reshape", "", "", "", "1536", "1536", "float32")}


def test_a_type_of_a_foreign_domain_stands_for_itself():
    assert one("Relu6", (1, 8, 4, 4), output=(1, 8, 4, 4), domain="my.own").type == "Relu6"


def test_a_concat_is_known_by_its_output_and_number_of_inputs():
    even = one("Concat", (1, 4, 9, 9), (1, 4, 9, 9), output=(1, 8, 9, 9), axis=1)
    uneven = one("Concat", (1, 2, 9, 9), (1, 6, 9, 9), output=(1, 8, 9, 9), axis=-3)
    assert even == uneven
    assert even.inputs == "? ?"
    assert one("Concat", (1, 8, 9, 4), (1, 8, 9, 5), output=(1, 8, 9, 9), axis=3) != even


def test_a_softmax_over_the_only_axis_has_none():
    old = one("Softmax", (1, 1000), output=(1, 1000), axis=1)
    assert old == one("Softmax", (1, 1000), output=(1, 1000))
    assert old == one("Softmax", (1, 1000, 1, 1), output=(1, 1000, 1, 1), axis=1)


def test_a_constant_operand_has_no_shape_in_the_signature():
    builder = GraphBuilder(x=(1, 320, 35, 35))
    builder.add("Mul", ["x", builder.constant("scale", ())], (1, 320, 35, 35))
    assert signature_of_last(builder).inputs == "320x35x35"


def test_names_make_no_difference():
    first, second = GraphBuilder(x=(1, 8, 4, 4)), GraphBuilder(photo=(1, 8, 4, 4))
    first.add("Relu", ["x"], (1, 8, 4, 4))
    second.add("Relu", ["photo"], (1, 8, 4, 4))
    assert signature_of_last(first) == signature_of_last(second)


def test_a_folded_operator_has_the_shape_that_it_writes():
    builder = GraphBuilder(x=(1, 8, 4, 4))
    for name in ("scale", "bias", "mean", "variance"):
        builder.constant(name, (8,))
    norm = builder.operator(
        "BatchNormalization", ["vanished", "scale", "bias", "mean", "variance"], (1, 8, 4, 4)
    )
    builder.append(replace(norm, inputs=("x",)))
    assert signature_of(norm, builder.graph()) == Signature(
        "BatchNormalization", "", "", "", "8x4x4", "8x4x4", "float32"
    )


def test_a_fused_operator_has_none():
    builder = GraphBuilder(x=(1, 8, 4, 4))
    relu = builder.operator("Relu", ["x"], (1, 8, 4, 4))
    builder.append(replace(relu, parts=(relu,)))
    with pytest.raises(ValueError, match="fused: take the signature of its parts"):
        signature_of_last(builder)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 64, 56, 56), "64x56x56"),
        ((1, 1024, 1, 1), "1024"),
        ((1, 1000), "1000"),
        ((1, 1, 28, 28), "1x28x28"),
        ((4, 3, 8, 8), "4x3x8x8"),
        ((4, 1024, 1, 1), "4x1024x1x1"),
        ((1,), "1"),
        ((), "1"),
    ],
)
def test_a_batch_of_one_and_trailing_ones_are_dropped(shape, text):
    assert shape_text(shape) == text


def test_a_window_reads_its_size_for_each_output():
    pool = one(
        "MaxPool", (1, 192, 56, 56), output=(1, 192, 28, 28), kernel_shape=(3, 3), strides=(2, 2)
    )
    assert pool.window_reads == 9 * 192 * 28 * 28
    assert one("Relu", (1, 8, 4, 4), output=(1, 8, 4, 4)).window_reads == 0
