"""What a model is called in titles."""

import pytest

from parapipe.files.titles import model_title


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("/data/nets/yolo.v8.onnx", "yolo.v8"),
        ("nets/small.onnx", "small"),
        ("C:\\nets\\small.onnx", "small"),
        ("model", "model"),
        ("zoo:googlenet", "zoo:googlenet"),
        ("GoogLeNet v1.5", "GoogLeNet v1.5"),
        (".onnx", ".onnx"),
    ],
)
def test_a_title_has_the_name_and_not_the_path(model, title):
    assert model_title(model) == title
