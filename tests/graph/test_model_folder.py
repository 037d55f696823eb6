"""A folder of ONNX Runtime GenAI or of optimum stands for the model in it."""

import json

import pytest

import parapipe
from parapipe.errors import ModelError
from parapipe.graph.model_folder import model_of_folder
from tests.cases.recurrent import write_decoder, write_recurrent

GENAI = {
    "model": {
        "decoder": {
            "filename": "decoder.onnx",
            "num_hidden_layers": 2,
            "inputs": {
                "input_ids": "input_ids",
                "past_key_names": "past_key_values.%d.key",
                "past_value_names": "past_key_values.%d.value",
            },
            "outputs": {
                "logits": "logits",
                "present_key_names": "present.%d.key",
                "present_value_names": "present.%d.value",
            },
        }
    }
}


def genai_folder(tmp_path, config=GENAI):
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    write_decoder(tmp_path / "decoder.onnx")
    return tmp_path


def test_genai_names_the_file_and_the_caches(tmp_path):
    found = model_of_folder(genai_folder(tmp_path))
    assert found.file == tmp_path / "decoder.onnx"
    assert found.states["past_key_values.1.value"] == "present.1.value"
    assert len(found.states) == 4
    graph = parapipe.load_model(tmp_path, note=lambda _: None)
    assert graph.source.name == str(tmp_path / "decoder.onnx")
    assert [each.kind for each in graph.states] == ["token", *["state"] * 4]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, r"model\.decoder\.filename"),
        ({"model": {"decoder": {"filename": "gone.onnx"}}}, r"'gone\.onnx', which is not there"),
        ([], r"model\.decoder\.filename"),
    ],
)
def test_a_configuration_that_names_no_file_says_so(tmp_path, config, words):
    with pytest.raises(ModelError, match=words):
        parapipe.load_model(genai_folder(tmp_path, config))


@pytest.mark.parametrize("inside", ["", "onnx"])
def test_optimum_has_its_model_in_the_folder_or_in_onnx(tmp_path, inside):
    place = tmp_path / inside
    place.mkdir(exist_ok=True)
    write_recurrent(place / "model.onnx")
    write_recurrent(place / "model_quantized.onnx")
    (tmp_path / "config.json").write_text("{}")
    assert model_of_folder(tmp_path).file == place / "model.onnx"


def test_of_several_models_one_is_asked_for_and_a_single_one_is_taken(tmp_path):
    with pytest.raises(ModelError, match=r"without an \.onnx file"):
        parapipe.load_model(tmp_path)
    write_recurrent(tmp_path / "encoder_model.onnx")
    assert model_of_folder(tmp_path).file.name == "encoder_model.onnx"
    write_decoder(tmp_path / "decoder_model.onnx")
    with pytest.raises(ModelError, match=r"give one of '.*decoder_model\.onnx', '.*encoder_model"):
        parapipe.load_model(tmp_path)


def test_plans_name_the_file_of_a_folder(tmp_path):
    options = {"objectives": "latency-throughput", "draws": 0, "cache": False, "jobs": 1}
    front = parapipe.map(
        genai_folder(tmp_path), "amlogic-a311d", exclude=["gpu"], mapper="heft_cpop",
        interleave="none", note=lambda _: None, **options,
    )  # fmt: skip
    plan = front["sequential"].plan()
    assert plan.model.name == str(tmp_path / "decoder.onnx")
