"""shapes.json from combinations of placements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from parapipe.documents.front_schema import ConfigurationRow
from parapipe.documents.shapes_schema import (
    CombinationRow,
    MoveRow,
    PlacementRow,
    RequestIntervalsRow,
    SharedMemoryRow,
)
from parapipe.mappings.configuration import stated_figure
from parapipe.several_shapes.combination import Combination, StateMove
from parapipe.several_shapes.placed_shapes import PlacedShape
from parapipe.uncertainty.causes import Array, Draws
from parapipe.uncertainty.samples import interval
from parapipe.uncertainty.shapes import SampledSteps, sampled_requests


def combination_rows(
    combinations: Sequence[Combination],
    row_of: Callable[[PlacedShape], ConfigurationRow],
    draws: Draws | None = None,
) -> Iterator[CombinationRow]:
    """Yield what a document says of combinations, in their order.

    Parameters
    ----------
    row_of
        Gives the row of a placement on the front of its shape.
    draws
        Of the costs, from which intervals are made; none without.
    """
    sampled: Sequence[SampledSteps | None] = (
        sampled_requests(combinations, draws) if draws else [None] * len(combinations)
    )
    width = max(2, len(str(len(combinations))))
    for number, (each, samples) in enumerate(zip(combinations, sampled, strict=True), 1):
        request_s, energy_j = stated_figure(each.request_s), stated_figure(each.energy_j)
        yield CombinationRow(
            id=f"s{number:0{width}d}",
            names=each.names,
            pareto=each.pareto,
            placements={
                placement.shape.name: _placement_row(placement, row_of(placement))
                for placement in each.placements
            },
            moves=tuple(_move_rows(each)),
            request_s=request_s,
            requests_per_second=1 / request_s,
            energy_j=energy_j,
            **(tokens := _token_figures(each, row_of)),
            intervals=None if samples is None else _intervals(each, samples, tokens),
            memory_bytes=each.memory_bytes,
            memories=tuple(
                SharedMemoryRow(name=name, peak_bytes=peak_bytes, weights_bytes=weights_bytes)
                for name, peak_bytes, weights_bytes in zip(
                    each.placements[0].storage.system.names,
                    each.memories_bytes,
                    each.weights_bytes,
                    strict=True,
                )
            ),
        )


def _intervals(
    combination: Combination, samples: SampledSteps, tokens: Mapping[str, float]
) -> RequestIntervalsRow:
    """Return the intervals of times; loading and reading have no draws."""
    request_s = _interval(samples.request_s)
    if not tokens:
        return RequestIntervalsRow(request_s=request_s)
    *_, last = (at for at, each in enumerate(combination.placements) if each.shape.steps)
    answer_s = samples.steps_s[last] + samples.moved_s[last]
    steps = combination.placements[last].shape.steps
    stated_s = tokens["first_token_s"] + steps / tokens["tokens_per_second"]
    around_s = stated_s - combination.request_s
    return RequestIntervalsRow(
        request_s=request_s,
        first_token_s=_interval(samples.request_s - answer_s + around_s),
        tokens_per_second=_interval(steps / answer_s),
    )


def _interval(values: Array) -> tuple[float, float]:
    low, high = interval(values)
    return stated_figure(low), stated_figure(high)


def _token_figures(
    combination: Combination, row_of: Callable[[PlacedShape], ConfigurationRow]
) -> dict[str, float]:
    """Return time to the first token, tokens a second, and joules of each.

    Nothing if no token is fed back.
    """
    moved_s = [0.0] * len(combination.placements)
    for move in combination.moves:
        moved_s[move.end] += move.time_s
    steps = [
        (each, each.steps_s + moved_s[at], each.energy_j + combination.moves_j[at])
        for at, each in enumerate(combination.placements)
        if each.shape.steps
    ]
    *prompt, (answer, answer_s, answer_j) = steps
    tokens = [each.input for each in answer.graph.states if each.kind == "token"]
    if not (prompt and tokens and answer.shape.follows) or answer.graph.sequences > 1:
        return {}
    if not all(tokens[0] in each.graph.inputs for each, *_ in prompt):
        return {}
    begin_s, end_s = row_of(prompt[0][0]).input_s, row_of(prompt[-1][0]).output_s
    first_token_s = begin_s + sum(time_s for _, time_s, _ in prompt) + end_s
    count = answer.shape.steps * prod(answer.graph.tensors[tokens[0]].shape)
    return {
        "first_token_s": stated_figure(first_token_s),
        "tokens_per_second": stated_figure(answer.shape.steps / answer_s),
        "energy_per_token_j": stated_figure(answer_j / count),
    }


def _placement_row(placement: PlacedShape, row: ConfigurationRow) -> PlacementRow:
    return PlacementRow(
        id=row.id,
        drawing=row.drawing,
        latency_s=row.latency_s,
        steps_s=stated_figure(placement.steps_s),
        energy_j=stated_figure(placement.energy_j),
    )


def _move_rows(combination: Combination) -> Iterator[MoveRow]:
    """Yield what moves, the states of one way together."""
    ways: dict[tuple[int, int, str, str], list[StateMove]] = {}
    for each in combination.moves:
        ways.setdefault((each.begin, each.end, each.source, each.target), []).append(each)
    names = [each.shape.name for each in combination.placements]
    for (begin, end, source, target), some in ways.items():
        yield MoveRow(
            begin=names[begin],
            end=names[end],
            source=source,
            target=target,
            states=len(some),
            size_bytes=sum(each.size_bytes for each in some),
            time_s=stated_figure(sum(each.time_s for each in some)),
        )
