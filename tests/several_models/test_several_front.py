"""What is said of rates that can be kept, of those that cannot, and of those in between."""

from itertools import islice
from math import inf

import pytest

from parapipe.errors import DemandError
from parapipe.processes.deadline import Deadline
from parapipe.search.options import MapOptions
from parapipe.several_models.front import explore_several
from parapipe.several_models.patterns import Demand
from parapipe.several_models.search import SeveralSearch
from tests.cases.plan_cases import graph_of, operator
from tests.cases.several_cases import patterns

# one operator of 10 s on one processor and 11 s on the other: 21 frames in 110 s at best, which
# take 21 frames in a pattern, and 2 in 11 s in shorter ones
LEAST_S, OF_TWO_S = 110 / 21, 5.5


def explored(period_s, search_class=SeveralSearch):
    one = graph_of([operator("y", "x")], inputs=["x"], outputs=["y"]), [[10.0, 11.0]]

    def search(times):
        return patterns([one], (times,), period_s=times * period_s)

    def longer(times):
        return search(times).graph, search(times).costs

    return explore_several(
        search(1).graph,
        search(1).costs,
        [Demand("m0", 1 / period_s)],
        MapOptions(),
        period_s=period_s,
        deadline=Deadline(inf),
        longer=longer,
        searches=[search_class()],
    )


@pytest.mark.parametrize("period_s", [OF_TWO_S, 2 * OF_TWO_S])
def test_rates_that_a_pattern_keeps_are_kept_by_every_row(period_s):
    found = explored(period_s)
    assert found.times == 2
    for each in found.exploration.found:
        assert each.evaluated.period_s == pytest.approx(2 * period_s)
        assert 1 - 1e-9 <= each.several.rate_factor <= each.several.bound


@pytest.mark.parametrize("period_s", [OF_TWO_S * 0.999, LEAST_S * 1.001])
def test_rates_that_a_longer_pattern_may_keep_are_not_said_to_be_impossible(period_s):
    with pytest.raises(DemandError) as caught:
        explored(period_s)
    told = str(caught.value)
    assert told.startswith("no pattern was found that keeps the rates: the best one, of 2 frames")
    assert "one that is longer may keep them" in told


def test_rates_beyond_patterns_of_any_length_are_said_to_be_impossible():
    with pytest.raises(DemandError) as caught:
        explored(LEAST_S * 0.99)
    assert "the rates cannot be kept" in str(caught.value)
    assert "no pattern reaches more than 0.99 times" in str(caught.value)


class Interrupted(SeveralSearch):
    """Is interrupted once it has found as many patterns as `after` says."""

    after = 1

    def run(self, problem, incumbents, deadline):
        yield from islice(super().run(problem, incumbents, deadline), self.after)
        raise KeyboardInterrupt


class InterruptedAtOnce(Interrupted):
    after = 0


def test_an_interruption_ends_the_search_with_the_patterns_found_so_far():
    found = explored(2 * OF_TWO_S, Interrupted).exploration
    assert len(found.found) == 1
    assert found.interrupted
    assert found.unfinished.reasons == (
        "the search for patterns ended before it had tried all periods",
    )


def test_an_interruption_before_any_pattern_was_found_is_one():
    with pytest.raises(KeyboardInterrupt):
        explored(2 * OF_TWO_S, InterruptedAtOnce)
