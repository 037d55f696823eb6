"""How many segments a mapping has, and what they cost: as many as an export makes files of."""

from __future__ import annotations

import random
import warnings

import onnx
import pytest

import parapipe
from parapipe.errors import DemandError, MappingError
from parapipe.front.demands import Demands, best
from parapipe.mappings.segments import SegmentLimit, count_segments
from parapipe.plan.segments import segments
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import read_platform
from parapipe.platform.segments import SegmentRules
from tests.cases.pipeline_cases import random_costs
from tests.cases.plan_cases import configured
from tests.cases.random_fronts import random_model, random_platform
from tests.cases.shuffled import operators_of
from tests.cases.soc_texts import SOC, mistakes, spoil


def counts_of_export(plan):
    """Files that the export makes of each processor."""
    return {name: len(some) for name, some in segments(plan, prompt=True).items()}


@pytest.mark.parametrize("seed", range(6))
def test_rows_have_as_many_segments_as_the_export_cuts(seed, tmp_path):
    rng = random.Random(seed)
    model, platform = tmp_path / "m.onnx", tmp_path / "p.yaml"
    onnx.save(random_model(rng, 6), model)
    platform.write_text(random_platform(rng), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        front = parapipe.map(model, platform, max_segments=100, draws=0, jobs=1, cache=False)
    for each in front:
        plan = each.plan()
        verify_plan(plan)
        files = counts_of_export(plan)
        stated = {p.name: p.segments for stage in each.stages for p in stage.processors}
        assert {name: stated[name] for name in files} == files  # of replicas, the first is written
        assert each.most_segments == max(stated.values())


# o0 ─► o1 ─► o2 ─► o3, and o3 reads o0, too
SKIP = {"o0": ["x"], "o1": ["o0"], "o2": ["o1"], "o3": ["o2", "o0"]}
HAND_SOLVED = [
    # one processor
    ([[(0, 0), (1, 0), (2, 0), (3, 0)]], {0: 1}),
    # two stages: o2 waits for o1 at the beginning, o3 for o0, which nothing of the stage waited for
    ([[(0, 0), (1, 0)], [(2, 1), (3, 1)]], {0: 1, 1: 2}),
    # in one stage o1 ends behind what o2 waits for, and o3 waits for o2
    ([[(0, 0), (1, 0), (2, 1), (3, 0)]], {0: 2, 1: 1}),
    # o1 waits for o0, so that ends its segment; o3 has it already but waits for o2
    ([[(0, 0), (1, 1), (2, 0), (3, 1)]], {0: 2, 1: 2}),
]


@pytest.mark.parametrize(("stages", "counts"), HAND_SOLVED)
def test_segments_by_hand(stages, counts):
    graph = operators_of(SKIP)
    mapping = configured(graph, random_costs(graph, 2, 0), stages)
    assert count_segments(mapping, graph) == counts


def test_processors_that_take_turns_have_the_same_segments():
    graph = operators_of(SKIP)
    stages = [[(0, 0), (1, 0)], [(2, 1), (3, 1)]]
    mapping = configured(graph, random_costs(graph, 3, 0), stages).with_replicas([(1, 2)])
    assert count_segments(mapping, graph) == {0: 1, 1: 2, 2: 2}


def test_the_least_of_platform_and_option_holds():
    text = spoil(("    host: cpu\n", "    host: cpu\n    segments: {most: 4, source: guess}\n"))
    rules = SegmentRules.of(read_platform(text, "soc.yaml").processors)
    assert SegmentLimit(None).within(rules).most == {"gpu": 4}
    assert SegmentLimit(8).within(rules).most == {"cpu": 8, "gpu": 4}
    assert SegmentLimit({"gpu": 2}).within(rules).most == {"gpu": 2}
    none = SegmentRules.of(read_platform(SOC, "soc.yaml").processors)
    assert SegmentLimit(8).within(none).most == 8


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{most: 0, source: guess}", "segments.most: is 0, must be at least 1"),
        ("{most: 4}", "source"),
        ("{source: guess}", "says nothing"),
        ("{load_s: -1, source: guess}", "segments.load_s: is -1, must be at least 0"),
        ("{most: 4, source: nobody}", "nobody"),
    ],
)
def test_a_section_that_is_wrong_is_told(section, told):
    text = spoil(("    host: cpu\n", f"    host: cpu\n    segments: {section}\n"))
    assert any(told in each for each in mistakes(text)), mistakes(text)


def test_parts_share_what_their_processor_may_have():
    more = """    host: cpu
    segments: {most: 4, load_s: 0.5, source: guess}
    streams: {slowdown: [1, 1.5], hand_over: {latency_s: 0}, source: guess}
"""
    text = spoil(("    host: cpu\n", more))
    gpu = read_platform(text, "soc.yaml").processors[1]
    rules = SegmentRules.of((gpu, *gpu.parts((1, 1))))
    assert rules.whole == ("gpu", "gpu", "gpu")
    assert rules.load_s({1: 2, 2: 3}) == 2.5
    assert rules.load_s({}) is None


def test_load_times_add_up_and_memory_counts(segment_front):
    each_s = {"big": 0.002, "little": 0.002, "gpu": 0.05}
    for row in segment_front:
        counts = {p.name: p.segments for stage in row.stages for p in stage.processors}
        assert counts == counts_of_export(row.plan())
        assert counts.get("gpu", 0) <= 3
        assert row.load_s == pytest.approx(sum(each_s[name] * n for name, n in counts.items()))
        (memory,) = row.memories
        own_bytes = counts.get("gpu", 0) * 1_000_000
        assert (memory.segments_bytes or 0) == own_bytes
        alive_bytes = sum(each.size_bytes for each in memory.alive)
        assert memory.peak_bytes == memory.weights_bytes + own_bytes + alive_bytes


def test_segments_count_under_a_limit_of_memory(tmp_path, segment_front):
    least = min(row.peak_memory_bytes for row in segment_front)
    source, platform = segment_front.document.model, segment_front.document.inputs.platform
    options = {"cache": False, "jobs": 1, "interleave": "none", "draws": 0}
    front = parapipe.map(source, platform, max_memory_bytes=least, **options)
    assert all(row.peak_memory_bytes <= least for row in front)
    assert all(p.name != "gpu" for row in front for s in row.stages for p in s.processors)


def test_a_demand_bounds_the_segments_of_every_or_of_one_processor(segment_front):
    rows = segment_front.document.configurations
    most = best(rows, "latency", Demands(max_segments=1))
    assert most.most_segments == 1
    one = best(rows, "latency", Demands(max_segments={"gpu": 1}))
    gpu = {p.name: p.segments for stage in one.stages for p in stage.processors}.get("gpu", 0)
    assert gpu <= 1
    with pytest.raises(DemandError, match=r"no configuration uses a processor 'gqu'.*'gpu'"):
        best(rows, "latency", Demands(max_segments={"gqu": 1}))


def test_a_front_without_segments_says_so(branchy_front):
    with pytest.raises(DemandError, match="says nothing of segments"):
        best(branchy_front.document.configurations, "latency", Demands(max_segments=1))


def test_a_processor_that_there_is_not_is_named(segment_front):
    source = segment_front.document.model
    told = "no processor 'npu' to limit segments of; it has 'big', 'little', 'gpu'"
    with pytest.raises(MappingError, match=told):
        parapipe.map(source, "amlogic-a311d", max_segments={"npu": 1})
