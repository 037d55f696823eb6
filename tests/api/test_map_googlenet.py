"""The main job end to end: the front of GoogLeNet on the Amlogic A311D, on measured data."""

from __future__ import annotations

import json
from math import inf

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import MappingError

# Task time of the whole network on one processor, in ms, as the board was in 2025: 113.9 ms × 1.112
# on big; see profiles/SOURCES.md.
BOARD_MS = {"big": 126.6, "gpu": 100.3, "little": 310.8}


@pytest.fixture(scope="module")
def front():
    return parapipe.map(
        "zoo:googlenet", "amlogic-a311d", resolution=0.005, energy_resolution=0.3, interleave="none"
    )


@pytest.fixture(scope="module")
def costs(front):
    made = front.configurations[0]
    return build_cost_table(made.graph, made.platform)


@pytest.mark.parametrize("processor", BOARD_MS)
def test_one_processor_alone_costs_what_the_board_takes(front, processor):
    alone = front[f"{processor}-alone"]
    assert alone.kind == "sequential"
    assert alone.latency_s * 1e3 == pytest.approx(BOARD_MS[processor], rel=0.011)


@pytest.mark.parametrize(("processor", "board_mj"), [("big", 719.0), ("gpu", 368.3)])
def test_one_processor_alone_takes_the_energy_the_board_measured(front, processor, board_mj):
    # Metered over the whole network, with the board's idle power; see docs/accuracy.md.
    assert front[f"{processor}-alone"].board_energy_j * 1e3 == pytest.approx(board_mj, rel=0.05)


@pytest.mark.parametrize("processor", BOARD_MS)
def test_the_final_evaluation_is_that_of_the_same_order_of_blocks(front, processor):
    evaluated = front[f"{processor}-alone"].evaluated
    order = processor[0].upper() * 11
    same = parapipe.evaluate("zoo:googlenet", "amlogic-a311d", order=order)
    assert evaluated.network == "GoogLeNet"
    assert evaluated.latency_s == pytest.approx(same.latency_s)
    assert evaluated.energy_j == pytest.approx(same.energy_j)


def test_every_operator_was_measured_those_of_2024_on_big_scaled_and_so_fitted(front):
    processors = front.document.coverage.processors
    assert processors["little"].measured == processors["gpu"].measured == 1
    assert processors["big"].measured + processors["big"].fitted == pytest.approx(1)
    assert processors["big"].fitted > 0.9


def test_a_stage_on_one_processor_takes_the_sum_of_its_operators_and_its_transfers(front, costs):
    for made in front:
        for number, stage in enumerate(made.configuration.mapping.stages):
            if len(stage.processors) == 1:
                (p,) = stage.processors
                work_s = sum(costs.time_s(placed.operator, p) for placed in stage.placements)
                if number == 0:
                    assert stage.time_s == pytest.approx(work_s)
                else:
                    assert stage.time_s >= work_s - 1e-12


def test_latency_is_never_below_the_critical_path_on_the_fastest_processors(front, costs):
    graph = front.configurations[0].graph
    fastest = [
        min(costs.time_s(v, p) for p in range(len(costs.processors)))
        for v in range(len(graph.operators))
    ]
    end: list[float] = []
    for v, time_s in enumerate(fastest):
        end.append(time_s + max((end[u] for u in graph.predecessors(v)), default=0.0))
    assert all(row.latency_s >= max(end) for row in front.document.configurations)


def test_throughput_is_never_above_what_all_processors_together_could_reach(front, costs):
    # Each second, at most one second of work is done by each processor, at best all the fastest.
    graph = front.configurations[0].graph
    least_s = sum(
        min(costs.time_s(v, p) for p in range(len(costs.processors)))
        for v in range(len(graph.operators))
    )
    bound_fps = len(costs.processors) / least_s
    assert all(row.throughput_fps <= bound_fps for row in front.document.configurations)
    assert all(1 / row.sustained_period_s <= bound_fps for row in front.document.configurations)


def test_figures_of_a_configuration_agree_with_each_other(front):
    for row in front.document.configurations:
        times = [stage.time_s for stage in row.stages]
        assert row.latency_s == pytest.approx(sum(times))
        assert row.period_s == max(times)
        assert row.throughput_fps == 1 / row.period_s
        assert row.sustained_period_s <= row.period_s * (1 + 1e-9)
        assert row.board_energy_j == pytest.approx(row.energy_j + 2.02 * row.period_s)
        assert row.latency_with_io_s > row.latency_s
        used = [processor.name for stage in row.stages for processor in stage.processors]
        assert len(used) == len(set(used))


def test_named_configurations_are_the_best_of_their_kind(front):
    rows = front.document.configurations

    def least(kind, *keys):
        return min(tuple(getattr(row, key) for key in keys) for row in rows if row.kind == kind)

    latency = ("latency_s", "period_s", "energy_j")
    period = ("period_s", "latency_s", "energy_j")
    for name, kind, keys in (
        ("sequential", "sequential", latency),
        ("pipe-only", "pipe-only", period),
        ("para-only", "para-only", latency),
        ("hybrid-L", "hybrid", latency),
        ("hybrid-T", "hybrid", period),
    ):
        row = front[name]
        assert row.kind == kind
        assert tuple(getattr(row, key) for key in keys) == least(kind, *keys)
    assert front["most-efficient"].energy_j == min(row.energy_j for row in rows)


def test_no_configuration_on_the_front_beats_another_one_on_it(front):
    rows = [row for row in front.document.configurations if row.pareto]
    for a in rows:
        for b in rows:
            figures = [(r.latency_s, r.period_s, r.energy_j) for r in (a, b)]
            assert a is b or not all(x <= y * (1 - 1e-9) for x, y in zip(*figures, strict=True))


def test_parallel_and_pipelined_configurations_beat_the_best_single_processor(front):
    alone = front["sequential"]
    assert front["para-only"].latency_s < alone.latency_s
    assert front["hybrid-T"].throughput_fps > 2 * alone.throughput_fps


def test_every_plan_passes_its_verifier_and_says_the_same_figures(front, tmp_path):
    written = front.write(tmp_path)
    plans = [path for path in written if path.parent.name == "plans"]
    assert [path.stem for path in plans] == [row.id for row in front.document.configurations]
    for path, row in zip(plans, front.document.configurations, strict=True):
        summary = parapipe.verify_plan(path)
        assert float(f"{summary.latency_s:.12g}") == row.latency_s
        assert float(f"{summary.energy_j:.12g}") == row.energy_j


def test_the_same_input_gives_the_same_bytes(front, tmp_path):
    again = parapipe.map(
        "zoo:googlenet",
        "amlogic-a311d",
        resolution=0.005,
        energy_resolution=0.3,
        jobs=1,
        interleave="none",
    )
    for name, made in (("one", front), ("two", again)):
        made.write(tmp_path / name)
    for path in sorted((tmp_path / "one").rglob("*")):
        if path.is_file() and path.name != "solve_log.json":
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes()


@pytest.mark.nightly
def test_plans_of_an_earlier_run_are_replaced(front, tmp_path):
    front.write(tmp_path)
    stale = tmp_path / "plans" / "c999.json"
    stale.write_text("{}")
    mine = tmp_path / "plans" / "camera.json"
    mine.write_text("{}")
    front.write(tmp_path)
    assert not stale.exists()
    assert mine.exists()
    assert json.loads((tmp_path / "front.json").read_text())["model"] == "zoo:googlenet"


def test_a_table_has_a_row_per_configuration(front):
    frame = front.to_pandas()
    assert list(frame["id"]) == [row.id for row in front.document.configurations]
    assert frame["latency_s"].is_monotonic_increasing
    assert "hybrid-T" in front._repr_html_()


def test_the_picture_names_what_has_a_name(front):
    ax = front.plot()
    assert ax.get_xlabel() == "latency (ms)"
    assert ax.get_ylabel() == "throughput (frames/s)"
    above = ax.get_legend().get_title().get_text()
    texts = " ".join([above, *(text.get_text() for text in ax.texts)])
    assert all(name in texts for row in front.document.configurations for name in row.names)


def test_the_best_configuration_keeps_the_demands(front):
    best = front.best("energy", min_fps=12, max_latency_s=0.09)
    assert best.throughput_fps >= 12
    assert best.latency_s <= 0.09
    cheaper = [row for row in front.document.configurations if row.energy_j < best.energy_j]
    assert all(row.throughput_fps < 12 or row.latency_s > 0.09 for row in cheaper)


def test_demands_that_cannot_be_kept_are_answered_with_what_can(front):
    with pytest.raises(MappingError, match=r"2\d\.\d+ frames/s instead of 1000 frames/s"):
        front.best(min_fps=1000)
    with pytest.raises(KeyError, match="no configuration 'hybrid-X'"):
        front["hybrid-X"]
    assert front.best(max_latency_s=inf) is front.configurations[0]


def test_progress_is_told_of_each_subgraph_each_cut_and_each_plan(tmp_path):
    told = []
    found = parapipe.map("zoo:alexnet", "amlogic-a311d", progress=told.append, interleave="none")
    found.write(tmp_path, progress=told.append)
    phases = list(dict.fromkeys(each.phase for each in told))
    assert phases == ["mapping", "trading", "searching", "writing"]
    for phase in phases:
        of_phase = [each for each in told if each.phase == phase]
        assert of_phase[-1].done == of_phase[-1].total
        assert [e.elapsed_s for e in of_phase] == sorted(e.elapsed_s for e in of_phase)
    assert len([each for each in told if each.phase == "writing"]) == len(found)


def test_without_energy_the_front_is_that_of_latency_and_throughput(front):
    found = parapipe.map(
        "zoo:googlenet", "amlogic-a311d", objectives="latency-throughput", interleave="none"
    )
    paper = [row for row in front.document.configurations if row.pareto_latency_throughput]
    flat = [row for row in found.document.configurations if row.pareto]
    assert [(r.latency_s, r.period_s) for r in flat] == [(r.latency_s, r.period_s) for r in paper]
    least_j = min(row.energy_j for row in found.document.configurations)
    assert found["most-efficient"].energy_j == least_j


def test_a_front_shows_itself_in_a_line(front):
    assert repr(front).startswith("<ParetoFront of zoo:googlenet on amlogic-a311d: ")
    assert repr(front["gpu-alone"]).startswith("<c")
    assert len(repr(front["gpu-alone"])) < 100
