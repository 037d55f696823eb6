"""What a model is called in titles."""

import pytest

from parapipe.files.titles import model_title, stages_title


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


def test_those_that_take_turns_stand_together_in_their_stage():
    stages = [("little", "npu0"), ("npu1",)]
    assert stages_title(stages) == "little+npu0 │ npu1"
    assert stages_title(stages, [("npu1", "npu2")]) == "little+npu0 │ npu1/npu2"
