"""Layers of tools, and the operators that they stand for."""

import pytest

from parapipe.imports.kinds import kind_of
from parapipe.imports.layers import Layer
from parapipe.imports.matching import match_layers
from parapipe.imports.names import OperatorNames

# the operators: conv1 (norm and relu1 in it), left1 (left2 in it), left3, right1 (right2 in it),
# join, flatten (a view), fc, prob


def blocks(graph, *layers):
    matches = match_layers(graph, layers)
    names = [each.name for each in graph.operators]
    return {tuple(names[v] for v in b.operators): b.time_s for b in matches.blocks}, matches


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conv1", ["conv1"]),
        ("r1", ["conv1"]),  # a tensor, made by the Relu in it
        ("norm", ["conv1"]),  # folded
        ("left2_nchwc", ["left1"]),
        ("fused left3", ["left3"]),
        ("Conv:right1", ["right1"]),
        ("conv1 + norm + relu1", ["conv1"]),
        ("PWN(left3, PWN(right1))", ["left3", "right1"]),
        ("[left3;join]:17", ["left3", "join"]),
        ("right1/WithoutBiases", ["right1"]),
        ("{ForeignNode[conv1...left3]}", ["conv1", "left1", "left3"]),
        ("left1_2", []),  # of another layer, as far as one can know
        ("other", []),
    ],
)
def test_operators_are_named_as_runtimes_do(graph, text, expected):
    numbers = OperatorNames(graph).named_in(text)
    assert [graph.operators[v].name for v in numbers] == expected


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Conv CONV_2D Convolution ConvRelu DEPTHWISE_CONV_2D ConvolutionDepthWise", "convolution"),
        ("ConvTranspose TRANSPOSE_CONV Deconvolution", "transposed convolution"),
        ("Gemm MatMul FULLY_CONNECTED InnerProduct FullyConnected", "product"),
        ("MaxPool Pooling AVERAGE_POOL_2D GlobalAveragePool ReduceMean MEAN", "pool"),
        ("Add Eltwise BinaryOp Relu Clip", "elementwise"),
        ("Convert Cast QuantizeLinear", "convert"),
        ("Concat CONCATENATION", "concat"),
    ],
)
def test_runtimes_words_for_one_kind_of_operator_are_one(words, kind):
    assert {kind_of(word) for word in words.split()} == {kind}


def test_layers_without_names_are_matched_by_kind_shape_and_kernel(graph):
    found, matches = blocks(
        graph,
        Layer("a", 1, "ConvRelu", shapes=((16, 16, 8),), kernel=(3, 3)),
        # the two branches in another order than the model's
        Layer("b", 2, "Conv", shapes=((1, 8, 16, 16),), kernel=(1, 1)),
        Layer("c", 3, "Conv", shapes=((1, 8, 16, 16),), kernel=(1, 1)),
        Layer("d", 4, "Conv", shapes=((1, 8, 16, 16),), kernel=(3, 3)),
        Layer("e", 5, "Concatenation", shapes=((1, 16, 16, 16),)),
        Layer("f", 6, "InnerProduct", shapes=((10,),)),
        Layer("g", 7, "Softmax", shapes=((10,),)),
    )
    assert found == {
        ("conv1",): 1, ("left1",): 2, ("right1",): 3, ("left3",): 4, ("join",): 5, ("fc",): 6,
        ("prob",): 7,
    }  # fmt: skip
    assert (matches.unmatched, matches.without) == ((), ())


def test_layers_of_one_operator_add_up_and_one_layer_of_several_is_a_block(graph):
    found, _ = blocks(
        graph,
        Layer("conv1", 1, "Conv"),
        Layer("norm", 2, "BatchNorm"),
        Layer("relu1", 3, "Relu"),
        Layer("left1 + left2 + left3", 10, "Conv"),
        Layer("right1", 5, "Conv"),
        Layer("fc", 6, "Gemm"),
        Layer("prob", 7, "Softmax"),
    )
    # the Concat has no layer: the last convolution that ran before it wrote into its place
    assert found == {
        ("conv1",): 6, ("left1", "left3"): 10, ("right1", "join"): 5, ("fc",): 6, ("prob",): 7,
    }  # fmt: skip


def test_conversions_and_views_count_with_what_comes_next_and_the_rest_is_told(graph):
    found, matches = blocks(
        graph,
        Layer("reorder", 1, "Reorder", inserted=True),
        Layer("conv1", 2, "Conv"),
        Layer("stranger", 3, "Conv", shapes=((9, 9, 9),)),
        Layer("shape", 4, "Flatten"),
        Layer("fc", 5, "Gemm"),
        Layer("back", 6, "Reorder", inserted=True),
    )
    assert found == {("conv1",): 3, ("fc",): 15}
    assert [layer.name for layer in matches.unmatched] == ["stranger"]
    assert matches.inserted_s == 11
    names = [graph.operators[v].name for v in matches.without]
    assert names == ["left1", "left3", "right1", "join", "prob"]


def test_the_whole_model_is_one_block(graph):
    found, matches = blocks(graph, Layer("small", 8, whole=True))
    assert found == {("conv1", "left1", "left3", "right1", "join", "fc", "prob"): 8}
    assert matches.without == ()
