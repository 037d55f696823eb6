"""The laws of co-runs: by hand, and what holds for all of them."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.cost.co_run import (
    Draw,
    LinearContention,
    Running,
    SharedMemoryLaw,
    SlowdownTable,
    co_run_law,
)
from parapipe.platform.co_run import Slowdown
from parapipe.platform.divided import variants
from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, spoil

DRAWS = {"big": Draw(8e9), "gpu": Draw(12e9), "npu": Draw(4e9)}


def at(processor, bytes_per_s, time_s=1e-3):
    return Running(processor, bytes_per_s * time_s, time_s)


def row(processor, busy, factor, own=None, beside=None):
    raw = {"processor": processor, "busy": busy, "factor": factor, "busy_class": beside}
    return Slowdown.model_validate(raw | {"class": own})


def test_memory_bound_operators_are_slowed_down_alike():
    law = SharedMemoryLaw(12.8e9, DRAWS)
    # Both take all that they draw: 8 + 12 GB/s of 12.8, a share of 0.64.
    assert law.slowdowns([at("big", 8e9), at("gpu", 12e9)]) == pytest.approx((1 / 0.64, 1 / 0.64))


def test_who_asks_for_little_gets_it_and_leaves_the_rest():
    law = SharedMemoryLaw(10e9, DRAWS)
    # The npu asks for 1 of its 4 GB/s; 9 are left for 8 + 10: a share of 0.5, more than 1 / 4.
    running = [at("npu", 1e9), at("big", 8e9), at("gpu", 10e9)]
    assert law.slowdowns(running) == pytest.approx((1.0, 2.0, 2.0))


def test_a_half_bound_operator_is_slowed_down_from_its_own_need_on():
    law = SharedMemoryLaw(12e9, DRAWS)
    # All in proportion to what they draw: 12 GB/s over 8 + 12, 0.6; big needs 0.75 of its 8 GB/s.
    assert law.slowdowns([at("big", 6e9), at("gpu", 12e9)]) == pytest.approx((0.75 / 0.6, 1 / 0.6))


def test_what_the_memory_serves_all_of_slows_nothing_down():
    law = SharedMemoryLaw(20e9, DRAWS)
    assert law.slowdowns([at("big", 8e9), at("gpu", 12e9)]) == (1.0, 1.0)
    assert law.slowdowns([]) == ()


def test_no_operator_draws_more_than_its_processor_or_anything_out_of_caches():
    law = SharedMemoryLaw(12e9, {**DRAWS, "big": Draw(8e9, cache_bytes=1e6)})
    fast, cached = Running("npu", 40e9, 1.0), Running("big", 1e6, 1e-4)
    assert law.slowdowns([fast, at("gpu", 12e9)]) == pytest.approx((16 / 12, 16 / 12))
    assert law.slowdowns([cached, at("gpu", 12e9)]) == (1.0, 1.0)
    slow = Running("big", 1.001e6, 1e-4)
    assert law.slowdowns([slow, at("gpu", 12e9)]) == pytest.approx((20 / 12, 20 / 12))


def test_a_processor_that_is_said_to_draw_more_than_there_is_draws_all_of_it():
    law = SharedMemoryLaw(6e9, DRAWS)
    assert law.slowdowns([at("gpu", 12e9)]) == (1.0,)
    assert law.slowdowns([at("big", 8e9), at("gpu", 12e9)]) == (2.0, 2.0)


def test_a_table_takes_the_largest_factor_of_what_is_busy():
    law = SlowdownTable((row("big", ["gpu"], 1.3), row("big", ["npu"], 1.1)), DRAWS)
    assert law.slowdowns([at("big", 0), at("npu", 0)]) == (1.1, 1.0)
    # Both busy is not stated: the largest of what is stated of a part.
    assert law.slowdowns([at("big", 0), at("npu", 0), at("gpu", 0)]) == (1.3, 1.0, 1.0)
    stated = SlowdownTable((*law.rows, row("big", ["npu", "gpu"], 2.0)), DRAWS)
    assert stated.slowdowns([at("npu", 0), at("gpu", 0), at("big", 0)]) == (1.0, 1.0, 2.0)
    assert stated.slowdowns([at("big", 0)]) == (1.0,)


def test_both_sides_of_the_share_from_which_on_an_operator_is_memory_bound():
    law = SlowdownTable((), DRAWS, memory_share=0.25)
    assert law.boundedness(at("big", 2e9, 1.0)) == "memory"
    assert law.boundedness(at("big", 1.99e9, 1.0)) == "compute"
    cached = SlowdownTable((), {"big": Draw(8e9, cache_bytes=2e9)}, memory_share=0.25)
    assert cached.boundedness(at("big", 2e9, 1.0)) == "compute"
    assert cached.boundedness(at("big", 2.01e9, 1.0)) == "memory"


def test_rows_of_a_class_hold_for_operators_of_that_class_and_beside_such():
    rows = (
        row("big", ["gpu"], 1.05, own="compute"),
        row("big", ["gpu"], 1.1, own="memory"),
        row("big", ["gpu"], 1.8, own="memory", beside="memory"),
    )
    law = SlowdownTable(rows, DRAWS)
    assert law.slowdowns([at("big", 0), at("gpu", 12e9)]) == (1.05, 1.0)
    assert law.slowdowns([at("big", 8e9), at("gpu", 0)]) == (1.1, 1.0)
    assert law.slowdowns([at("big", 8e9), at("gpu", 12e9)]) == (1.8, 1.0)


def test_operators_of_one_processor_are_no_others():
    law = SlowdownTable((row("big", ["gpu"], 1.3),), DRAWS)
    assert law.slowdowns([at("big", 0), at("big", 0)]) == (1.0, 1.0)


def test_contention_lengthens_by_what_the_others_move():
    # 0.5 while the others move all of 10 GB/s.
    law = LinearContention(0.5 / 10e9)
    assert law.slowdowns([at("big", 4e9), at("gpu", 6e9)]) == pytest.approx((1.3, 1.2))
    assert law.slowdowns([Running("big", 100, 0.0), at("gpu", 6e9)]) == pytest.approx((1.3, 1.0))


def law_of(section, *changes):
    return co_run_law(read_platform(spoil(("links:\n", f"{section}\nlinks:\n"), *changes), "soc"))


def test_a_platform_says_which_law_holds():
    assert co_run_law(read_platform(SOC, "soc.yaml")) is None
    assert law_of("evaluation: {contention: 0.5, source: guess}") == LinearContention(0.5 / 10e9)
    draws = {"cpu": Draw(8e9), "gpu": Draw(9e9)}
    shared = law_of("co_run: {bandwidth: shared, source: guess}")
    assert shared == SharedMemoryLaw(10e9, draws)
    stated = "co_run: {slowdowns: [{processor: cpu, busy: [gpu], factor: 2}], source: guess}"
    assert law_of(stated) == SlowdownTable((row("cpu", ["gpu"], 2.0),), draws)


def test_the_law_of_a_platform_with_streams_knows_their_processor():
    streams = "host: cpu\n    streams: {slowdown: [1, 2], hand_over: {latency_s: 0}, source: guess}"
    law = "co_run: {bandwidth: shared, source: guess}\nlinks:\n"
    platform = read_platform(spoil(("host: cpu", streams), ("links:\n", law)), "soc.yaml")
    assert [co_run_law(each).draws.keys() for each in variants(platform)] == 2 * [{"cpu", "gpu"}]


NAMES = st.sampled_from(sorted(DRAWS))
ROWS = st.lists(
    st.builds(
        row,
        NAMES,
        st.lists(NAMES, min_size=1, unique=True),
        st.floats(1, 5),
        st.sampled_from([None, "compute", "memory"]),
        st.sampled_from([None, "compute", "memory"]),
    ),
    max_size=6,
).map(lambda rows: [each for each in rows if each.processor not in each.busy])
LAWS = st.one_of(
    st.builds(LinearContention, st.floats(0, 1e-8)),
    st.builds(SharedMemoryLaw, st.floats(1e8, 1e11), st.just(DRAWS)),
    st.builds(SlowdownTable, ROWS.map(tuple), st.just(DRAWS)),
)
RUNNING = st.permutations(sorted(DRAWS)).flatmap(
    lambda names: st.tuples(*(st.builds(at, st.just(name), st.floats(0, 20e9)) for name in names))
)


@settings(max_examples=200, deadline=None)
@given(LAWS, RUNNING)
def test_the_more_runs_the_longer_each_takes_and_alone_its_own_time(law, running):
    everything = dict(zip(running, law.slowdowns(running), strict=True))
    assert all(law.slowdowns([each]) == (1.0,) for each in running)
    for pair in combinations(running, 2):
        for each, factor in zip(pair, law.slowdowns(pair), strict=True):
            assert 1 <= factor <= everything[each] * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e8, 1e11), RUNNING)
def test_shared_memory_gives_no_more_than_it_has_and_all_of_it_where_it_is_short(have, running):
    factors = SharedMemoryLaw(have, DRAWS).slowdowns(running)
    asked = [min(DRAWS[each.processor].bytes_per_s(each), have) for each in running]
    served = sum(d / x for d, x in zip(asked, factors, strict=True))
    assert served == pytest.approx(min(have, sum(asked)), rel=1e-9)
