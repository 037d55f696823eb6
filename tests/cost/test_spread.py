"""Spreads of costs: what they are made of, and that the constants are what the data say."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.measured_source import stored_record
from parapipe.cost.profile import shipped_profiles
from parapipe.cost.spread import (
    NOMINAL_OWN,
    NOMINAL_SHARED,
    NOT_MEASURED,
    ONCE,
    OTHER_STATE,
    REPEATED,
    Spread,
    measurement_spread,
    platform_spread,
)
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.work import operator_class
from parapipe.platform.load import load_platform
from parapipe.platform.platform import Spread as PlatformSpreadSection
from parapipe.zoo.registry import build

A311D = load_platform("amlogic-a311d")
RUNS = Path(__file__).parents[2] / "profiles/amlogic-a311d/measured/end_to_end_calibration.csv"
NETWORKS = ("alexnet", "googlenet", "inception-v3", "mobilenet-v1", "resnet-50")


def graph_of(network, granularity="onnx"):
    model = build(network, weightless=True)
    return import_proto(model, source=ModelSource(network, ""), granularity=granularity)


def test_repeated_runs_differ_as_the_constant_says() -> None:
    task_ms = defaultdict(list)
    with RUNS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            task_ms[row["model"], row["order(block->processor)"]].append(float(row["task_ms"]))
    pairs = [times for times in task_ms.values() if len(times) > 1]
    ratios = [log(first / second) for first, second in pairs]
    assert len(pairs) == 9
    assert sqrt(sum(ratio**2 for ratio in ratios) / len(ratios)) == pytest.approx(
        REPEATED, abs=5e-4
    )


def logarithms(network):
    """Yield processor, class, the logarithm of measured over nominal time, and the time's share."""
    graph = graph_of(network)
    measured = build_cost_table(graph, A311D, view="as-measured")
    nominal = build_cost_table(graph, A311D, view="as-measured", profiles=())
    for p, name in enumerate(A311D.names):
        total_s = sum(measured.time_s(v, p) for v in range(len(graph.operators)))
        for v, operator in enumerate(graph.operators):
            time_s, stated_s = measured.time_s(v, p), nominal.time_s(v, p)
            if measured.cost(v, p).parts[0].provenance == "measured" and stated_s:
                kind = operator_class(operator, graph)
                yield (name, kind), log(time_s / stated_s), time_s / total_s


def test_nominal_times_are_off_as_the_constants_say() -> None:
    found = defaultdict(list)
    for network in NETWORKS:
        for key, logarithm, share in logarithms(network):
            found[key].append((logarithm, share))
    shared = own = total = 0.0
    for entries in found.values():
        logs, weights = np.array(entries).T
        mean = (logs * weights).sum() / weights.sum()
        shared += mean**2 * weights.sum()
        own += ((logs - mean) ** 2 * weights).sum()
        total += weights.sum()
    assert sqrt(shared / total) == pytest.approx(NOMINAL_SHARED, abs=0.02)
    assert sqrt(own / total) == pytest.approx(NOMINAL_OWN, abs=0.02)


def test_the_spread_of_rows_is_their_range_over_that_of_normal_numbers() -> None:
    m = replace(shipped_profiles("amlogic-a311d")[0].measurements[0], method="timed", spread=0.2)
    # expected ranges of 2, 5 and 10 standard normal numbers: 1.128, 2.326, 3.078
    for rows, expected in ((2, 1.128), (5, 2.326), (10, 3.078)):
        found = measurement_spread(replace(m, rows=rows))
        assert found == Spread(own=pytest.approx(log(1.2) / expected, rel=0.05))
    assert measurement_spread(replace(m, rows=1)) == ONCE


def test_shares_of_blocks_are_no_surer_than_a_single_run() -> None:
    m = replace(shipped_profiles("amlogic-a311d")[0].measurements[0], rows=5, spread=0.001)
    assert measurement_spread(replace(m, method="apportioned")).own == REPEATED
    assert measurement_spread(replace(m, method="timed")).own < REPEATED


def test_times_out_of_runs_share_half_of_how_far_segments_lie_apart() -> None:
    m = replace(shipped_profiles("amlogic-a311d")[0].measurements[0], method="run", spread=0.1)
    half = pytest.approx(log(1.1) / 2)
    assert measurement_spread(replace(m, rows=2)) == Spread(half, half, "runs of whole segments")
    assert measurement_spread(replace(m, rows=1)) == ONCE


def test_what_a_platform_says_of_spreads_goes_before_what_the_a311d_showed() -> None:
    known = PlatformSpreadSection(state=0.01, hand_overs=0.3, source="synchronisation")
    found = platform_spread(A311D.model_copy(update={"spread": known}))
    assert (found.state, found.transfers) == (0.01, 0.3)
    found = platform_spread(
        A311D.model_copy(update={"spread": known.model_copy(update={"hand_overs": None})})
    )
    assert (found.state, found.transfers) == (0.01, NOT_MEASURED)
    assert platform_spread(A311D).state == REPEATED


def test_fitted_times_share_what_is_stored_of_networks_left_out() -> None:
    profile = shipped_profiles("amlogic-a311d")[0]
    record = stored_record(profile)
    table = build_cost_table(graph_of("squeezenet"), A311D)
    assert record is not None
    seen = set()
    for p, name in enumerate(A311D.names):
        for part in table.parts(p):
            if part.provenance == "fitted" and part.spread.cause != OTHER_STATE:
                seen.add(name)
                assert part.spread.cause.startswith("fit of ")
                median = record.error_of(name).median
                assert part.spread.shared == pytest.approx(median / 0.6745, rel=1e-4)
                assert part.spread.own > 0
    assert seen == set(A311D.names)


def test_every_time_has_a_spread_by_where_it_comes_from() -> None:
    graph = graph_of("squeezenet", "fused")
    fitted, nominal = build_cost_table(graph, A311D), build_cost_table(graph, A311D, profiles=())
    for p in range(3):
        for part in fitted.parts(p):
            assert part.spread.own > 0 or not part.time_s
        for part in nominal.parts(p):
            if part.time_s:
                known = (part.spread.own, part.spread.shared)
                assert known == (NOMINAL_OWN, NOMINAL_SHARED)


def test_links_and_powers_are_as_sure_as_their_source() -> None:
    found = platform_spread(A311D)
    assert found.transfers == NOT_MEASURED
    assert found.states == ("big", "little", "gpu")
    known = {
        name: source.model_copy(update={"provenance": "measured"})
        for name, source in A311D.sources.items()
    }
    assert platform_spread(A311D.model_copy(update={"sources": known})).transfers == REPEATED
    guessed = {
        name: source.model_copy(update={"provenance": "nominal"})
        for name, source in A311D.sources.items()
    }
    assert min(platform_spread(A311D.model_copy(update={"sources": guessed})).power) == NOT_MEASURED
