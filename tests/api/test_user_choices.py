"""What a user decides beforehand: processors left out, pins, the most stages, a rate."""

from __future__ import annotations

import json
import random

import onnx
import pytest

import parapipe
from parapipe.errors import ArgumentError, CostError, MappingError, PlatformError
from parapipe.graph.part_marks import tensor_and_part
from parapipe.plan.verify import verify_plan
from tests.cases.nightly import nightly_from
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


@pytest.mark.parametrize("seed", nightly_from(1, range(12)))
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


def owners(board):
    """Return by the name of a processor, or of a part of one, the name of the whole."""
    names = [each["name"] for each in board["processors"]]
    return lambda name: max((own for own in names if name.startswith(own)), key=len)


def where_it_runs(plan, owner):
    """Return the processors by node of the model, parts of operators included."""
    where = {}
    named = {each.id: each for each in plan.operators}
    for stage in plan.stages:
        for processor in stage.processors:
            names = {owner(each) for each in (processor.name, *(processor.replicas or ()))}
            for placed in processor.operators:
                operator = named[placed.operator]
                for name in {operator.name, *operator.members}:
                    part = tensor_and_part(name)
                    where.setdefault(part[0] if part else name, set()).update(names)
    return where


@pytest.mark.parametrize("seed", nightly_from(1, range(12)))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": "auto"},
        {"dvfs": True, "dvfs_points": 2, "objectives": "latency-throughput"},
        {"objectives": "latency-throughput-energy-memory", "recompute": True},
        {"robust": 0.9, "draws": 20, "scenarios": 2},
    ],
    ids=["plain", "split", "dvfs", "memory", "robust"],
)
def test_pins_hold_in_every_configuration(tmp_path, seed, options) -> None:
    model, path, board = written(tmp_path, seed)
    rng = random.Random(seed)
    names = [each["name"] for each in board["processors"]]
    nodes = [each.name for each in onnx.load(model).graph.node]
    pins = {rng.choice(nodes): names[0], nodes[-1]: names[0]}
    able = {each["name"] for each in board["processors"] if "operators" not in each}
    pins[rng.choice(nodes[:-1])] = rng.choice([name for name in names if name in able])
    try:
        front = parapipe.map(model, path, pins=pins, **{**QUICK, **options})
    except MappingError as error:  # two nodes that are one operator
        assert "leave one" in str(error)  # noqa: PT017
        return
    assert front.document.options.pins == pins
    for row in front:
        plan = row.plan()
        verify_plan(plan)
        where = where_it_runs(plan, owners(board))
        assert {node: where[node] for node in pins} == {node: {name} for node, name in pins.items()}


def test_pins_that_cannot_hold_are_all_told() -> None:
    pins = {"conv11": "gpu", "conv1": "gpuu", "fire2/*": "big", "fire2/con*": "little", "x*": "big"}
    with pytest.raises(MappingError) as caught:
        parapipe.map("zoo:squeezenet", "amlogic-a311d", pins=pins)
    assert str(caught.value) == (
        "'conv1' is pinned to 'gpuu', and platform 'amlogic-a311d' has big, little, gpu; did you "
        "mean 'gpu'?; the pin 'conv11' matches no operator; did you mean 'conv1'?; the pin 'x*' "
        "matches no operator; 'fire2/concat' is pinned to big by 'fire2/*' and little by "
        "'fire2/con*'; leave one"
    )
    with pytest.raises(MappingError, match="pinned to gpu, which `exclude` leaves out; leave out"):
        parapipe.map("zoo:squeezenet", "amlogic-a311d", pins={"conv1": "gpu"}, exclude=["gpu"])


def test_a_processor_that_cannot_run_what_is_pinned_to_it_is_told(tmp_path) -> None:
    model, path, board = written(tmp_path, 3)
    deny = {"deny": [{"type": "*", "reason": "it does not"}], "source": "s"}
    first, second, *others = board["processors"]
    board["processors"] = [first, {**second, "operators": deny}, *others]
    path.write_text(json.dumps(board))
    (node, *_) = (each.name for each in onnx.load(model).graph.node)
    told = f"'{node}' is pinned to {second['name']}: .* it does not; .*{first['name']}.* can run it"
    with pytest.raises(MappingError, match=told):
        parapipe.map(model, path, pins={node: second["name"]})


def test_a_name_goes_before_a_pattern_and_a_fused_node_names_its_operator() -> None:
    options = {**QUICK, "objectives": "latency-throughput", "interleave": "none"}
    pins = {"*": "big", "relu_conv1": "gpu"}
    graph = parapipe.load_model("zoo:squeezenet")
    assert "relu_conv1" not in {each.name for each in graph.operators}  # it is part of conv1
    (row,) = parapipe.map("zoo:squeezenet", "amlogic-a311d", pins=pins, **options)[:1]
    where = where_it_runs(row.plan(), str)
    assert where["conv1"] == {"gpu"}
    assert {frozenset(names) for node, names in where.items() if "conv1" not in node} == {
        frozenset({"big"})
    }


@pytest.mark.nightly
def test_a_pin_of_one_of_several_models_holds_for_all_its_frames() -> None:
    models = {"a": "zoo:alexnet", "b": "zoo:squeezenet"}
    options = {"rates": {"a": 4, "b": 8}, "pins": {"b/conv1": "gpu", "a/fc*": "big"}}
    front = parapipe.map(models, "amlogic-a311d", jobs=1, cache=False, **options)
    for row in front:
        where = where_it_runs(row.plan(), str)
        pinned = {node: names for node, names in where.items() if node.endswith("/conv1")}
        assert [pinned[node] for node in pinned if node.startswith("b")] == [{"gpu"}] * 2
        assert where["a/fc6"] == {"big"}


def test_explain_and_absent_kinds_say_what_is_pinned(tmp_path) -> None:
    options = {**QUICK, "objectives": "latency-throughput", "interleave": "none"}
    pins = {"conv1": "big", "conv3": "gpu"}
    front = parapipe.map("zoo:alexnet", "amlogic-a311d", pins=pins, **options)
    told = front.document.absent
    assert "big may not run Conv ('conv3'): pinned" in told["sequential"]
    assert told["big-alone"].endswith("Conv ('conv3') – pinned to gpu")
    assert front.document.command.endswith("--pin conv1=big --pin conv3=gpu")
    front.write(tmp_path / "out")
    document = parapipe.explain(tmp_path / "out", what_if=True)
    assert "pinned to gpu" in str(document.to_json())
    (effect,) = (each for each in document.what_if if each.change == "big runs Conv")
    assert effect.remark == "Conv cannot run on big: pinned to gpu"


@pytest.mark.parametrize("seed", nightly_from(1, range(10)))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": "auto"},
        {"objectives": "latency-throughput-energy-memory"},
        {"robust": 0.9, "draws": 20, "scenarios": 2},
        {"budget_s": 2.0},
    ],
    ids=["plain", "split", "memory", "robust", "budget"],
)
def test_no_configuration_has_more_stages_than_allowed(tmp_path, seed, options) -> None:
    model, path, _ = written(tmp_path, seed)
    most = 1 + seed % 3
    front = parapipe.map(model, path, max_stages=most, **{**QUICK, **options})
    assert front.document.options.max_stages == most
    assert f"--max-stages {most}" in front.document.command
    for row in front:
        assert len(row.stages) <= most
        assert len({at.lag for at in placements(row.plan())}) <= most


def placements(plan):
    return [
        at for stage in plan.stages for processor in stage.processors for at in processor.operators
    ]


@pytest.mark.parametrize("seed", nightly_from(1, range(10)))
def test_fewer_stages_are_those_of_the_whole_front_that_have_so_few(tmp_path, seed) -> None:
    model, path, _ = written(tmp_path, seed)
    options = {**QUICK, "objectives": "latency-throughput", "interleave": "none"}
    whole = parapipe.map(model, path, **options)
    few = parapipe.map(model, path, max_stages=2, **options)
    shown = {(row.latency_s, row.period_s) for row in few if row.pareto}
    kept = {(row.latency_s, row.period_s) for row in whole if row.pareto and len(row.stages) <= 2}
    assert kept <= shown
    if all(len(row.stages) <= 2 for row in whole if row.pareto):
        assert kept == shown


def test_kinds_that_need_more_stages_than_allowed_are_absent_with_the_reason() -> None:
    options = {**QUICK, "objectives": "latency-throughput"}
    front = parapipe.map("zoo:squeezenet", "amlogic-a311d", max_stages=1, **options)
    told = front.document.absent
    assert told["hybrid"] == "it has 2 stages or more, at most 1 may be"
    assert told["interleaved"] == "those found have 2 stages or more, at most 1 may be"
    assert {row.kind for row in front} == {"sequential", "para-only"}


@pytest.mark.parametrize("seed", nightly_from(1, range(8)))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": "auto"},
        {"dvfs": True, "dvfs_points": 2},
        {"objectives": "latency-throughput-energy-memory", "recompute": True},
        {"robust": 0.9, "draws": 20, "scenarios": 2},
    ],
    ids=["plain", "split", "dvfs", "memory", "robust"],
)
def test_every_configuration_reaches_the_rate_and_its_energy_is_of_that_rate(
    tmp_path, seed, options
) -> None:
    model, path, board = written(tmp_path, seed)
    whole = parapipe.map(model, path, **QUICK)
    rate = sorted(row.throughput_fps for row in whole)[len(whole) // 2]
    front = parapipe.map(model, path, rates=rate, **{**QUICK, **options})
    assert front.document.options.rate_fps == rate
    assert f"--rate {rate}" in front.document.command
    for row in front:
        assert row.throughput_fps >= rate * (1 - 1e-9)
        assert row.arrival_s == 1 / rate
        dynamic_j = sum(p.dynamic_energy_j for p in row.processors)
        static_j = sum(p.static_power_w for p in row.processors) / rate
        assert row.energy_j == pytest.approx(dynamic_j + static_j)
        assert row.power_w == pytest.approx(row.energy_j * rate)
        assert row.board_energy_j == pytest.approx(
            row.energy_j + board["board"]["idle_power_w"] / rate
        )
        if row.least:
            assert row.least.energy_j <= row.energy_j * (1 + 1e-9)
        verify_plan(row.plan())
        assert row.plan().predicted.energy_j == pytest.approx(row.energy_j)
        if row.intervals:
            assert row.intervals.energy_j[0] <= row.medians.energy_j <= row.intervals.energy_j[1]


@pytest.mark.parametrize("seed", nightly_from(1, range(8)))
def test_bounds_of_less_energy_hold_for_all_that_reach_the_rate(tmp_path, seed) -> None:
    model, path, _ = written(tmp_path, seed)
    whole = parapipe.map(model, path, **QUICK)
    rate = sorted(row.throughput_fps for row in whole)[len(whole) // 2]
    front = parapipe.map(model, path, rates=rate, **QUICK)
    every = [*whole, *front]
    reaching = [row for row in every if row.throughput_fps >= rate * (1 - 1e-9)]
    static_j = [sum(p.static_power_w for p in row.processors) / rate for row in reaching]
    dynamic_j = [sum(p.dynamic_energy_j for p in row.processors) for row in reaching]
    energies_j = [dynamic + static for dynamic, static in zip(dynamic_j, static_j, strict=True)]
    for row in front:
        if row.least:
            assert row.least.energy_j <= min(
                each for each, other in zip(energies_j, reaching, strict=True)
                if other.period_s <= row.period_s
            ) * (1 + 1e-9)  # fmt: skip


def test_power_at_a_rate_is_what_one_works_out_by_hand(tmp_path) -> None:
    # gpu alone: 28.6 frames/s at full throughput; at 10 frames/s, static power is for 100 ms
    options = {**QUICK, "interleave": "none"}
    full = parapipe.map("zoo:squeezenet", "amlogic-a311d", **options)
    slow = parapipe.map("zoo:squeezenet", "amlogic-a311d", rates=10, **options)
    (one,), (other,) = ([r for r in front if "gpu-alone" in r.names] for front in (full, slow))
    assert one.period_s == other.period_s
    (gpu,) = other.processors
    dynamic_j = one.energy_j - gpu.static_power_w * one.period_s
    assert other.energy_j == pytest.approx(dynamic_j + gpu.static_power_w * 0.1)
    assert other.power_w == pytest.approx(10 * other.energy_j)
    assert "9.3" not in [f"{row.throughput_fps:.1f}" for row in slow]  # little alone is too slow
    assert "frames/s" in slow.document.absent.get("little-alone", "frames/s")
    best = parapipe.pick(slow_folder(slow, tmp_path), minimise="power")
    assert best.figures["power_w"] == pytest.approx(min(row.power_w for row in slow))


def slow_folder(front, folder):
    front.write(folder / "slow")
    return folder / "slow"


def test_a_rate_that_nothing_reaches_is_told_with_what_would_do() -> None:
    options = {**QUICK, "objectives": "latency-throughput"}
    told = (
        r"^no configuration of 'zoo:squeezenet' that was found reaches 500 frames/s: the most "
        r"throughput found is [0-9.]+ frames/s, and none can have more than [0-9.]+ \(proven\); "
        "ask for less with `rates`"
    )
    with pytest.raises(MappingError, match=told):
        parapipe.map("zoo:squeezenet", "amlogic-a311d", rates=500, **options)
    with pytest.raises(
        MappingError, match="at most 1 stages and reaches 50 frames/s: the fewest are 2"
    ):
        parapipe.map("zoo:squeezenet", "amlogic-a311d", rates=50, max_stages=1, **options)


def test_a_rate_without_a_name_is_of_a_single_model() -> None:
    told = "a rate without a name is of a single model; give a rate for 'a', 'b', as in a=30"
    with pytest.raises(ArgumentError, match=told):
        parapipe.map({"a": "zoo:alexnet", "b": "zoo:squeezenet"}, "amlogic-a311d", rates=5)


def test_explain_derives_energy_at_the_rate(tmp_path) -> None:
    options = {**QUICK, "interleave": "none"}
    front = parapipe.map("zoo:alexnet", "amlogic-a311d", rates=5, **options)
    front.write(tmp_path / "out")
    document = parapipe.explain(tmp_path / "out")
    row = front["balanced"]
    assert document.figures.energy_j.value == pytest.approx(row.energy_j)
    assert "time between frames" in document.figures.energy_j.rule
