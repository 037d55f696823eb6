"""What a change of the chip brings: costs change where they are said to, for the better."""

from __future__ import annotations

import pytest

from parapipe import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.front.what_if import FASTER, Chip
from parapipe.graph.partition import partition
from parapipe.platform.support import Refusal
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions


@pytest.fixture(scope="module")
def chip():
    graph, platform = load_model("zoo:squeezenet"), load_platform("bst-a1000")
    return Chip(graph, platform, build_cost_table(graph, platform), None)


@pytest.fixture(scope="module")
def changes(chip):
    return {change.words: change for change in chip.changes()}


def times(table, p):
    return [table.time_s(v, p) for v in range(len(table.entries))]


def test_a_faster_processor_changes_its_operators_and_nothing_else(chip, changes):
    table = changes["npu 10 % faster"].costs
    p = table.processors.index("npu")
    assert times(table, p) == pytest.approx([s / FASTER for s in times(chip.costs, p)])
    for q in range(len(table.processors)):
        assert q == p or times(table, q) == times(chip.costs, q)
    assert table.transfers == chip.costs.transfers


def test_a_faster_link_changes_its_transfers_both_ways_and_nothing_else(chip, changes):
    table = changes["link of npu and dsp1 10 % faster"].costs
    p, q = (table.processors.index(name) for name in ("npu", "dsp1"))
    assert table.entries == chip.costs.entries
    for name, before in chip.costs.transfers.items():
        for i, row in enumerate(before):
            for j, time_s in enumerate(row):
                changed = FASTER if {i, j} == {p, q} else 1.0
                assert table.transfer_s(name, i, j) == pytest.approx(time_s / changed)


def test_a_type_that_a_processor_did_not_run_is_priced_there(chip, changes):
    p = chip.costs.processors.index("npu")
    told = set()
    for change in (each for words, each in changes.items() if words.startswith("npu runs")):
        gained = [
            v
            for v, row in enumerate(change.costs.entries)
            if chip.costs.unsupported(v, p) and not isinstance(row[p], Refusal)
        ]
        assert f"{len(gained)} of the operators" in change.words
        kinds = {chip.graph.operators[v].type for v in gained}
        assert len(kinds) == 1
        assert f"npu runs {min(kinds)}" in change.words
        told |= kinds
    assert told == {"AveragePool", "Flatten", "Softmax"}


def test_measured_times_do_not_follow_the_bandwidth():
    graph, platform = load_model("zoo:squeezenet"), load_platform("amlogic-a311d")
    chip = Chip(graph, platform, build_cost_table(graph, platform), None)
    (change,) = (each for each in chip.changes() if "bandwidth" in each.words)
    assert change.costs is None
    assert "measured or fitted" in change.remark


def test_no_change_for_the_better_makes_the_front_worse(chip, changes):
    parts = partition(chip.graph)
    options = MapOptions(
        mapper="auto", time_limit_s=5, objectives="latency-throughput", resolution=0.0
    )

    def best(table):
        found = explore(chip.graph, parts, table, options).found
        made = [each.evaluated for each in found]
        return min(c.latency_s for c in made), min(c.period_s for c in made)

    latency_s, period_s = best(chip.costs)
    for change in (changes["dsp0 10 % faster"], changes["npu 10 % faster"]):
        changed_s = best(change.costs)
        assert changed_s[0] <= latency_s * (1 + 1e-9)
        # one of two identical DSPs that gets faster ends replicated stages
        assert change.words.startswith("dsp0") or changed_s[1] * (1 - 1e-9) <= period_s
