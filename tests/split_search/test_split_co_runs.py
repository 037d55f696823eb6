"""Operators split over processors that slow each other down."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import parapipe
from parapipe.api.load import load_graph
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.evaluate import settle
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import read_platform
from parapipe.search.loaded_costs import ExpectedLoad
from parapipe.split_search.execution_modes import ExecutionModes, Split
from parapipe.split_search.part_prices import PartPrices
from parapipe.split_search.split_model import split_and_assign
from tests.cases.soc_texts import spoil
from tests.split_search.test_split_front import chain

GRID = 64
READ = {
    "granularity": "fused", "rules": None, "dims": None, "shapes": None, "digests": False,
    "note": lambda _: None,
}  # fmt: skip
FREE = (
    "links:\n  - {from: cpu, to: gpu, latency_s: 1e-3, bandwidth_bytes_per_s: 1e9, source: guess}\n"
    "  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}\n"
)
NEAR = FREE.replace("1e-3", "1e-6").replace("5e-4", "1e-6").replace("1e9", "1e12")


def text(factor):
    row = f"{{processor: gpu, busy: [cpu], factor: {factor}}}"
    return spoil((FREE, f"co_run: {{source: guess, slowdowns: [{row}]}}\n{NEAR}"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "one.onnx"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> one '
        "(float[1,64,64,64] x) => (float[1,64,64,64] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"
    )
    weights = np.ones((64, 64, 3, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return path


def every_share(model, target):
    """Return the latency under the law by axis and share, of all shares on a fine grid."""
    graph = load_graph(str(model), **READ)

    def split(rules):
        return load_graph(str(model), **READ, split=rules)

    def price(graph):
        return build_cost_table(graph, target, profiles=())

    costs = price(graph)
    ways = ExecutionModes(PartPrices(graph, target, costs, ()), partition(graph).order)
    waiting = [each for each in ways.problem().modes[0] if isinstance(each.mark, Split)]
    found = {}
    while waiting:
        mode = waiting.pop()
        key = tuple((each.axis, each.begin, each.end) for each in mode.mark.ranges)
        if key in found:
            continue
        split_model, assignment = split_and_assign([mode], ways, split, price, ())
        mapping = mapping_of(split_model.graph, None, split_model.costs, assignment)
        own = replace(split_model.costs, co_run=costs.co_run, wholes=costs.wholes)
        found[key] = settle(mapping, split_model.graph, own)[1].latency_s
        waiting += ways.near([mode], GRID)
    assert len(found) > GRID
    return found


@pytest.mark.parametrize(("factor", "splits"), [(1.5, True), (3, False)])
def test_shares_are_as_good_as_the_best_of_all(model, tmp_path, factor, splits):
    # Alone, the GPU is twice as fast as the CPU. Slowed down by 1.5, both together are faster than
    # it; by 3, they do less than the GPU alone, and the CPU stays empty.
    (tmp_path / "soc.yaml").write_text(text(factor))
    target = read_platform(text(factor), "soc.yaml")
    best_s = min(every_share(model, target).values())
    front = parapipe.map(
        model, tmp_path / "soc.yaml", split="auto", interleave="none", cache=False, jobs=1,
        objectives="latency-throughput", profiles=[], draws=0,
    )  # fmt: skip
    fastest = min(front, key=lambda each: each.latency_s)
    assert bool(fastest.split) == splits
    assert fastest.latency_s <= best_s * 1.01
    for row in front:  # what joins parts takes no time, and may end as the next frame begins
        verify_plan(row.plan())


@pytest.mark.nightly
def test_interleaved_parts_are_verified_and_simulated_as_predicted(tmp_path):
    (tmp_path / "soc.yaml").write_text(text(1.5))
    front = parapipe.map(
        chain(tmp_path / "chain.onnx"), tmp_path / "soc.yaml", split="auto", cache=False, jobs=1,
        objectives="latency-throughput", profiles=[], draws=0,
    )  # fmt: skip
    assert {"interleaved", "para-only"} <= {each.kind for each in front if each.split}
    for row in front:
        plan = row.plan()
        verify_plan(plan)
        run = parapipe.simulate_plan(plan, frames=200).document
        assert run.period.median_s == pytest.approx(row.period_s)
        assert run.latency.most_s == pytest.approx(row.latency_s)


def test_parts_are_priced_under_the_load_and_come_back_with_their_times_alone(model):
    target = read_platform(text(3), "soc.yaml")
    graph = load_graph(str(model), **READ)
    costs = build_cost_table(graph, target, profiles=())
    load = ExpectedLoad.of(costs, costs.co_run, (0, 1))
    alone = PartPrices(graph, target, load.costs, ())
    loaded = PartPrices(graph, target, load.costs, (), load)
    modes = ExecutionModes(alone, partition(graph).order).problem().modes[0]
    split = next(each.mark for each in modes if isinstance(each.mark, Split))
    for range_ in split.ranges:
        for prices in (alone, loaded):
            assert prices.part(split.operators, range_)
        cpu, gpu = (
            [prices.taken(split.operators, range_, p)[0] for prices in (alone, loaded)]
            for p in (0, 1)
        )
        assert cpu[1] == pytest.approx(cpu[0])  # nothing slows the CPU down
        assert gpu[1] == pytest.approx(3 * gpu[0])
        assert loaded.cost(split.operators, range_, 0, 1) == alone.cost(
            split.operators, range_, 0, 1
        )
    assert loaded.expected.time_s(0, 1) == pytest.approx(3 * alone.expected.time_s(0, 1))
