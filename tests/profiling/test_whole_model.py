"""The whole model is measured too, and its operators share that time."""

import json
from dataclasses import replace
from statistics import median

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import parapipe
from parapipe.api import profile_runs
from parapipe.cost.profile import Measurement, read_profile
from parapipe.cost.signature import Signature
from parapipe.documents import compared_runs
from parapipe.profiling.from_run import with_range_among
from parapipe.profiling.single_models import distinct_units, unit_key
from tests.cases.measuring import platform_of_parts
from tests.cases.small_network import saved

PARTS = 2


pytestmark = pytest.mark.usefixtures("short_rounds")


@pytest.fixture
def platform(tmp_path):
    """This machine in identical processors of one core."""
    return platform_of_parts(tmp_path / "here.yaml", PARTS)


@pytest.fixture
def runs(monkeypatch):
    """What the segments took in the runs of whole models."""
    found = []
    told = compared_runs.segment_times

    def watched(*given):
        found.extend(told(*given))
        return told(*given)

    monkeypatch.setattr(compared_runs, "segment_times", watched)
    return found


def front_of(model, platform):
    return parapipe.map(model, platform, cache=False, jobs=1, note=lambda _note: None)


@pytest.mark.nightly
def test_a_models_operators_add_up_to_what_it_takes_while_all_processors_run_it(
    platform, runs, tmp_path
):
    model = saved(tmp_path)
    report = parapipe.profile(model, platform)
    names = parapipe.load_platform(platform).names
    operators = {each.id for each in parapipe.load_model(model).operators}
    count = profile_runs.ROUNDS * len(names)
    whole = [each for each in runs if set(each.operators) == operators]
    if len(names) > 1:  # in stages, then alone, then at once
        assert len(whole) == 2 * count
        assert set(runs[-2 * count :]) == set(whole)
    taken_s = median(each.time_s for each in whole[-count:])
    front = front_of(model, platform)
    for name in names:
        assert front[f"{name}-alone"].latency_s == pytest.approx(taken_s, rel=1e-3)
    rows = read_profile(report.path).measurements
    assert {(m.method, m.rows) for m in rows} == {("run", 3 if len(names) > 1 else 1)}
    assert report.measured == len(rows) == 6 * len(names)


def test_the_spread_is_how_far_times_alone_in_stages_and_at_once_lie_apart():
    row = Measurement(
        *(Signature("Conv", "1x1", "1x1", "", "", "", "float32"), "conv1x1", 1, 1, "cpu0"),
        *(1e9, 1.1e-3, 1, 0.3, "run"),
    )
    (among_all,) = with_range_among(
        [row], [[replace(row, time_s=1e-3)], [replace(row, time_s=1.2e-3)]]
    )
    assert among_all.time_s == row.time_s
    assert (among_all.rows, among_all.spread) == (3, pytest.approx(0.2))


@pytest.mark.nightly
def test_what_was_left_out_is_made_up_for(platform, runs, tmp_path):
    model = saved(tmp_path)
    path = parapipe.profile(model, platform, operators_only=True).path
    apart = {m.time_s for m in read_profile(path).measurements}
    assert {m.method for m in read_profile(path).measurements} == {"timed"}
    assert not runs
    report = parapipe.profile(model, platform)
    assert report.measured == len(read_profile(path).measurements)
    assert {m.method for m in read_profile(path).measurements} == {"run"}
    longest = max(len(each.operators) for each in runs)
    stages = [each for each in runs if len(each.operators) < longest] or runs
    shares = {time_s for each in stages for time_s in each.predicted_s if time_s}
    assert all(any(one == pytest.approx(other, abs=1e-9) for other in apart) for one in shares)


def test_what_was_measured_is_not_run_again(platform, runs, tmp_path):
    model = saved(tmp_path)
    report = parapipe.profile(model, platform)
    before, count = report.path.read_text(), len(runs)
    again = parapipe.profile(model, platform)
    assert (again.measured, again.kept, len(runs)) == (0, report.measured, count)
    assert report.path.read_text() == before
    anew = parapipe.profile(model, platform, again=True)
    # what runs has as many segments as the map that was made with these times
    assert (anew.measured, anew.kept) == (report.measured, 0)
    assert len(runs) > count


def test_a_processor_that_lacks_an_operator_keeps_the_times_of_single_ones(platform, tmp_path):
    if len(parapipe.load_platform(platform).names) < PARTS:
        pytest.skip("one core")
    head, mark, tail = platform.read_text().partition("- name: cpu1\n")
    platform.write_text(
        f"{head}{mark}  operators: {{deny: [{{type: Softmax, reason: no unit}}]}}\n{tail}"
    )
    report = parapipe.profile(saved(tmp_path), platform)
    (note,) = report.notes
    assert note.startswith("'cpu1' does not run the whole model")
    methods = {(m.processor, m.method) for m in read_profile(report.path).measurements}
    assert methods == {("cpu0", "run"), ("cpu1", "timed")}


def test_a_model_that_does_not_run_keeps_the_times_of_single_operators(platform, tmp_path):
    """Random frames hold integers 0 and 1, of which the latter is no index here."""
    model = tmp_path / "picks.onnx"
    values = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "at"], ["y"], axis=0)],
        "picks",
        [values("x", TensorProto.FLOAT, (1, 64)), values("at", TensorProto.INT64, (64,))],
        [values("y", TensorProto.FLOAT, (64, 64))],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]), model)
    report = parapipe.profile(model, platform)
    (note,) = report.notes
    assert note.startswith("the whole model was not measured: segment ")
    assert "indices element out of data bounds" in note
    rows = read_profile(report.path).measurements
    assert report.measured == len(rows) > 0
    assert {m.method for m in rows} == {"timed"}


def chain(path):
    """Write convolutions in a row, wide enough that halves of them take less time."""
    lines, tensors = [], []
    for i in range(3):
        lines.append(f"t{i + 1} = Conv<pads=[1,1,1,1]>(t{i}, w{i})")
        tensors.append(onnx.numpy_helper.from_array(np.full((64, 64, 3, 3), 1e-3, "f"), f"w{i}"))
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> chain (float[1,64,48,48] t0) => '
        f"(float[1,64,48,48] t3) {{ {' '.join(lines)} }}"
    )
    model.graph.initializer.extend(tensors)
    onnx.save(model, path)
    return path


@pytest.mark.nightly
def test_parts_take_the_time_of_their_segments_in_runs_of_split_plans(platform, runs, tmp_path):
    model = chain(tmp_path / "chain.onnx")
    phases = set()
    report = parapipe.profile(
        model, platform, parts=True, progress=lambda each: phases.add(each.phase)
    )
    of_parts = [each for each in runs if any("/part" in v for v in each.operators)]
    assert of_parts
    assert phases == {"measuring", "whole", "split"}
    rows = read_profile(report.path).measurements
    assert report.measured == len(rows)
    ran = {m.signature.output for m in rows if m.method == "run" and m.signature.type == "Conv"}
    assert any(output != "64x48x48" for output in ran), "a part has the time of a run"


def test_a_run_of_a_split_plan_teaches_what_its_parts_take(platform, tmp_path):
    model = chain(tmp_path / "chain.onnx")
    path = parapipe.profile(model, platform, operators_only=True, parts=True).path
    front = parapipe.map(model, platform, split="auto", cache=False, jobs=1, note=lambda _: None)
    split = min((each for each in front if each.split), key=lambda each: each.latency_s)
    run = split.plan().run(frames=8, saturate=True)
    assert run.document.split == split.split
    (tmp_path / "run.json").write_text(json.dumps(run.document.to_json()))
    parapipe.learn_from_runs(model, platform, tmp_path / "run.json")
    learned_s = {
        (m.signature, m.then, m.processor): m.time_s
        for m in read_profile(path).measurements
        if m.method == "run"
    }
    units = {unit.key: unit for unit in distinct_units(split.graph)}
    known = {operator.id: operator for operator in split.graph.operators}
    ran = [task for task in run.document.tasks if task.own and task.operators]
    total_s = sum(
        learned_s[unit.signature, unit.then, task.resource]
        for task in ran
        for v in task.operators
        if (unit := units.get(unit_key(known[v], split.graph)))
    )
    assert any("/part" in v for task in ran for v in task.operators)
    assert total_s == pytest.approx(sum(task.own.time_s for task in ran), rel=0.1)  # medians
