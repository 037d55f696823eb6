"""Files of real tools: all of their time is that of operators, and their totals are met."""

import pytest

import parapipe
from parapipe.imports.matching import match_layers
from parapipe.imports.registry import read_tool_profile
from tests.imports.conftest import FILES


@pytest.fixture(scope="module")
def squeezenet(tmp_path_factory):
    path = tmp_path_factory.mktemp("squeezenet") / "squeezenet.onnx"
    parapipe.build_zoo("squeezenet", path, weightless=True)
    return parapipe.load_model(path)


def test_benchncnn_gives_the_whole_network_as_one_block(squeezenet):
    profile = read_tool_profile(FILES / "benchncnn.txt")
    assert [layer.name for layer in profile.layers] == ["squeezenet", "mobilenet_v2", "resnet50"]
    (block,) = match_layers(squeezenet, profile.layers[:1]).blocks
    assert block.time_s == pytest.approx(16.63e-3)
    assert len(block.operators) == len(squeezenet.operators) - 1  # the Flatten is a view


@pytest.mark.parametrize(
    ("file", "tool"),
    [("onnxruntime.json", "onnxruntime"), ("openvino.csv", "openvino"), ("ncnn.txt", "ncnn")],
)
def test_the_operators_add_up_to_what_the_tool_tells(file, tool, squeezenet):
    profile = read_tool_profile(FILES / file)
    matches = match_layers(squeezenet, profile.layers)
    assert profile.format == tool
    assert (matches.unmatched, matches.without) == ((), ())
    imported_s = sum(block.time_s for block in matches.blocks)
    assert imported_s == pytest.approx(profile.total_s, rel=0.05)
