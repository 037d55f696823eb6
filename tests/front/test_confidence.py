"""Choices that hold in draws of the costs: counted by hand, and monotone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.documents.figure_table import Demands
from parapipe.errors import ArgumentError, DemandError
from parapipe.front.demands import certainty, surest
from parapipe.uncertainty.samples import SampledFront, at_quantile
from tests.front.test_demands import FRONT

# fast 60 ms and 16.7 fps, steady 120 ms and 25 fps, thrifty 100 ms and 10 fps; four draws
DRAWN = SampledFront(
    latency_s=np.array(
        [[0.05, 0.06, 0.06, 0.09], [0.12, 0.12, 0.12, 0.12], [0.08, 0.1, 0.1, 0.12]]
    ),
    period_s=np.array([[0.05, 0.06, 0.06, 0.09], [0.05, 0.04, 0.04, 0.04], [0.08, 0.1, 0.1, 0.12]]),
    energy_j=np.array([[0.24] * 4, [0.2, 0.2, 0.16, 0.2], [0.15, 0.15, 0.17, 0.15]]),
)
IDS = ("fast", "steady", "thrifty")


@pytest.mark.parametrize(
    ("demands", "confidence", "expected"),
    [
        (Demands(), 1, "fast"),
        (Demands(max_latency_s=0.09), 1, "fast"),
        (Demands(max_latency_s=0.085), 0.75, "fast"),
        (Demands(max_latency_s=0.1), 0.75, "fast"),
        (Demands(min_fps=20), 1, "steady"),
        (Demands(min_fps=25), 0.75, "steady"),
        (Demands(max_energy_j=0.16), 0.75, "thrifty"),
        (Demands(max_power_w=4.0), 0.75, "fast"),  # 4.8, 4, 4, 2.7 W
        (Demands(max_power_w=4.0), 0.8, "thrifty"),
        (Demands(max_memory_bytes=9e6), 1, "thrifty"),
    ],
)
def test_what_keeps_the_demands_in_enough_draws_is_taken(demands, confidence, expected):
    assert surest(FRONT, DRAWN, "latency", replace(demands, confidence=confidence)).id == expected


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [(0.5, "fast"), (0.75, "fast"), (0.8, "steady")],  # of 4 draws: 60, 60, 90 against 70, 70, 70
)
def test_what_is_least_is_what_is_kept_in_that_share_of_the_draws(confidence, expected):
    steady = replace(DRAWN, latency_s=np.array([DRAWN.latency_s[0], [0.07] * 4, [0.1] * 4]))
    assert surest(FRONT, steady, "latency", Demands(confidence=confidence)).id == expected


def test_the_best_chance_is_named_if_it_is_not_enough():
    words = r"in 80% of the draws: the most is 75% \(steady\)"
    with pytest.raises(DemandError, match=words):
        surest(FRONT, DRAWN, "latency", Demands(min_fps=25, confidence=0.8))


def test_the_board_s_idle_power_counts_if_it_is_asked_for():
    # fast takes 2 W × 60 ms more: 0.24 + 0.12 J
    asked = Demands(max_energy_j=0.36, board=True, max_latency_s=0.085, confidence=0.75)
    assert surest(FRONT, DRAWN, "latency", asked).id == "fast"
    with pytest.raises(DemandError):
        surest(FRONT, DRAWN, "latency", Demands(max_energy_j=0.2, board=True, confidence=0.5))


def test_without_draws_there_is_no_confidence():
    with pytest.raises(DemandError, match="has no draws"):
        surest(FRONT, None, "latency", Demands(confidence=0.9))


def test_the_sustained_rate_was_not_drawn():
    with pytest.raises(DemandError, match="leave out either sustained or confidence"):
        surest(FRONT, DRAWN, "latency", Demands(sustained=True, confidence=0.9))


def test_certainty_is_counted_over_the_draws():
    # within 0.1 s: fast always, thrifty in three draws; energies 0.24 against 0.15, 0.15, 0.17
    found = certainty(FRONT, DRAWN, "energy", Demands(max_latency_s=0.1), IDS.index("fast"))
    assert (found.keeps, found.best) == (1.0, 0.25)
    regrets = [0.24 / 0.15 - 1, 0.24 / 0.15 - 1, 0.24 / 0.17 - 1, 0.0]
    assert found.regret_mean == pytest.approx(np.mean(regrets))
    assert found.regret_most == pytest.approx(np.quantile(regrets, 0.9))
    best = certainty(FRONT, DRAWN, "energy", Demands(max_latency_s=0.1), IDS.index("thrifty"))
    assert (best.keeps, best.best) == (0.75, 0.75)
    assert best.regret_mean == 0.0


def test_no_more_than_all_throughput_can_be_lost():
    # periods of 80, 100, 100 and 120 ms in place of 50, 40, 40 and 40 ms
    lost = [3 / 8, 6 / 10, 6 / 10, 8 / 12]
    found = certainty(FRONT, DRAWN, "throughput", Demands(), IDS.index("thrifty"))
    assert found.regret_mean == pytest.approx(np.mean(lost))
    assert found.regret_most == pytest.approx(np.quantile(lost, 0.9))


def test_there_is_no_regret_where_no_configuration_keeps_the_demands():
    found = certainty(FRONT, DRAWN, "latency", Demands(min_fps=100), 0)
    assert (found.keeps, found.best, found.regret_mean) == (0.0, 0.0, None)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.floats(0.05, 0.15),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=4),
)
def test_more_confidence_is_never_cheaper(seed, most_s, confidences):
    rng = np.random.default_rng(seed)
    drawn = SampledFront(*(rng.lognormal(-2.5, 0.3, (3, 20)) for _ in range(3)))
    demands, least = Demands(max_latency_s=most_s, min_fps=8), 0.0
    for confidence in sorted(confidences):
        try:
            row = surest(FRONT, drawn, "energy", replace(demands, confidence=confidence))
        except DemandError:
            least = np.inf  # and more confidence finds none either
            continue
        energy_j = at_quantile(drawn.energy_j[IDS.index(row.id)], confidence)
        assert energy_j >= least
        least = energy_j


def test_a_front_and_its_folder_pick_the_same(branchy_front, branchy_folder):
    fastest = min(branchy_front, key=lambda row: row.latency_s)
    asked = {"max_latency_s": fastest.intervals.latency_s[1], "confidence": 0.9}
    picked = parapipe.pick(branchy_folder, "energy", **asked)
    assert picked.configuration.id == branchy_front.best("energy", **asked).id
    assert picked.certainty.keeps >= 0.9


def test_a_confidence_is_a_share(branchy_front):
    for wrong in (0, 1.1, -1):
        with pytest.raises(ArgumentError, match="above 0 and at most 1"):
            branchy_front.best(confidence=wrong)
