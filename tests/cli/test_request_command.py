"""`parapipe run` and `parapipe simulate` of a folder of several shapes."""

import json

import pytest

from parapipe.api.shapes import map_shapes
from parapipe.documents.request_schema import RequestDocument
from tests.cases.recurrent import write_any_shape

SHAPES = {"prefill": {"sequence": 16, "past": 0}, "decode": {"sequence": 1, "past": 16}}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("requests")
    map_shapes(
        write_any_shape(folder / "any.onnx"), "amlogic-a311d", shape_sets=SHAPES, jobs=1,
        mix={"prefill": 1, "decode": 20}, exclude=["gpu", "little"], cache=False,
        note=lambda _: None,
    ).write(folder / "out")  # fmt: skip
    return folder / "out"


def test_a_request_runs_in_one_call(parapipe, out):
    ended = parapipe("run", out, "--tokens", 5, "--cores", "big=0", "--quiet")
    assert ended.code == 0, ended.err
    for words in ("prompt      16 tokens, then 5 are written", "first token ms", "tokens/s",
                  "decode      4 steps of 1 behind 16 slots", "as a sliding window"):  # fmt: skip
        assert words in ended.out
    ended = parapipe("run", out / "shapes.json", "s01", "--json", "--cores", "big=0")
    document = json.loads(ended.out)
    assert (document["how"], document["configuration"]) == ("run", "s01")
    assert len(document["chosen"][0]) == document["tokens"] == 21


def test_a_request_is_simulated_as_predicted(parapipe, out):
    ended = parapipe("simulate", out, "one-processor", "--json")
    document = json.loads(ended.out)
    assert RequestDocument.model_validate_json(ended.out).to_json() == document
    assert document["how"] == "simulation"
    for name in ("first_token_s", "token_s", "tokens_per_second", "request_s"):
        assert document[name]["error"] == pytest.approx(0, abs=1e-6)
    assert parapipe("simulate", out, "--tokens", 4, "--jitter", 0.1).code == 0


@pytest.mark.parametrize(
    ("verb", "words", "told"),
    [
        (
            "run",
            ("s01", "--saturate"),
            "--saturate: for one plan only, and this folder holds several",
        ),
        ("run", ("s01", "s02"), "unexpected extra argument (s02)"),
        ("simulate", ("--contention",), "--contention: for one plan only"),
    ],
)
def test_what_is_of_one_plan_is_a_usage_error(parapipe, out, verb, words, told):
    ended = parapipe(verb, out, *words)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


@pytest.mark.parametrize("verb", ["run", "simulate"])
def test_a_plan_takes_no_options_of_requests(parapipe, out, verb):
    ended = parapipe(verb, out / "decode", "--tokens", 3)
    assert ended.code == 2
    assert (
        "--tokens: only a folder of several shapes has requests; map with --shape-set" in ended.err
    )
