"""What a user decides beforehand: processors left out, pins, most stages, a rate that frames have."""

from __future__ import annotations

import json
import random

import onnx
import pytest

import parapipe
from parapipe.errors import CostError, PlatformError
from tests.cases.random_fronts import random_model, random_platform

QUICK = {"mapper": "coarse", "draws": 0, "resolution": 0.0, "jobs": 1, "cache": False}


def written(folder, seed):
    """Write a random model and a random platform; return their paths and the platform's text."""
    rng = random.Random(seed)
    model, board = folder / "model.onnx", folder / "board.yaml"
    onnx.save(random_model(rng), model)
    text = random_platform(rng)
    board.write_text(text)
    return model, board, json.loads(text)


def figures(front):
    return [
        (row.drawing, row.names, row.latency_s, row.period_s, row.energy_j, row.gap)
        for row in front
    ]


def without(board, gone):
    """Return the text of a platform that does not state some processors."""
    left = [each for each in board["processors"] if each["name"] not in gone]
    links = [each for each in board["links"] if not {each["from"], each["to"]} & {*gone}]
    return json.dumps({**board, "processors": left, "links": links})


@pytest.mark.parametrize("seed", range(12))
def test_a_front_without_processors_is_that_of_a_platform_without_them(tmp_path, seed) -> None:
    model, path, board = written(tmp_path, seed)
    names = [each["name"] for each in board["processors"]]
    whole = names[0]  # runs everything
    gone = random.Random(seed).sample(names[1:], random.Random(seed).randint(1, len(names) - 1))
    (tmp_path / "less.yaml").write_text(without(board, gone))
    less = parapipe.map(model, tmp_path / "less.yaml", **QUICK)
    front = parapipe.map(model, path, exclude=gone, **QUICK)
    assert figures(front) == figures(less)
    assert front.document.unfinished == less.document.unfinished
    assert whole in [each.name for each in front.document.processors]
    assert front.document.options.exclude == tuple(gone)
    assert front.document.command.endswith(" ".join(f"--exclude {name}" for name in gone))


def test_a_processor_that_there_is_not_cannot_be_left_out() -> None:
    told = (
        r"`exclude` names 'gpuu', and platform 'amlogic-a311d' has big, little, gpu; did you mean"
    )
    with pytest.raises(PlatformError, match=told):
        parapipe.map("zoo:alexnet", "amlogic-a311d", exclude=["gpuu"])
    with pytest.raises(PlatformError, match="`exclude` leaves no processor"):
        parapipe.map("zoo:alexnet", "amlogic-a311d", exclude=["big", "little", "gpu"])


def test_what_only_a_processor_left_out_runs_is_told_with_it(tmp_path) -> None:
    _, path, board = written(tmp_path, 0)
    first, *others = board["processors"]
    deny = {"deny": [{"type": ["Relu"], "reason": "it does not"}], "source": "s"}
    board["processors"] = [first, *({**each, "operators": deny} for each in others)]
    path.write_text(json.dumps(board))
    node = onnx.helper.make_node("Relu", ["x"], ["y"], "act")
    value = onnx.helper.make_tensor_value_info
    ends = [value(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "relu.onnx")
    told = (
        f"no processor of platform 'random' supports 1 Relu .*`exclude` leaves out {first['name']}"
    )
    with pytest.raises(CostError, match=told):
        parapipe.map(tmp_path / "relu.onnx", path, exclude=[first["name"]])


def test_why_kinds_are_absent_names_what_was_left_out(tmp_path) -> None:
    model, path, board = written(tmp_path, 1)
    first, *others = (each["name"] for each in board["processors"])
    front = parapipe.map(model, path, exclude=others, **QUICK)
    (row,) = {each.drawing.split("[")[0] for each in front}
    assert row == first
    assert "and the platform has 1 without " in front.document.absent["pipe-only"]


def test_rules_may_name_a_processor_that_is_left_out(tmp_path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "schema: parapipe/rules/1\nrules:\n  - type: Relu\n    macs: 1\n"
        "    processors: [big, gpu]\n    source: made up\n"
    )
    options = {**QUICK, "rules": rules, "objectives": "latency-throughput", "interleave": "none"}
    front = parapipe.map("zoo:alexnet", "amlogic-a311d", exclude=["gpu"], **options)
    assert {p.name for row in front for p in row.processors} == {"big", "little"}


def test_explain_finds_prices_and_lines_of_what_was_left(tmp_path) -> None:
    options = {**QUICK, "objectives": "latency-throughput", "interleave": "none"}
    for name, gone in (("all", []), ("some", ["big"])):
        front = parapipe.map("zoo:alexnet", "amlogic-a311d", exclude=gone, **options)
        front.write(tmp_path / name)
    every, some = (
        parapipe.explain(tmp_path / name, f"{processor}-alone")
        for name, processor in (("all", "gpu"), ("some", "gpu"))
    )
    assert some.operators == every.operators
    assert some.processors == every.processors
