"""`parapipe zoo`."""

import json

import onnx


def test_googlenet_is_listed(parapipe) -> None:
    assert "googlenet" in parapipe("zoo", "list").out.splitlines()
    assert "googlenet" in json.loads(parapipe("zoo", "list", "--json").out)["models"]


def test_a_model_is_built_twice_with_the_same_bytes(parapipe, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parapipe("zoo", "build", "googlenet").out == "wrote googlenet.onnx\n"
    assert parapipe("zoo", "build", "zoo:googlenet", "--out", "again.onnx").code == 0
    assert (tmp_path / "googlenet.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes()
    onnx.checker.check_model(str(tmp_path / "googlenet.onnx"))


def test_a_weightless_model_is_small_and_maps_as_the_whole_one_does(parapipe, tmp_path) -> None:
    path = tmp_path / "light.onnx"
    assert parapipe("zoo", "build", "googlenet", "--weightless", "--out", path).code == 0
    assert path.stat().st_size < 100_000
    light = json.loads(parapipe("inspect", path, "--json").out)
    whole = json.loads(parapipe("inspect", "zoo:googlenet", "--json").out)
    differing = {key for key in whole if light[key] != whole[key]}
    assert differing == {"model"}


def test_an_unknown_name_is_answered_with_the_known_ones(parapipe) -> None:
    assert "googlenet" in parapipe("zoo", "build", "goglenet").complaint


def test_a_model_that_cannot_be_written_is_named(parapipe, tmp_path) -> None:
    path = tmp_path / "no" / "such" / "folder" / "model.onnx"
    assert str(path) in parapipe("zoo", "build", "googlenet", "--out", path).complaint
