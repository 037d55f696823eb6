"""The zoo's networks with attention, U-Net and YOLO: size, subgraphs and results."""

from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.zoo.registry import build, builder_of, serialize
from parapipe.zoo.transformer import bert_base, gpt

# Para-Pipe, tables I and III: operators, subgraphs, parallelism.
PAPER = {"petr": (337, 24, 16), "bevformer": (257, 25, 4)}
# Billions of multiply-accumulates and millions of weights.
PUBLISHED = {
    # torchvision's table of models: 17.56 GFLOPS (a multiply-accumulate counts once), 86.6 M.
    "vit-b16": (17.56, 86.6),
    # Jiao et al., "TinyBERT", 2020, table 1: 22.5 GFLOPs (it counts twice) on 128 tokens, 109 M.
    "bert-base": (22.5 / 2, 109),
    # Table in the README of Megvii-BaseDetection/YOLOX: 26.8 GFLOPs (it counts twice), 9.0 M.
    "yolo-pan": (26.8 / 2, 9.0),
}
# Arguments that make a model small, for the tests that run it.
SMALL = {
    "petr": {"height": 64, "width": 96, "queries": 20, "layers": 2},
    "bevformer": {"side": 10, "rows": 3, "columns": 4, "layers": 2},
    "unet": {"size": 188, "width": 8},
    "yolo-pan": {"size": 64},
    "vit-b16": {"size": 64, "layers": 1},
    "bert-base": {"tokens": 16, "layers": 1, "vocabulary": 100},
    "gpt:2": {"layers": 2, "tokens": 16, "vocabulary": 100},
}


@cache
def graph_of(name):
    model = build(name, weightless=True)
    return import_proto(model, source=ModelSource(name, ""), granularity="onnx")


def macs_of(name):
    return sum(operator.work.macs for operator in graph_of(name).operators)


def weights_of(name):
    return sum(constant.size_bytes for constant in graph_of(name).constants.values()) / 4


@pytest.mark.parametrize("name", PAPER)
def test_operators_subgraphs_and_parallelism_are_those_of_the_paper(name):
    operators, subgraphs, parallelism = PAPER[name]
    assert len(graph_of(name).operators) == operators
    for graph in (graph_of(name), fuse(graph_of(name))):
        found = partition(graph)
        assert len(found.subgraphs) == subgraphs
        assert max(subgraph.parallelism for subgraph in found.subgraphs) == parallelism


def test_the_largest_subgraph_of_petr_has_169_operators_and_is_the_most_parallel():
    largest = max(partition(graph_of("petr")).subgraphs, key=lambda each: len(each.operators))
    assert len(largest.operators) == 169
    assert largest.parallelism == 16


def test_a_layer_of_bevformer_is_four_subgraphs_the_spatial_one_4_wide():
    found = partition(graph_of("bevformer")).subgraphs
    sizes = [len(subgraph.operators) for subgraph in found]
    assert sizes == [14, 12, 11, 5] * 6 + [5]
    assert [subgraph.parallelism for subgraph in found] == [3, 4, 3, 1] * 6 + [1]


@pytest.mark.parametrize("name", PUBLISHED)
def test_multiply_accumulates_and_weights_are_the_published_ones(name):
    gigamacs, megaweights = PUBLISHED[name]
    assert macs_of(name) / 1e9 == pytest.approx(gigamacs, rel=0.02)
    assert weights_of(name) / 1e6 == pytest.approx(megaweights, rel=0.02)


def test_bert_base_multiplies_what_its_layers_do_by_hand():
    layer = 12 * 128 * 768**2 + 2 * 128**2 * 768
    assert macs_of("bert-base") == 12 * layer + 768**2


def test_petr_multiplies_what_its_layers_do_by_hand():
    pixels = 6 * 512 * 1408
    backbone = pixels // 4 * 3 * 64 * 7**2
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner, place = 64 << stage, pixels // 16 // 4**stage
        read = 2 * inner if stage else inner
        backbone += place * (read * inner + 9 * inner**2 + inner * 4 * inner + read * 4 * inner)
        backbone += (blocks - 1) * place * (4 + 9 + 4) * inner**2
    keys, queries, width = pixels // 32**2, 900, 256
    assert keys == 4224
    embeddings = keys * (192 * 1024 + 1024 * width) + keys * (384 * 1024 + 1024 * width)
    embeddings += keys * 2048 * width + queries * (384 * width + width**2)
    self_attention = 4 * queries * width**2 + 2 * queries**2 * width
    cross_attention = 2 * (queries + keys) * width**2 + 2 * queries * keys * width
    feed_forward = 2 * queries * width * 2048
    heads = 2 * queries * (2 * width**2 + width * 10)
    layers = 6 * (self_attention + cross_attention + feed_forward)
    assert macs_of("petr") == backbone + embeddings + layers + heads


def test_bevformer_multiplies_what_its_layers_do_by_hand():
    cells, pixels, width = 50**2, 6 * 15 * 25, 256

    def sampled(image, query, points):  # values, shifts and scores, weighted sums, joined heads
        made = image * width**2 + cells * query * 8 * points * 3
        return made + cells * width * points + cells * width**2

    temporal = sampled(2 * cells, 2 * width, 8)
    spatial = sampled(pixels, width, 48)
    self_attention = 4 * cells * width**2 + 2 * cells**2 * width
    feed_forward = 2 * cells * width * 512
    head = cells * (width**2 + width * 10)
    assert macs_of("bevformer") == 6 * (temporal + spatial + self_attention + feed_forward) + head


def test_unet_multiplies_what_the_sizes_in_its_figure_say():
    # Side of what is made, channels read and made, side of the kernel; figure 1 of the paper.
    layers = [(570, 1, 64, 3), (568, 64, 64, 3), (282, 64, 128, 3), (280, 128, 128, 3)]
    layers += [(138, 128, 256, 3), (136, 256, 256, 3), (66, 256, 512, 3), (64, 512, 512, 3)]
    layers += [(30, 512, 1024, 3), (28, 1024, 1024, 3)]
    layers += [(56, 1024, 512, 1), (54, 1024, 512, 3), (52, 512, 512, 3)]
    layers += [(104, 512, 256, 1), (102, 512, 256, 3), (100, 256, 256, 3)]
    layers += [(200, 256, 128, 1), (198, 256, 128, 3), (196, 128, 128, 3)]
    layers += [(392, 128, 64, 1), (390, 128, 64, 3), (388, 64, 64, 3), (388, 64, 2, 1)]
    # Each element that a transposed 2x2 convolution of stride 2 makes reads one pixel.
    wanted = sum(side**2 * read * made * kernel**2 for side, read, made, kernel in layers)
    assert macs_of("unet") == wanted
    assert graph_of("unet").tensors["classes"].shape == (1, 2, 388, 388)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_gpt_multiplies_what_its_layers_do_by_hand(layers):
    tokens, width, vocabulary = 128, 768, 50257
    layer = 12 * tokens * width**2 + 2 * tokens**2 * width
    assert macs_of(f"gpt:{layers}") == layers * layer + tokens * width * vocabulary


def test_a_gpt_of_12_layers_has_the_124_million_weights_of_gpt2_small():
    table_columns = 768 * 50257  # the table transposed, not a second one
    positions_left_out = (1024 - 128) * 768  # GPT-2's positions reach further than 128 tokens
    found = weights_of("gpt:12") - table_columns + positions_left_out
    assert found / 1e6 == pytest.approx(124.4, abs=0.1)


def test_a_gpt_whose_weights_fill_no_file_is_weightless():
    assert len(serialize(build("gpt:49"))) < 2e6


def feed(model):
    """Random inputs: half of the flags set, identifiers 0 and 1, all cells seen."""
    random = np.random.default_rng(1)
    found = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        numbers = random.standard_normal(shape).astype(np.float32)
        if value.name == "seen":
            numbers = np.ones(shape, np.float32)
        found[value.name] = numbers if dtype == np.float32 else (numbers > 0).astype(dtype)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_onnx_runtime_computes_finite_numbers_that_depend_on_every_input(name):
    model = builder_of(name)(**SMALL[name])
    session = onnxruntime.InferenceSession(serialize(model))
    inputs = feed(model)
    first = session.run(None, inputs)
    for fed, numbers in inputs.items():
        changed = np.zeros_like(numbers) if fed != "seen" else 2 * numbers
        second = session.run(None, inputs | {fed: changed})
        assert max(np.abs(a - b).max() for a, b in zip(first, second, strict=True)) > 1e-5, fed
    assert all(np.isfinite(result).all() for result in first)
    assert all(result.std() > 1e-3 for result in first)


def test_attention_of_petr_is_that_of_the_textbook():
    from parapipe.zoo.detection import attend, heads, keys
    from parapipe.zoo.emitter import Emitter
    from parapipe.zoo.transformer import product

    net = Emitter("net", {"x": (3, 256), "y": (5, 256)})
    scores = product(net, heads(net, "x", "q"), keys(net, "y", "k"), "scores")
    model = net.model([attend(net, scores, heads(net, "y", "v"), "a")])
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, 256)).astype(np.float32) for rows in (3, 5))
    (found,) = onnxruntime.InferenceSession(serialize(model)).run(None, {"x": x, "y": y})
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    wanted = 0
    for head in range(8):
        query, key, value = (
            rows @ weights[f"{name}/weight"][head] for rows, name in ((x, "q"), (y, "k"), (y, "v"))
        )
        shares = np.exp(query @ key.T)
        shares /= shares.sum(1, keepdims=True)
        wanted += shares @ value @ weights["a/joined/weight"][head]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_padding_of_bert_and_later_tokens_of_a_gpt_change_nothing():
    model = bert_base(tokens=8, layers=1, vocabulary=20)
    session = onnxruntime.InferenceSession(serialize(model))
    inputs = {name: np.zeros((1, 8), np.int64) for name in ("input_ids", "token_type_ids")}
    inputs["attention_mask"] = np.array([[1] * 6 + [0] * 2])
    first, _ = session.run(None, inputs)
    other, _ = session.run(None, inputs | {"input_ids": np.array([[0] * 6 + [7] * 2])})
    np.testing.assert_allclose(first[:, :6], other[:, :6], atol=1e-5)
    model = gpt(1, tokens=8, vocabulary=20)
    session = onnxruntime.InferenceSession(serialize(model))
    (first,) = session.run(None, {"input_ids": np.array([[1, 2, 3, 4, 5, 6, 7, 8]])})
    (other,) = session.run(None, {"input_ids": np.array([[1, 2, 3, 4, 5, 9, 9, 9]])})
    np.testing.assert_allclose(first[:, :5], other[:, :5], atol=1e-5)
    assert np.abs(first[:, 5:] - other[:, 5:]).max() > 1e-3
