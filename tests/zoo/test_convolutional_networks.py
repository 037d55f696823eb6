"""The zoo's convolutional networks: size, subgraphs and results."""

import re
from collections import Counter
from functools import cache
from math import prod

import numpy as np
import onnxruntime
import pytest

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.zoo.emitter import without_weights
from parapipe.zoo.registry import build, serialize

# Para-Pipe, tables I and III: operators (no rule gives all four exactly), subgraphs, parallelism.
PAPER = {
    "googlenet": (141, 11, 4),
    "inception-v3": (220, 13, 6),
    "inception-v4": (343, 21, 6),
    "inception-resnet-v2": (576, 45, 4),
}
# Billions of multiply-accumulates. Sums over the layers of the measured networks (column
# macs_derived of profiles/amlogic-a311d/measured/operators.csv, corrected as SOURCES.md there
# says); of MobileNet-v2, what Sandler et al., 2018, state in table 4 for width 1 at 224x224.
GIGAMACS = {
    "alexnet": 0.724,
    "googlenet": 1.583,
    "inception-v3": 5.71,
    "inception-v4": 12.25,
    "inception-resnet-v2": 13.16,
    "mobilenet-v1": 0.569,
    "mobilenet-v2": 0.300,
    "resnet-50": 3.48,
}
# Too large to be given weights in a test: these run weightless.
LARGE = ("alexnet", "hrnet-w18", "inception-resnet-v2", "inception-v4", "pnasnet-5-large")
# Learned numbers and multiply-accumulates of `hrnet_w18` and `pnasnet5large` of the package timm,
# counted with PyTorch's FlopCounterMode. Published: 21.3 million (Wang et al., 2020, table of
# HRNet-W18-C), 86.1 million and 25.0 billion (Liu et al., 2018, table 2).
COUNTED = {
    "hrnet-w18": (21_299_004, 4_283_537_072),
    "pnasnet-5-large": (86_057_668, 24_937_395_792),
}

# Operators in what PyTorch exports of the same two models, which computes nothing twice.
EXPORTED = {
    "hrnet-w18": {"Conv": 325, "Add": 177, "Relu": 284, "Resize": 31},
    "pnasnet-5-large": {
        "Conv": 373,
        "Add": 70,
        "MaxPool": 28,
        "Relu": 140,
        "Concat": 18,
        "AveragePool": 8,
    },
}


@cache
def graph_of(name):
    model = build(name, weightless=True)
    return import_proto(model, source=ModelSource(name, ""), granularity="onnx")


def macs_of(name):
    return sum(operator.work.macs for operator in graph_of(name).operators)


@pytest.mark.parametrize("name", PAPER)
def test_operators_subgraphs_and_parallelism_are_those_of_the_paper(name):
    operators, subgraphs, parallelism = PAPER[name]
    assert len(graph_of(name).operators) == pytest.approx(operators, abs=2)
    for graph in (graph_of(name), fuse(graph_of(name))):
        found = partition(graph)
        assert len(found.subgraphs) == subgraphs
        assert max(subgraph.parallelism for subgraph in found.subgraphs) == parallelism


@pytest.mark.parametrize("name", GIGAMACS)
def test_multiply_accumulates_are_those_of_the_source(name):
    assert macs_of(name) / 1e9 == pytest.approx(GIGAMACS[name], rel=0.02)


@pytest.mark.parametrize("name", COUNTED)
def test_weights_and_multiply_accumulates_are_those_that_pytorch_counts(name):
    # There, convolutions have no bias, but for those that bring HRNet's branches together.
    learned = re.compile(r"(/weight|/scale|/norm\d?/bias|head/(down\d|last)/bias|classifier/bias)$")
    with without_weights() as makers:
        tensors = build(name).graph.initializer
    weights = [each for each in tensors if each.name in makers and learned.search(each.name)]
    assert (sum(prod(each.dims) for each in weights), macs_of(name)) == COUNTED[name]


@pytest.mark.parametrize("name", EXPORTED)
def test_operators_are_those_that_pytorch_exports(name):
    found = Counter(operator.type for operator in graph_of(name).operators)
    assert {kind: found[kind] for kind in EXPORTED[name]} == EXPORTED[name]


def test_squeezenet_multiplies_what_its_modules_do_by_hand():
    def fire(side, read, squeeze, expand):
        return side**2 * (read * squeeze + squeeze * expand + squeeze * expand * 9)

    # 227 -> 113 by a 3x3 of stride 2, then halved by pools that round up: 56, 28, 14.
    wanted = 113**2 * 64 * 3 * 9
    wanted += fire(56, 64, 16, 64) + fire(56, 128, 16, 64)
    wanted += fire(28, 128, 32, 128) + fire(28, 256, 32, 128)
    wanted += fire(14, 256, 48, 192) + fire(14, 384, 48, 192)
    wanted += fire(14, 384, 64, 256) + fire(14, 512, 64, 256)
    wanted += 14**2 * 512 * 1000
    assert macs_of("squeezenet") == wanted


def test_densenet_multiplies_what_its_blocks_do_by_hand():
    # Table 1 of Huang et al., 2017: a 1x1 to 128 and a 3x3 to 32 channels in each layer, and a
    # 1x1 that halves the channels between blocks, before the pool.
    wanted = 112**2 * 64 * 3 * 49
    channels, side = 64, 56
    for layers in (6, 12, 24, 16):
        for _ in range(layers):
            wanted += side**2 * (channels * 128 + 128 * 32 * 9)
            channels += 32
        if layers != 16:
            wanted += side**2 * channels * (channels // 2)
            channels, side = channels // 2, side // 2
    assert (channels, side) == (1024, 7)
    assert macs_of("densenet-121") == wanted + 1024 * 1000


@pytest.mark.parametrize("name", ["densenet-121", *GIGAMACS, *COUNTED, "squeezenet"])
def test_onnx_runtime_computes_a_distribution(name):
    model = build(name, weightless=name in LARGE)
    session = onnxruntime.InferenceSession(serialize(model))
    (image,) = session.get_inputs()
    pixels = np.random.default_rng(0).standard_normal(image.shape).astype(np.float32)
    (result,) = session.run(None, {image.name: pixels})
    assert result.shape in ((1, 1000), (1, 1001))
    assert np.isfinite(result).all()
    assert result.sum() == pytest.approx(1, abs=1e-5)
    if name in LARGE:
        assert np.ptp(result) == 0
    else:
        assert result.max() > 2 / 1000
