"""What each of several models gets: hand-solved cases."""

import pytest

from parapipe.cost.co_run import LinearContention
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.service import service_of, with_all_loaded
from parapipe.modulo.cyclic_problem import Frames
from tests.cases.plan_cases import graph_of, operator
from tests.cases.several_cases import patterns


def test_frames_in_equal_steps_have_the_latency_of_the_one_that_takes_longest():
    # two frames of a model at a period of 10: from 1 to 4, and from 8 to 10; they come 5 apart
    frames = Frames((1,), (2,), (1.0,))
    [(come, latency)] = frames.served(10, [(1, 4), (8, 10)])
    assert come == (1, 6)
    assert latency == 4


def test_which_frame_is_first_and_how_many_periods_old_it_is_does_not_matter():
    frames = Frames((1,), (2,), (1.0,))
    [(come, latency)] = frames.served(10, [(8, 10), (21, 24)])
    assert come == (6, 21)
    assert latency == 4


def test_models_have_latencies_of_their_own():
    frames = Frames((2, 1), (1, 1), (1.0, 2.0))
    assert frames.latencies(10, [(3, 9), (12, 15)]) == [6, 3]
    assert frames.cost(10, [3, 7, 12], [5, 9, 15]) == 6 + (6 + 6) / 100


def test_every_frame_of_a_pattern_is_loaded_and_every_result_read():
    search = patterns([_alone([1.0, 9.0]), _alone([9.0, 1.0])], (2, 1))
    mapping = next(_mappings(search))
    made = evaluate(mapping, search.graph, search.costs)
    every = with_all_loaded(made, mapping, search.graph, search.costs)
    assert every.input_s == pytest.approx(3 * search.costs.input_s(0))
    assert every.output_s == pytest.approx(3 * search.costs.output_s(0))


def _mappings(search):
    reached = search.reached()
    return map(search.mapped, search.schedules(reached, energy=False, tell=lambda _done, _of: None))


def _alone(seconds):
    return graph_of([operator("t0", "x")], inputs=["x"], outputs=["t0"]), [seconds]


@pytest.mark.parametrize("moved", [0, 500])
def test_with_contention_a_pattern_takes_as_long_as_work_that_others_lengthen(moved):
    # 1 s each, always beside the other: 1 + c b times as long, with c = 1 ms and b of 0 or 500 / s
    search = patterns([_alone([1.0, 9.0]), _alone([9.0, 1.0])], (1, 1), period_s=4.0)
    search.costs.moved_bytes = moved
    search.costs.co_run, search.costs.wholes = LinearContention(1e-3), search.costs.processors
    mapping = next(
        each for each in _mappings(search) if [at.processor for at in each.placements] == [0, 1]
    )
    taken = evaluate(mapping, search.graph, search.costs)
    got = service_of(mapping, taken, search.graph, search.costs, bound_s=1.0)
    expected_s = 1 + 1e-3 * moved
    assert got.rate_factor == pytest.approx(4.0)
    assert got.contended_rate_factor == pytest.approx(4.0 / expected_s)
    assert got.effective_factor == got.contended_rate_factor
    # at the period of 4 s, frames come together and take as long
    assert got.latency_s == pytest.approx((expected_s, expected_s))
