"""`parapipe sweep` and its file."""

import json

import pytest

import parapipe as package

FILE = """
schema: parapipe/sweep/1
models: [small.onnx]
platforms: [amlogic-a311d]
options:
  stages: {interleave: none, objectives: latency-throughput, draws: 0}
  turns: {interleave: auto, objectives: latency-throughput, draws: 0}
"""


@pytest.fixture
def file(small_model, tmp_path):
    small_model()
    path = tmp_path / "sweep.yaml"
    path.write_text(FILE)
    return path


def test_a_file_names_models_platforms_and_options(parapipe, file, tmp_path):
    ended = parapipe("sweep", file, "--out", tmp_path / "out", "--jobs", 1, "--no-cache")
    assert ended.code == 0
    assert "small-amlogic-a311d" not in ended.out  # results have columns, not one name
    document = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert [row["name"] for row in document["results"]] == [
        "small-amlogic-a311d-stages", "small-amlogic-a311d-turns"
    ]  # fmt: skip
    assert document["options"]["stages"] == {
        "interleave": "none", "objectives": "latency-throughput", "draws": 0
    }  # fmt: skip
    front = package.load_sweep(tmp_path / "out")["small-amlogic-a311d-stages"]
    assert front.document.options.interleave == "none"
    again = parapipe("sweep", file, "--out", tmp_path / "out", "--jobs", 1, "--json")
    assert json.loads(again.out) == package.load_sweep(tmp_path / "out").to_json()


def test_mistakes_in_the_file_are_all_named_with_their_lines(parapipe, file):
    text = FILE.replace("models", "modles").replace("none", "some").replace("draws", "drawn", 1)
    file.write_text(text)
    ended = parapipe("sweep", file)
    assert ended.code == 1
    first, *lines = ended.err.splitlines()
    assert first.startswith(f"parapipe: sweep file '{file}' has 3 mistakes")
    assert [line.strip().split(": ")[1] for line in lines] == [
        "modles", "options.stages", "options.stages.drawn"
    ]  # fmt: skip
    assert "did you mean 'draws'" in lines[-1]


def test_pick_compares_platforms(parapipe, file, tmp_path):
    parapipe("sweep", file, "--out", tmp_path / "out", "--jobs", 1, "--no-cache")
    ended = parapipe("pick", tmp_path / "out", "--min-fps", 1, "--minimise", "energy")
    assert ended.code == 0
    assert ended.out.count("amlogic-a311d") == 2
    missed = parapipe("pick", tmp_path / "out", "--min-fps", "1e9")
    assert "no configuration meets all demands" in missed.out


def test_what_has_no_front_is_named_at_the_end(parapipe, small_model, tmp_path):
    (tmp_path / "none.onnx").write_bytes(b"")
    ended = parapipe(
        "sweep", "--models", small_model(), "--models", tmp_path / "none.onnx", "--platforms",
        "amlogic-a311d", "--out", tmp_path / "out", "--jobs", 1, "--draws", 0,
    )  # fmt: skip
    assert ended.code == 1
    assert f"1 of 2 have no front; the others are in {tmp_path / 'out'}" in ended.err
    assert "none-amlogic-a311d: " in ended.err


def test_neither_a_file_nor_models_is_an_error(parapipe):
    assert "a sweep needs a file, or --models and --platforms" in parapipe("sweep").complaint
