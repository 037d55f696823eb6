"""The benchmarks run, and their registry is what it says; nothing here measures time."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

import parapipe
from benchmarks import mapping_quality, mapping_time, wide_subgraphs
from benchmarks.mapping_quality_report import QualityRow
from benchmarks.mapping_registry import PLATFORMS, family_instances, instances, real_instances
from benchmarks.mapping_time_report import Row, geometric_mean, page
from benchmarks.real_subgraphs import parallel_subgraphs, processor_sets, subgraph_problem
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.solvers.lists import heft
from parapipe.solvers.problem import rounded_down

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4

ROW = Row("a on p", 9, 2, 0.01, 0.01, 0.5, 0.0, True, 6.0, 6.0, 0.5, 0.0, True, 5.0, True, 0.0)


def test_a_quick_run_writes_a_table_and_a_page(tmp_path) -> None:
    done = CliRunner().invoke(
        mapping_time.main, ["--quick", "--only", "squeezenet #2", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "mapping_time.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["processors"] for row in rows] == ["2", "2", "2", "3"]
    assert all(row["fine_proven"] == row["milp_proven"] == "True" for row in rows)
    for row in rows:
        assert float(row["fine_makespan_s"]) == pytest.approx(
            float(row["milp_makespan_s"]), abs=1e-6 * int(row["operators"])
        )
    written = (tmp_path / "mapping_time.md").read_text()
    assert "CPU" in written
    assert "geometric mean" in written


def test_an_unknown_instance_is_a_usage_error() -> None:
    done = CliRunner().invoke(mapping_time.main, ["--quick", "--only", "nothing"])
    assert done.exit_code == 2
    assert "no instance" in done.output


def test_names_of_instances_are_unique_and_each_has_two_processors_or_more() -> None:
    every = [*real_instances("googlenet", PLATFORMS), *family_instances()]
    names = [instance.name for instance in every]
    assert len(names) == len(set(names)) == 2 * (4 + 3) + 20 + 6
    assert all(instance.build().processors >= 2 for instance in every)


def test_an_instance_is_the_same_each_time() -> None:
    one, other = (list(instances(quick=True)) for _ in range(2))
    assert [i.build() for i in one] == [i.build() for i in other]


def test_alike_processors_make_one_set() -> None:
    assert list(processor_sets("bst-a1000")) == [
        ("npu", "dsp0"),
        ("dsp0", "dsp1"),
        ("npu", "dsp0", "dsp1"),
    ]
    assert len(list(processor_sets("amlogic-a311d"))) == 4


def test_a_subgraph_of_googlenet_reads_one_tensor_from_outside() -> None:
    numbers = parallel_subgraphs("zoo:googlenet")
    assert [len(operators) for operators in numbers.values()] == [
        14,
        15,
        14,
        14,
        14,
        14,
        15,
        14,
        15,
    ]
    problem = subgraph_problem("zoo:googlenet", 2, "amlogic-a311d", ("big", "gpu"))
    assert problem is not None
    assert problem.processors == 2
    outside = [flow for flow in problem.flows if flow.location is not None]
    assert len(outside) == 1
    assert len(outside[0].consumers) == 4


def test_the_geometric_mean_is_over_what_the_milp_closes_in_time() -> None:
    rows = [
        ROW,
        replace(ROW, instance="b", milp_s=60.0, fine_s=0.6),
        replace(ROW, instance="quick", milp_s=4.9),
        replace(ROW, instance="late", milp_s=60.5),
        replace(ROW, instance="open", milp_proven=False, milp_gap=0.25),
    ]
    told = page(rows, {}, 60.0)
    assert "closes 2 in 5 to 60 s: geometric mean of (MILP time ÷ fine time) **245**" in told
    assert "closes 1 in less than 5 s" in told
    assert geometric_mean([600.0, 100.0]) == pytest.approx(244.9, abs=0.1)
    assert told.index("| b |") < told.index("| quick |") < told.index("| open |")


def test_an_optimum_that_a_schedule_beats_is_told_as_false() -> None:
    told = page([replace(ROW, cuts_excess=0.08)], {}, 60.0)
    assert "1 of them false: a on p" in told
    assert "false by 8.00 %" in told
    assert "0 of them false" in page([ROW], {}, 60.0)


def test_instances_where_fine_loses_are_counted() -> None:
    assert "longer than the MILP on 1 instances" in page([replace(ROW, fine_s=7.0)], {}, 60.0)


def test_the_makespan_in_rounded_times_is_that_of_the_rounded_problem() -> None:
    problem = subgraph_problem("zoo:googlenet", 2, "bst-a1000", ("npu", "dsp0"))
    assert problem is not None
    schedule = heft(problem, time_limit_s=0, seed=0)
    rounded = heft(rounded_down(problem), time_limit_s=0, seed=0)
    assert mapping_time.rounded_us(problem, schedule) <= schedule.makespan_s * 1e6
    assert mapping_time.rounded_us(rounded_down(problem), rounded) == pytest.approx(
        rounded.makespan_s * 1e6
    )


def test_quality_is_told_per_model_and_platform(tmp_path) -> None:
    done = CliRunner().invoke(mapping_quality.main, ["--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    with (tmp_path / "mapping_quality.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["platform"] for row in rows] == ["amlogic-a311d", "amlogic-a311d, no overhead"]
    dear, free = (float(row["fine_makespan_s"]) for row in rows)
    assert free <= dear
    for row in rows:
        assert row["fine_proven"] == "True"
        others = [float(row[f"{name}_makespan_s"]) for name in mapping_quality.OTHERS]
        assert float(row["fine_makespan_s"]) <= min(others) + 1e-6 * int(row["operators"])
    written = (tmp_path / "mapping_quality.md").read_text()
    assert "10.9 % and 15.5 %" in written
    assert re.search(r"\| squeezenet \| amlogic-a311d \| (\d+) \| \1 \| 0.00 \|", written)


def test_without_overhead_transfers_are_shorter() -> None:
    (_, dear), (name, free) = mapping_quality.variants("amlogic-a311d")
    assert name == "amlogic-a311d, no overhead"
    assert free.transfer_s(10_000, 0, 2) < dear.transfer_s(10_000, 0, 2)
    assert [name for name, _ in mapping_quality.variants("bst-a1000")] == ["bst-a1000"]


def test_the_improvement_is_over_the_better_of_two_heuristics() -> None:
    makespans_s = {"heft": 4.0, "cpop": 5.0, "fine": 3.0}
    row = QualityRow("m", "p", 9, makespans_s, 0.1, 0.0, True, 0.9, 0, 0.0, 0.0)
    assert row.over("heft", "cpop") == 0.25
    assert row.over("cpop") == pytest.approx(0.4)


def test_a_network_as_one_problem_holds_all_operators_and_no_tensor_from_outside() -> None:
    graph = parapipe.load_model("zoo:googlenet")
    costs = build_cost_table(graph, parapipe.load_platform("amlogic-a311d"))
    network = mapping_quality.Network(graph, partition(graph), costs)
    whole = network.whole()
    assert whole.operators == len(graph.operators) == 84
    assert all(flow.location is None for flow in whole.flows)
    parallel = list(network.parallel())
    assert [problem.operators for problem in parallel] == [8, 9, 8, 8, 8, 8, 9, 8, 9]
    assert all(sum(flow.location == 0 for flow in problem.flows) == 1 for problem in parallel)


def test_a_decoder_of_169_operators_is_proven(tmp_path) -> None:
    done = CliRunner().invoke(
        wide_subgraphs.main, ["--only", "decoder-like seed 0", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "wide_subgraphs.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["proven"] == "True"
    assert float(row["gap"]) == 0
    assert "| decoder-like seed 0 |" in (tmp_path / "wide_subgraphs.md").read_text()


def test_the_wide_instances_have_169_operators() -> None:
    problems = [instance.build() for instance in wide_subgraphs.wide_instances()]
    assert len(problems) == 16
    assert {problem.operators for problem in problems} == {169}
    assert {problem.processors for problem in problems} == {3}
