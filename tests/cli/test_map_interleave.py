"""`parapipe map` interleaves frames: that is marked, explained, simulated, and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from parapipe import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.front.critical_paths import frame_path, moves_lowering_load
from parapipe.plan.schema import Plan

PLATFORMS = Path(__file__).parents[2] / "platforms"
MAP = ("map", "zoo:squeezenet", "--platform", "amlogic-a311d", "--no-cache", "--quiet")
TWO = ("--objectives", "latency-throughput", "--resolution", "0.05")


@pytest.fixture
def front(parapipe, tmp_path):
    ended = parapipe(*MAP, *TWO, "--out", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    return tmp_path, ended.out


def test_interleaved_frames_have_more_throughput_than_stages_and_say_so(front) -> None:
    folder, told = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = next(row for row in rows if "interleaved-T" in row["names"])
    stages = [row for row in rows if row["least"] is None]
    assert best["kind"] == "interleaved"
    assert best["throughput_fps"] > 1.05 * max(row["throughput_fps"] for row in stages)
    assert best["throughput_fps"] == max(row["throughput_fps"] for row in rows)
    assert 0 <= best["gap"] < 0.02
    assert "interleaved-T" in told


def test_its_plan_is_sound_and_a_simulation_has_its_period(front, parapipe) -> None:
    folder, _ = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = next(row for row in rows if "interleaved-T" in row["names"])
    plan = folder / "plans" / f"{best['id']}.json"
    assert parapipe("verify", plan).code == 0
    period = json.loads(parapipe("simulate", plan, "--frames", 1200, "--json").out)["period"]
    assert period["limit_s"] == pytest.approx(best["period_s"], rel=1e-6)
    # frames that are under way at the end come out sooner, as no others follow them
    assert period["observed_s"] == pytest.approx(best["period_s"], rel=0.01)


def test_it_is_explained_by_its_busiest_processor_and_a_frame_s_way(front, parapipe) -> None:
    folder, _ = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = next(row for row in rows if "interleaved-T" in row["names"])
    ended = parapipe("explain", folder, "interleaved-T", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    figures = found["figures"]
    for name in ("latency_s", "period_s", "energy_j", "throughput_fps"):
        numbers = eval(figures[name]["numbers"], {"max": max})
        assert numbers == pytest.approx(best[name], rel=1e-5)
    # one period of the busiest processor, all of it
    [stage] = found["stages"]
    busy_s = {each["name"]: each["busy_s"] for each in found["processors"]}
    [name] = {step["processor"] for step in stage["steps"]}
    assert name == max(busy_s, key=busy_s.get)
    assert sum(step["time_s"] for step in stage["steps"]) == pytest.approx(best["period_s"])
    told = " ".join(each["text"] for each in found["reasons"])
    assert f"{name} is the busiest: " in told
    stays = best["latency_s"] / best["period_s"]
    assert f"{stays:.3g} periods" in told
    assert "Proven: its period is at most" in told
    # the board's hand-overs are delays: what is said of them as work adds up their times
    plan = Plan.load(folder / "plans" / f"{best['id']}.json")
    for moved in plan.transfers:
        busy_s[moved.target] += moved.time_s
    count = len(plan.transfers)
    assert f"{count} of the {count} hand-overs only take time" in told
    assert f"the period would be at least {max(busy_s.values()) * 1e3:.4g} ms" in told


def test_no_figure_is_below_its_bound_and_the_gap_is_that_of_the_nearest(front) -> None:
    folder, _ = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    assert all(row["least"] for row in rows if row["kind"] == "interleaved")
    for row in rows:
        if (least := row["least"]) is None:
            continue
        assert 0 < least["period_s"] <= row["period_s"] * (1 + 1e-6)
        assert 0 < least["latency_s"] <= row["latency_s"] * (1 + 1e-6)
        near = max(least[name] / row[name] for name in least)
        assert row["gap"] == pytest.approx(max(0, 1 - near), abs=1e-6)
        assert row["proven"] == (row["gap"] == 0)


def test_the_steps_of_a_frame_s_way_fill_its_latency(front) -> None:
    folder, _ = front
    for row in json.loads((folder / "front.json").read_text())["configurations"]:
        if row["kind"] == "interleaved":
            plan = Plan.load(folder / "plans" / f"{row['id']}.json")
            way = frame_path(plan)
            assert sum(step.time_s for step in way) == pytest.approx(row["latency_s"])
            assert way[0].kind != "transfer"
            assert all(step.time_s > 0 for step in way if step.kind != "operator")


def test_a_move_that_lowers_the_greatest_load_does_what_it_says(front) -> None:
    folder, _ = front
    graph, platform = load_model("zoo:squeezenet"), load_platform("amlogic-a311d")
    costs = build_cost_table(graph, platform)
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    found = 0
    for row in rows:
        plan = Plan.load(folder / "plans" / f"{row['id']}.json")
        place = {
            at.operator: processor.name
            for stage in plan.stages
            for processor in stage.processors
            for at in processor.operators
        }
        before_s = greatest_load_s(graph, costs, place)
        for move in moves_lowering_load(graph, costs, place):
            after_s = greatest_load_s(graph, costs, {**place, move.operator: move.processor})
            assert move.load_s == pytest.approx(after_s)
            assert after_s < before_s
            found += 1
    assert found


def greatest_load_s(graph, costs, place):
    """Add up each processor's operators; on this platform transfers keep nothing busy."""
    loads = dict.fromkeys(costs.processors, 0.0)
    for v, operator in enumerate(graph.operators):
        name = place[operator.id]
        loads[name] += costs.time_s(v, costs.processors.index(name))
    return max(loads.values())


@pytest.mark.nightly
def test_of_little_energy_are_configurations_that_stages_do_not_reach(parapipe, tmp_path) -> None:
    ended = parapipe(*MAP, "--out", tmp_path)
    assert ended.code == 0
    rows = json.loads((tmp_path / "front.json").read_text())["configurations"]
    stages = [row for row in rows if row["least"] is None]
    least = [
        row
        for row in rows
        if row["kind"] == "interleaved"
        and (as_fast := [s["energy_j"] for s in stages if s["period_s"] <= row["period_s"]])
        and row["energy_j"] < 0.95 * min(as_fast)
    ]
    assert least
    assert all(row["pareto"] and row["evaluated"] is None for row in least)
    assert all(row["gap"] < 0.1 for row in least)


@pytest.fixture
def alone(tmp_path):
    """The board with one processor only."""
    document = yaml.safe_load((PLATFORMS / "amlogic-a311d.yaml").read_text(encoding="utf-8"))
    document["processors"] = [each for each in document["processors"] if each["name"] == "big"]
    document["links"] = []
    path = tmp_path / "alone.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def test_one_processor_takes_no_turns_with_itself(parapipe, small_model, alone) -> None:
    ended = parapipe("map", small_model(), "--platform", alone, "--quiet", "--json")
    told = json.loads(ended.out)["absent"]
    assert told["interleaved"] == "it needs 2 processors, and the platform has 1"
    assert told["interleaved"] == told["pipe-only"]


def test_one_operator_on_its_own_is_mapped_too(parapipe, small_model) -> None:
    ended = parapipe("map", small_model("Relu"), *MAP[2:], "--json")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert {row["kind"] for row in document["configurations"]} == {"sequential"}
    assert "more throughput than stages" in document["absent"]["interleaved"]


def test_of_stages_only_is_a_front_that_was_asked_for_so_and_no_point_of_it_is_lost(
    front, parapipe, tmp_path
) -> None:
    folder, _ = front
    stages, both = tmp_path / "stages", folder
    assert parapipe(*MAP, *TWO, "--interleave", "none", "--out", stages).code == 0
    points, others = (
        json.loads((each / "front.json").read_text())["configurations"] for each in (stages, both)
    )
    assert all(row["kind"] != "interleaved" for row in points)
    for point in points:
        if point["pareto_latency_throughput"]:
            assert any(
                row["latency_s"] <= point["latency_s"] and row["period_s"] <= point["period_s"]
                for row in others
            )


@pytest.fixture
def late(tmp_path):
    """Two processors of 1.0 and 1.1 ms for each operator, whose hand-over is a delay of 0.5 ms."""
    made = {"source": "guess"}

    def processor(name, launch_s):
        return {
            "name": name, "kind": "cpu", "backend": "nominal", "cores": [int(name == "b")],
            "data_types": ["float32"], **made,
            "clock": {"default_frequency_hz": 1e9, **made,
                      "points": [{"frequency_hz": 1e9, "voltage_v": 1.0}]},
            "launch": {"overhead_s": launch_s, **made},
            "peak": {"macs_per_s": {"float32": 1e15}, **made},
            "memory": {"bandwidth_bytes_per_s": 1e15, **made},
            "power": {"alpha_w_per_v2_hz": 1e-9, "beta_w_per_v": 0.1,
                      "utilisation": {"default": 1}, **made},
            "input": {"latency_s": 0, **made}, "output": {"latency_s": 0, **made},
        }  # fmt: skip

    path = tmp_path / "late.yaml"
    document = {
        "schema": "parapipe/platform/1", "name": "late",
        "board": {"idle_power_w": 1, **made},
        "memory": {"bandwidth_bytes_per_s": 5e9, **made},
        "processors": [processor("a", 1e-3), processor("b", 1.1e-3)],
        "links": [{"from": "a", "to": "b", "both_ways": True, "latency_s": 5e-4, **made}],
        "sources": {"guess": {"provenance": "nominal", "title": "made up",
                              "reasoning": "made up"}},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def test_stages_that_hand_over_while_both_ends_work_have_the_period_of_their_work(
    parapipe, small_model, late, tmp_path
) -> None:
    # By hand: 1.1 ms on b, 0.5 ms on the way, 1.0 ms on a. Stages one behind the other count the
    # way in the second: 1.5 ms between frames. With it beside the work of both, it is 1.1 ms.
    folder = tmp_path / "front"
    model = small_model("Sigmoid", "Tanh")
    asked = ("--granularity", "onnx", "--no-cache", "--draws", "0", "--out", folder)
    ended = parapipe("map", model, "--platform", late, *asked)
    assert ended.code == 0
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = min(rows, key=lambda row: row["period_s"])
    assert (best["kind"], "pipe-only" in best["names"]) == ("pipe-only", True)
    assert best["period_s"] == pytest.approx(1.1e-3, rel=1e-5)
    assert best["sustained_period_s"] == pytest.approx(1.1e-3, rel=1e-5)
    assert best["latency_s"] == pytest.approx(2.6e-3, rel=1e-5)
    assert best["drawing"] == "b[1…] │ a[…1]"
    # each processor's joules, and its 0.1 W for a period
    assert best["energy_j"] == pytest.approx(2.1e-3 + 2 * 0.1 * 1.1e-3, rel=1e-4)
    assert "latency or period may be less by up to this share" in ended.out
    assert "whose shortest period is 1.1 ms" in ended.out

    plan = folder / "plans" / f"{best['id']}.json"
    assert parapipe("verify", plan).code == 0
    period = json.loads(parapipe("simulate", plan, "--json").out)["period"]
    assert period["limit_s"] == pytest.approx(1.1e-3, rel=1e-5)
    told = " ".join(parapipe("explain", folder, best["id"]).out.split())
    assert "Hand-overs go on while both ends work on other frames, and b is the busiest" in told
    assert "A frame stays 2.6 ms, 2.36 periods" in told
    assert "Proven: its period is the least of any configuration" in told
