"""`map --split auto`: configurations with split operators, from the search to a run."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import yaml

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import FrontError, VerificationError
from parapipe.graph.partition import partition
from parapipe.plan import schema
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import find_platform
from parapipe.search.configurations_from_costs import explore
from parapipe.search.contract import Moment
from parapipe.search.stages.stage_search import StageSearch
from parapipe.split_search import search
from parapipe.split_search.execution_modes import ExecutionModes, Split
from parapipe.split_search.part_prices import PartPrices
from tests.cases.nightly import nightly_from
from tests.cases.one_search import OneSearch

CONVOLUTIONS = 4
STAGES = {"interleave": "none", "cache": False, "jobs": 1}


def chain(path: Path) -> Path:
    """Write a network that does not branch: convolutions, a pool in between."""
    draw = np.random.default_rng(0)
    lines, name, kernels = [], "x", []
    for i in range(CONVOLUTIONS):
        lines.append(f"c{i} = Conv<pads=[1,1,1,1]>({name}, w{i})\nr{i} = Relu(c{i})")
        channels = 3 if i == 0 else 48
        kernel = draw.standard_normal((48, channels, 3, 3), np.float32) / channels
        kernels.append(onnx.numpy_helper.from_array(kernel.astype(np.float32), f"w{i}"))
        name = f"r{i}"
    lines.append(f"y = MaxPool<kernel_shape=[2,2], strides=[2,2]>({name})")
    body = "\n".join(lines)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> chain '
        f"(float[1,3,96,96] x) => (float[1,48,48,48] y) {{ {body} }}"
    )
    model.graph.initializer.extend(kernels)
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chain(tmp_path_factory.mktemp("chain") / "chain.onnx")


@pytest.fixture(scope="module")
def front(model: Path):
    return parapipe.map(model, "amlogic-a311d", split="auto", **STAGES)


@pytest.fixture(scope="module")
def folder(front, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("front")
    front.write(where)
    return where


@pytest.fixture(scope="module")
def split(front):
    return next(each for each in front if each.split)


@pytest.fixture(scope="module")
def staged(front):
    return next(each for each in front if each.split and len(each.plan().stages) == 2)


def test_where_a_network_does_not_branch_splitting_shortens_the_latency(front, model, split):
    whole = parapipe.map(model, "amlogic-a311d", **STAGES)
    assert not any(each.split for each in whole)
    assert split.latency_s == front.best("latency").latency_s
    assert split.latency_s < 0.9 * whole.best("latency").latency_s
    assert split.kind == "para-only"
    assert split.drawing.endswith("(split)")
    assert front.best("period").period_s <= whole.best("period").period_s * (1 + 1e-9)
    assert front.best("energy").energy_j <= whole.best("energy").energy_j * (1 + 1e-9)


def test_rules_say_how_each_operator_is_split(split, model, tmp_path):
    made = parapipe.split(model, tmp_path / "split.onnx", parts=split.split)
    assert [each.name for each in made.split]
    assert not made.whole
    planned = split.plan()
    assert planned.model.split.rules == split.split
    assert planned.model.sha256 == parapipe.load_model(model).source.sha256
    again = parapipe.load_model(tmp_path / "split.onnx")
    assert {each.id for each in planned.operators} == {each.id for each in again.operators}


def test_a_split_plan_keeps_the_rules_and_a_simulation_its_figures(split):
    plan = split.plan()
    parapipe.verify_plan(plan)
    paced = plan.simulate(frames=40).document
    assert paced.latency.median_s == pytest.approx(split.latency_s, rel=1e-6)
    full = plan.simulate(frames=40, saturate=True).document
    assert full.period.observed_s == pytest.approx(split.sustained_period_s, rel=1e-3)


def test_parts_that_compute_more_than_they_are_asked_for_are_cut_to_it(tmp_path):
    # Along channels, a part of LRN makes those beside its own, too. Here the last operator is one.
    path = tmp_path / "lrn.onnx"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> lrn (float[1,2000000,1,1] x) => '
        "(float[1,2000000,1,1] y) { a = Relu(x)\n y = LRN<size=5>(a) }"
    )
    onnx.save(model, path)
    front = parapipe.map(path, "amlogic-a311d", split="auto", **STAGES)
    found = next(each for each in front if any(rule.startswith("y..y:1=") for rule in each.split))
    plan = found.plan()
    parapipe.verify_plan(plan)
    sizes = [int(size) for rule in found.split[-1:] for size in rule.split("=")[1].split(",")]
    assert plan.tensors["y/part0"].shape[1] == sizes[0] + 2
    rules = [*found.split[:-1], f"y..y:1={sizes[0] - 1},{sum(sizes[1:]) + 1}"]
    changed = json.loads(plan.model_dump_json(by_alias=True))
    changed["model"]["split"].update(rules=rules)
    with pytest.raises(VerificationError, match="'y/part0' has"):
        verify_plan(schema.Plan.model_validate_json(json.dumps(changed)))


def test_the_verifier_checks_that_parts_cover_each_result_once(split):
    document = json.loads(split.plan().model_dump_json(by_alias=True))

    def violations(change) -> str:
        changed = copy.deepcopy(document)
        joins = [
            each
            for each in changed["operators"]
            if each["type"] == "Concat" and each["inputs"][0] == f"{each['outputs'][0]}/part0"
        ]
        change(changed, joins[-1])
        with pytest.raises(VerificationError) as caught:
            verify_plan(schema.Plan.model_validate_json(json.dumps(changed)))
        return "\n".join(caught.value.violations)

    verify_plan(schema.Plan.model_validate_json(json.dumps(document)))
    once = violations(lambda _, join: join.update(inputs=join["inputs"][:-1]))
    assert re.search(r"operator 'y' joins \d+ elements along axis 2, and its result has 48", once)
    twice = violations(lambda _, join: join.update(inputs=[join["inputs"][0]] * 2))
    assert "operator 'y' joins the parts [0, 0] of 'y'" in twice
    turned = violations(lambda _, join: join.update(inputs=join["inputs"][::-1]))
    assert "operator 'y' joins the parts [1, 0] of 'y'" in turned or "[2, 1, 0]" in turned
    longer = violations(lambda d, _: d["model"]["split"].update(rules=["a..y:2=1,47"]))
    assert "elements along axis 2, and rule 'a..y:2=1,47' gives it 1" in longer
    nowhere = violations(lambda _, join: join["attributes"].update(axis=9))
    assert "operator 'y' joins parts along axis 9, which they do not have" in nowhere
    beyond = violations(lambda d, _: d["model"]["split"].update(rules=["a..y:7=1,47"]))
    assert "rule 'a..y:7=1,47' gives it" in beyond


def test_parts_cost_what_the_whole_costs_in_proportion(split):
    costs, graph = split.costs, split.graph
    parts = [v for v, each in enumerate(graph.operators) if "/part" in each.id]
    assert parts
    for v in parts:
        for p in range(len(costs.processors)):
            cost = costs.cost(v, p)
            assert cost is not None
            assert all(each.provenance != "measured" for each in cost.parts)


def renamed(model: Path, to: Path, name) -> Path:
    """Write a model whose results within, and nodes, have other names."""
    proto = onnx.load(model)
    inside = {each for node in proto.graph.node for each in node.output if each != "y"}
    for node in proto.graph.node:
        node.input[:] = [name(each) if each in inside else each for each in node.input]
        node.output[:] = [name(each) if each in inside else each for each in node.output]
        node.name = f"node of {node.output[0]}"
    onnx.save(proto, to)
    return to


def apart(model: Path, to: Path) -> Path:
    """Write a model whose weights stand in a file of their own."""
    weights = f"{to.stem}.bin"
    onnx.save(onnx.load(model), to, save_as_external_data=True, location=weights, size_threshold=0)
    return to


NAMES = {
    "dots": lambda name: f"{name[0]}..{name[1:]}",
    "type": lambda name: {"c0": "Conv", "r1": "MaxPool"}.get(name, name),
    "glob": lambda name: f"{name}*",
    "rule": lambda name: f"{name}:2=1",
    "part": lambda name: f"{name}/part0",
}


@pytest.mark.parametrize("case", ["onnx", "fused", "apart", *NAMES])
def test_it_runs_whatever_the_model_is_like(case, model, tmp_path):
    path = model
    if case in NAMES:
        path = renamed(model, tmp_path / "renamed.onnx", NAMES[case])
    elif case == "apart":
        path = apart(model, tmp_path / "apart.onnx")
    granularity = "onnx" if case == "onnx" else "fused"
    front = parapipe.map(
        path, "amlogic-a311d", split="auto", granularity=granularity, mapper="heft_cpop",
        objectives="latency-throughput", **STAGES,
    )  # fmt: skip
    assert front.document.unfinished is None
    check_run(next(each for each in front if each.split), path, tmp_path)


def test_a_view_within_an_operator_stays_whole_and_its_parts_are_kept(tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> classifier '
        "(float[1,64,12,12] x) => (float[1,4096] y) "
        "{ f = Flatten(x)\n g = Gemm(f, w)\n y = Relu(g) }"
    )
    weights = np.random.default_rng(0).standard_normal((9216, 4096), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "classifier.onnx")
    front = parapipe.map(tmp_path / "classifier.onnx", "amlogic-a311d", split="auto", **STAGES)
    assert front.document.unfinished is None
    assert any(each.split for each in front)


def test_a_block_with_a_shortcut_is_cut_together(tmp_path):
    draw = np.random.default_rng(0)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> block '
        "(float[1,64,112,112] x) => (float[1,64,112,112] y) { a = Relu(x)\n "
        "b = Conv<pads=[1,1,1,1]>(a, w)\n c = Conv<pads=[1,1,1,1]>(b, v)\n y = Add(a, c) }"
    )
    for name in "wv":
        weights = draw.standard_normal((64, 64, 3, 3), np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.save(model, tmp_path / "block.onnx")
    graph = parapipe.load_model(tmp_path / "block.onnx")
    target = parapipe.load_platform("amlogic-a311d")
    costs = build_cost_table(graph, target)
    ways = (
        ExecutionModes(PartPrices(graph, target, costs, None), partition(graph).order)
        .problem()
        .modes
    )
    runs = {each.mark.operators for row in ways for each in row if isinstance(each.mark, Split)}
    last = len(graph.operators) - 1
    assert tuple(range(last + 1)) in runs  # the shortcut is within
    assert not any(run[-1] < last and len(run) > 1 and run[0] == 0 for run in runs)


@pytest.mark.nightly
def test_shares_between_the_steps_of_the_grid_are_found(split, model, monkeypatch):
    monkeypatch.setattr(search, "FINER", ())
    on_the_grid = parapipe.map(model, "amlogic-a311d", split="auto", **STAGES)
    coarse = min(each.latency_s for each in on_the_grid if each.split)
    assert split.latency_s < coarse * (1 - 1e-3)


def test_ways_near_others_move_each_boundary_by_one_step_at_most(model):
    graph = parapipe.load_model(model)
    target = parapipe.load_platform("amlogic-a311d")
    prices = PartPrices(graph, target, build_cost_table(graph, target), None)
    ways = ExecutionModes(prices, partition(graph).order)
    in_three = max(
        (
            way
            for row in ways.problem().modes
            for way in row
            if isinstance(way.mark, Split) and len(way.pieces) == 3 and way.mark.ranges[0].axis == 2
        ),
        key=lambda way: min(each.end - each.begin for each in way.mark.ranges),
    )
    bounds = [each.end for each in in_three.mark.ranges]
    near = [[each.end for each in way.mark.ranges] for way in ways.near([in_three], 32)]
    step = round(bounds[-1] / 32)
    moves = {(a - bounds[0], b - bounds[1]) for a, b, _ in near}
    assert moves == {(a, b) for a in (-step, 0, step) for b in (-step, 0, step)} - {(0, 0)}
    for way in ways.near([in_three], 32):
        assert way.mark.ranges[0].begin == 0
        assert all(a.end == b.begin for a, b in pairwise(way.mark.ranges))
        assert [each.processor for each in way.pieces] == [p.processor for p in in_three.pieces]
        assert all(piece.time_s > 0 for piece in way.pieces)


def test_it_runs_and_gives_the_results_of_one_session(split, model, tmp_path):
    check_run(split, model, tmp_path)


def check_run(split, model: Path, tmp_path: Path) -> None:
    """Check that a configuration's plan gives the results of one session."""
    plan = split.plan()
    frames = np.random.default_rng(1).random((3, 1, 3, 96, 96), np.float32)
    np.savez(tmp_path / "frames.npz", x=frames)
    cores = {each.name: (0,) for each in plan.processors}
    kept = tmp_path / "results.npz"
    plan.run(frames=3, input=tmp_path / "frames.npz", cores=cores, keep=kept, saturate=True)
    session = onnxruntime.InferenceSession(model)
    with np.load(kept) as found:
        for frame, result in zip(frames, found["y"], strict=True):
            (wanted,) = session.run(None, {"x": frame})
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_a_pipeline_of_which_one_stage_is_split_runs_as_predicted(staged, split, model, tmp_path):
    plan = staged.plan()
    parapipe.verify_plan(plan)
    assert sorted(len(stage.processors) for stage in plan.stages) == [1, 2]
    assert staged.period_s < split.period_s
    paced = plan.simulate(frames=40).document
    assert paced.latency.median_s == pytest.approx(staged.latency_s, rel=1e-6)
    assert paced.period.observed_s == pytest.approx(staged.period_s, rel=1e-6)
    check_run(staged, model, tmp_path)


def test_frames_take_turns_on_parts_too_and_run_as_predicted(model, tmp_path):
    options = {"objectives": "latency-throughput", "cache": False, "jobs": 1}
    whole = parapipe.map(model, "amlogic-a311d", **options).best("period")
    found = parapipe.map(model, "amlogic-a311d", split="auto", **options).best("period")
    assert found.split
    assert found.kind == "interleaved"
    assert found.drawing.endswith("(split)")
    assert found.period_s < whole.period_s * (1 - whole.gap)  # no whole operators are so fast
    assert 0 < found.gap < 1
    plan = found.plan()
    parapipe.verify_plan(plan)
    full = plan.simulate(frames=400, saturate=True).document
    assert full.period.observed_s == pytest.approx(found.sustained_period_s, rel=2e-3)
    check_run(found, model, tmp_path)
    for draw in (found.plot_gantt, found.plot_network, found.plot_utilisation):
        assert draw().figure


def test_the_folder_holds_it_and_its_report_opens(folder, split):
    written = json.loads((folder / "front.json").read_text(encoding="utf-8"))
    assert written["options"]["split"] == "auto"
    assert written["configurations"][int(split.id[1:]) - 1]["split"] == list(split.split)
    parapipe.report(folder)
    assert (folder / "report.html").stat().st_size > 0
    loaded = parapipe.load_plan(folder / "plans" / f"{split.id}.json")
    assert loaded == split.plan()


def test_what_knows_no_parts_yet_says_so(folder, split):
    with pytest.raises(FrontError, match=f"{split.id} splits operators into parts"):
        parapipe.explain(folder, split.id)


def test_an_interruption_while_splitting_ends_with_the_best_so_far(model):
    graph, target = parapipe.load_model(model), parapipe.load_platform("amlogic-a311d")
    costs, parts = build_cost_table(graph, target), partition(graph)
    options = parapipe.MapOptions(objectives="latency-throughput", mapper="heft_cpop", jobs=1)

    def interrupted(*_given):
        raise KeyboardInterrupt

    search = OneSearch("split", Moment.STAGES, interrupted)
    whole = explore(graph, parts, costs, options)
    found = explore(graph, parts, costs, options, searches=[StageSearch(), search])
    assert whole.unfinished is None
    assert found.unfinished is not None
    figures = [[each.evaluated.latency_s for each in run.found] for run in (whole, found)]
    assert min(figures[0]) == min(figures[1])


def test_what_no_processor_can_cut_is_not_split(tmp_path):
    """No processor of the board has the type of the rows that a Gather picks."""
    table = np.random.default_rng(0).standard_normal((64, 512), np.float32)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> rows (int64[1,256] ids) => (float[1,256,512] y) '
        "{ g = Gather(table, ids)  m = MatMul(g, w)  y = Relu(m) }"
    )
    weights = np.random.default_rng(1).standard_normal((512, 512), np.float32)
    for array, name in ((table, "table"), (weights, "w")):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "rows.onnx")
    front = parapipe.map(tmp_path / "rows.onnx", "amlogic-a311d", split="auto", **STAGES)
    rules = [rule for each in front for rule in each.split]
    assert not any(rule.startswith("g:") for rule in rules)


@pytest.mark.parametrize(
    "without", nightly_from(1, [{"big", "gpu"}, {"gpu"}, {"big", "little", "gpu"}])
)
def test_what_cuts_tensors_stands_where_it_can_run(model, tmp_path, without):
    board = yaml.safe_load(find_platform("amlogic-a311d").read_text(encoding="utf-8"))
    for each in board["processors"]:
        if each["name"] in without:
            rule = {"type": "Slice", "reason": "it has no ranges"}
            each["operators"] = {"deny": [rule], "source": "device-tree"}
    path = tmp_path / "no-ranges.yaml"
    path.write_text(yaml.safe_dump(board), encoding="utf-8")
    plans = [each.plan() for each in parapipe.map(model, path, split="auto", **STAGES)]
    runs_on = []
    for plan in plans:
        type_of = {operator.id: operator.type for operator in plan.operators}
        for stage in plan.stages:
            for each in stage.processors:
                runs_on += [(type_of[placed.operator], each.name) for placed in each.operators]
    on_them = {kind for kind, name in runs_on if name in without}
    assert "Conv" in on_them
    assert "Slice" not in on_them
    assert ("Slice" in {kind for kind, _ in runs_on}) == (len(without) < 3)


def test_pictures_of_a_split_configuration(split):
    for draw in (split.plot_gantt, split.plot_network, split.plot_utilisation):
        assert draw().figure


def test_latency_is_traded_for_energy_with_split_operators(front):
    split = [each for each in front if each.split and len(each.plan().stages) == 1]
    used = [frozenset(at.name for at in each.plan().processors) for each in split]
    several = {each for each in used if used.count(each) > 1}
    assert several
    for processors in several:
        traded = [each for each, at in zip(split, used, strict=True) if at == processors]
        traded.sort(key=lambda each: each.latency_s)
        assert all(b.energy_j < a.energy_j for a, b in pairwise(traded))
    assert all(0 <= each.gap < 1 for each in split)
