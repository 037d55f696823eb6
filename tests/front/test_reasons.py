"""What is advised beside a configuration follows from the figures of its front."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.front.reasons import Reasons
from parapipe.platform.support import Refusal
from tests.cases.replicas import ONE_STAGE, TWO_STAGES, replicated_front

Figures = tuple[float, float, float]  # latency, period and energy


def changed(row: ConfigurationRow, name: str, figures: Figures) -> ConfigurationRow:
    latency_s, period_s, energy_j = figures
    return row.model_copy(
        update={
            "id": name, "latency_s": latency_s, "period_s": period_s, "energy_j": energy_j,
            "throughput_fps": 1 / period_s, "sustained_period_s": period_s,
            "pareto_latency_throughput": False,
        }
    )  # fmt: skip


def reasons(made, figures: Sequence[Figures], **options: object) -> Reasons:
    """Return those of the first of configurations with these figures, c01 and on."""
    front: FrontDocument = made.document
    rows = [changed(made["c01"], f"c{i:02}", each) for i, each in enumerate(figures, start=1)]
    document = front.model_copy(
        update={
            "configurations": tuple(rows),
            "options": front.options.model_copy(update=options),
        }
    )
    first = made["c01"]
    return Reasons(document, rows[0], first.plan(), first.graph, first.costs)


def told(found: Reasons, about: str) -> list[str]:
    return [row.text for row in found.rows() if row.about == about]


def test_a_beaten_configuration_is_told_who_beats_it_and_nothing_else(branchy_front) -> None:
    found = reasons(branchy_front, [(2.0, 2.0, 2.0), (2.0, 1.0, 2.0), (1.0, 4.0, 4.0)])
    assert told(found, "front") == [
        "c02 is as good or better in everything: latency +0.0%, throughput +100.0%, energy +0.0%."
    ]


@pytest.mark.parametrize("of_conv", ["it lacks float32", "it is too large"])
def test_types_that_a_processor_refuses_for_the_same_reason_are_told_together(
    branchy_front, of_conv
) -> None:
    found = reasons(branchy_front, [(1.0, 1.0, 1.0)])
    types = [operator.type for operator in found.graph.operators]
    entries = [
        [Refusal("cpu", of_conv if kind == "Conv" else "it lacks float32"), *row[1:]]
        for kind, row in zip(types, found.costs.entries, strict=True)
    ]
    costs = replace(found.costs, entries=entries)
    (text,) = told(Reasons(found.front, found.row, found.plan, found.graph, costs), "unsupported")
    conv, add = (f"{kind} ({types.count(kind)})" for kind in ("Conv", "Add"))
    apart = f"{conv}: it is too large; {add}: it lacks float32."
    together = f"{conv}, {add}: it lacks float32."
    assert text.endswith(apart if of_conv == "it is too large" else f": {together}")


def test_the_nearest_and_the_least_are_named_and_alike_advice_is_one_line(branchy_front) -> None:
    found = reasons(
        branchy_front, [(4.0, 4.0, 4.0), (3.0, 4.0, 5.0), (1.0, 4.0, 8.0), (8.0, 2.0, 3.0)]
    )
    assert told(found, "front") == [
        ("For less latency, c02 is nearest: latency -25.0%, throughput +0.0%, energy +25.0%; c03 "
        "has the least latency: latency -75.0%, throughput +0.0%, energy +100.0%."),
        ("For more throughput and less energy take c04: latency +100.0%, throughput +100.0%, "
        "energy -25.0%."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "end"),
    [
        (
            {"resolution": 0.01, "energy_resolution": 0.05, "energy_resolution_asked": 0.05},
            (
                ", to within 1 % (--resolution), with energy counted, to within 5 % "
                "(--energy-resolution)."
            ),
        ),
        ({"resolution": 0.0, "energy_resolution": 0.0, "energy_resolution_asked": 0.0}, "."),
        (
            {"resolution": 0.0, "objectives": ("latency", "throughput")},
            ", energy not counted (--objectives).",
        ),
    ],
)
def test_no_mapping_is_better_but_for_what_options_leave_out(branchy_front, options, end) -> None:
    found = reasons(branchy_front, [(1.0, 1.0, 1.0)], **options, proves=("energy", "makespan"))
    (bound,) = told(found, "bound")
    assert "proven optimal in energy and makespan," in bound
    assert bound.endswith(f"is better than those that the front shows{end}")


def test_the_throughput_that_can_be_sustained_stands_beside_that_of_the_longest_stage(
    branchy_front,
) -> None:
    found = reasons(branchy_front, [(1.0, 1.0, 1.0)])
    assert len(told(found, "bottleneck")) == 1
    quicker = found.row.model_copy(update={"sustained_period_s": 0.5})
    found = Reasons(found.front, quicker, found.plan, found.graph, found.costs)
    assert told(found, "bottleneck")[1].startswith("That is 1 frames/s; 2 can be sustained")


@pytest.fixture(scope="module")
def with_replicas(tmp_path_factory):
    folders = (tmp_path_factory.mktemp("replicas") for _ in range(2))
    return [*map(replicated_front, folders, (ONE_STAGE, TWO_STAGES))]


def test_stages_that_take_turns_are_told_by_what_a_frame_needs(with_replicas) -> None:
    turned = set()
    for front, made in ((each, made) for each in with_replicas for made in each):
        found = Reasons(front.document, made, made.plan(), made.graph, made.costs)
        first, *_ = told(found, "bottleneck")
        every_s = [
            stage.time_s / (len(stage.processors) if stage.in_turn else 1) for stage in made.stages
        ]
        assert max(every_s) == pytest.approx(made.period_s)
        assert f"{made.period_s * 1e3:.4g} ms" in first
        longest = every_s.index(max(every_s))
        shares = [f"{each / max(every_s):.0%}" for i, each in enumerate(every_s) if i != longest]
        assert re.findall(r"takes ([0-9]+%)", first) == shares
        if made.kind == "replicated":
            turned.add(len(made.stages))
        paths = told(found, "critical path")
        for stage, path in zip(made.stages, paths, strict=True):
            divided = f" critical path, ÷ {len(stage.processors)} as "
            assert (divided in path) == stage.in_turn
            if stage.in_turn:
                time = f"{stage.time_s * 1e3:.4g} ms ÷ {len(stage.processors)} in turn"
                assert (time in first) == (len(made.stages) > 1)
                assert "/".join(each.name for each in stage.processors) in made.drawing
        if made.kind == "replicated" and len(made.stages) == 1:
            names = [each.name for each in made.stages[0].processors]
            assert all(name in first for name in names)
            assert f"each takes {made.latency_s * 1e3:.4g} ms" in first
    assert turned == {1, 2}
