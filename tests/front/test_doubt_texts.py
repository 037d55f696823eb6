"""Where the doubt in a configuration comes from: a plan that is read has the doubt of its front."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.front.memory_and_doubt import doubt_of, doubt_rows, doubt_texts, largest_sources

FIGURES = ("latency_s", "period_s", "energy_j")


@pytest.fixture(scope="module")
def front():
    chosen = {"interleave": "auto", "objectives": "latency-throughput"}
    return parapipe.map("zoo:squeezenet", "amlogic-a311d", **chosen)


def doubts(front):
    """Return one configuration of each kind with the doubt of its plan."""
    of_kind = {made.kind: made for made in front}
    assert {"sequential", "pipe-only", "hybrid", "para-only", "interleaved"} <= of_kind.keys()
    for made in of_kind.values():
        options = front.document.options
        yield made, doubt_of(made.plan(), made.graph, made.costs, options)


def test_a_plan_has_the_intervals_of_its_configuration(front):
    for made, doubt in doubts(front):
        for figure, key in enumerate(FIGURES):
            low, high = getattr(made.intervals, key)
            width = (high - low) / 2 / getattr(made, key)
            assert doubt.width(figure) == pytest.approx(width, rel=1e-6)


def test_shares_of_the_doubt_add_up_to_one(front):
    for _, doubt in doubts(front):
        assert doubt.shares.sum(axis=0) == pytest.approx([1, 1, 1])
        told = doubt_rows(doubt)
        assert 0.9 < sum(row.latency for row in told) <= 1 + 1e-9
        assert [row.latency for row in told] == sorted((row.latency for row in told), reverse=True)
        assert sum(share for _, share in largest_sources(doubt, 0)) <= 1 + 1e-9


def test_a_processor_alone_owes_nothing_to_hand_overs_or_to_other_processors(front):
    alone = front["big-alone"]
    doubt = doubt_of(alone.plan(), alone.graph, alone.costs, front.document.options)
    assert all(row.cause.endswith(" big") for row in doubt_rows(doubt))


def test_the_sentences_state_the_intervals(front):
    for made, doubt in doubts(front):
        first, *_ = doubt_texts(made, doubt, made.graph, made.costs)
        low, high = made.intervals.latency_s
        assert first.startswith(f"Latency is {low * 1e3:.4g} to {high * 1e3:.4g} ms in nine of ten")


def test_what_is_proposed_to_be_measured_is_not_measured_yet(front):
    for made, doubt in doubts(front):
        for v in doubt.most_useful(0, 3):
            cost = made.costs.cost(v, doubt.mapping.at[v].processor)
            assert any(part.provenance != "measured" for part in cost.parts)
