"""Import as a whole: files that ship with ONNX, and every operator of its own tests."""

from collections import Counter
from pathlib import Path

import onnx
import pytest

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_model
from parapipe.graph.partition import partition
from tests.cases.small_models import floats, graph_of, imported, parsed, sha256

DATA = Path(onnx.__file__).parent / "backend/test/data"
FILES = sorted(DATA.rglob("*.onnx"))


def test_light_inception_v1_has_141_operators_and_11_subgraphs():
    graph = import_model(DATA / "light/light_inception_v1.onnx", granularity="onnx")
    assert Counter(operator.type for operator in graph.operators) == {
        "Conv": 57, "Relu": 57, "MaxPool": 13, "LRN": 2, "Concat": 9,
        "AveragePool": 1, "Gemm": 1, "Softmax": 1,
    }  # fmt: skip
    assert len(graph.operators) == 141
    assert len(import_model(DATA / "light/light_inception_v1.onnx").operators) == 84
    found = partition(graph)
    assert len(found.subgraphs) == 11
    assert max(subgraph.parallelism for subgraph in found.subgraphs) == 4


def test_light_inception_v1_pools_without_padding():
    graph = import_model(DATA / "light/light_inception_v1.onnx", granularity="onnx")
    pools = [
        graph.tensors[operator.id].shape[-1]
        for operator in graph.operators
        if operator.type == "MaxPool" and operator.attributes["strides"] == (2, 2)
    ]
    assert pools == [55, 27, 13, 6]


def test_resnet50_loses_its_batch_norms():
    graph = import_model(DATA / "light/light_resnet50.onnx", granularity="onnx")
    assert Counter(operator.type for operator in graph.operators) == {
        "Conv": 53, "Relu": 49, "Sum": 16, "MaxPool": 1, "AveragePool": 1, "Gemm": 1, "Softmax": 1,
    }  # fmt: skip
    convolutions = [operator for operator in graph.operators if operator.type == "Conv"]
    assert all(len(operator.folded) == 1 for operator in convolutions)
    # 4.09 GMACs as published for ResNet-50 v1.5, whose stride stands in the 3x3 convolution.
    assert round(sum(operator.work.macs for operator in graph.operators) / 1e9, 2) == 4.09


def test_vgg19_has_the_macs_that_are_published():
    graph = import_model(DATA / "light/light_vgg19.onnx")
    assert round(sum(operator.work.macs for operator in graph.operators) / 1e9, 2) == 19.63


def test_the_source_names_the_path_and_the_digest():
    path = DATA / "light/light_squeezenet.onnx"
    source = import_model(path).source
    assert source.name == str(path)
    assert source.sha256 == sha256(path.read_bytes())


def test_tensors_and_constants_hold_what_operators_name_and_no_more():
    graph = import_model(DATA / "light/light_resnet50.onnx", granularity="onnx")
    singles = [s for operator in graph.operators for s in (operator, *operator.folded)]
    named = {name for single in singles for name in (*single.inputs, *single.outputs)}
    assert graph.tensors.keys() | graph.constants.keys() == named
    assert not graph.tensors.keys() & graph.constants.keys()


def test_granularity_says_which_graph_it_is():
    text = "g (float[1,2,4,4] x) => (float[1,2,4,4] y) { a = Conv(x, w) y = Relu(a) }"
    for granularity, count in (("onnx", 2), ("fused", 1)):
        graph = graph_of(text, granularity=granularity, w=floats(2, 2, 1, 1))
        assert graph.granularity == granularity
        assert len(graph.operators) == count


def test_importing_twice_gives_equal_graphs():
    model = parsed("g (float[1,2,4,4] x) => (float[1,2,4,4] y) { a = Exp(x) y = Relu(a) }")
    assert imported(model) == imported(model)


def test_a_missing_file_is_one_clear_line(tmp_path):
    with pytest.raises(ModelError, match=r"there is no file '.*gone\.onnx': check the path"):
        import_model(tmp_path / "gone.onnx")
