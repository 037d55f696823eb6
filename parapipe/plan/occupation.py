"""Rules on the transfers of a plan that keep a processor or a link busy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from parapipe.plan.places import Edge, Place, edges, every_place
from parapipe.plan.schema import Plan, Transfer


def occupation_violations(plan: Plan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with transfers that occupy something.

    The rules: who names what it occupies gives start and end, and nobody else does; that is the
    sender, the receiver, or no processor of the plan; it lasts as long as the transfer takes,
    within the receiving stage; it starts when the tensor is made, or with the stage if an earlier
    one makes it, and ends before it is read; and what one stage needs of a processor or a link
    follows one behind the other.
    """
    routes: dict[tuple[str, str, str], list[Edge]] = {}
    for edge in edges(plan):
        route = (edge.tensor, edge.producer.processor, edge.consumer.processor)
        routes.setdefault(route, []).append(edge)
    stage_of = _stage_of(plan)
    timed: list[tuple[int, Transfer]] = []
    for transfer in plan.transfers:
        given = [each is not None for each in (transfer.occupies, transfer.start_s, transfer.end_s)]
        if any(given) and not all(given):
            yield f"{_called(transfer)} gives some of occupies, start_s and end_s, not all"
        elif transfer.occupies is not None and transfer.target in stage_of:
            timed.append((stage_of[transfer.target], transfer))
            users = routes.get((transfer.tensor, transfer.source, transfer.target), [])
            yield from _one(plan, transfer, users, tolerance_s)
    yield from _overlaps(plan, timed, tolerance_s)


def work_s(plan: Plan) -> dict[str, float]:
    """Seconds that each processor and each shared link is busy for a frame."""
    busy_s = {
        processor.name: sum(at.end_s - at.start_s for at in processor.operators)
        for stage in plan.stages
        for processor in stage.processors
    }
    for transfer in plan.transfers:
        if transfer.occupies is not None:
            busy_s[transfer.occupies] = busy_s.get(transfer.occupies, 0.0) + transfer.time_s
    return busy_s


def serves_several_stages(plan: Plan) -> bool:
    """Tell whether a processor or a link is kept busy for more than one stage."""
    stage_of = _stage_of(plan)
    served: dict[str, set[int]] = {name: {stage} for name, stage in stage_of.items()}
    for transfer in plan.transfers:
        if transfer.occupies is not None and transfer.target in stage_of:
            served.setdefault(transfer.occupies, set()).add(stage_of[transfer.target])
    return any(len(stages) > 1 for stages in served.values())


def _stage_of(plan: Plan) -> dict[str, int]:
    return {p.name: position for position, stage in enumerate(plan.stages)
            for p in stage.processors}  # fmt: skip


def _called(transfer: Transfer) -> str:
    return (
        f"the transfer of tensor '{transfer.tensor}' from '{transfer.source}' to "
        f"'{transfer.target}'"
    )


def _span(transfer: Transfer) -> tuple[float, float]:
    return transfer.start_s or 0.0, transfer.end_s or 0.0


def _one(plan: Plan, transfer: Transfer, users: list[Edge], tolerance_s: float) -> Iterator[str]:
    called, (start_s, end_s) = _called(transfer), _span(transfer)
    third = transfer.occupies not in (transfer.source, transfer.target)
    if third and transfer.occupies in {processor.name for processor in plan.processors}:
        yield f"{called} occupies '{transfer.occupies}', which it neither leaves nor reaches"
    if abs(end_s - start_s - transfer.time_s) > tolerance_s:
        yield f"{called} lasts {end_s - start_s:.9g} s, and takes {transfer.time_s:.9g} s"
    for edge in users:
        made, read = edge.producer, edge.consumer
        stage_s = plan.stages[read.stage].time_s
        if end_s > stage_s + tolerance_s:
            yield f"{called} ends at {end_s:.9g} s, and its stage takes {stage_s:.9g} s"
        if (made.stage, made.lag) == (read.stage, read.lag) and start_s < made.end_s - tolerance_s:
            yield f"{called} starts at {start_s:.9g} s, and it is made at {made.end_s:.9g} s"
        if read.start_s < end_s - tolerance_s:
            yield (
                f"operator '{read.operator}' starts at {read.start_s:.9g} s, and {called} ends at "
                f"{end_s:.9g} s"
            )


def _overlaps(plan: Plan, timed: list[tuple[int, Transfer]], tolerance_s: float) -> Iterator[str]:
    operators: dict[tuple[int, str], list[Place]] = {}
    for place in every_place(plan):
        operators.setdefault((place.stage, place.processor), []).append(place)
    busy: dict[tuple[int, str], list[tuple[float, float, str]]] = {}
    for stage, transfer in timed:
        where = (stage, transfer.occupies or "")
        busy.setdefault(where, []).append((*_span(transfer), _called(transfer)))
    for (stage, name), moved in busy.items():
        run = [
            (at.start_s, at.end_s, f"operator '{at.operator}'")
            for at in operators.get((stage, name), ())
        ]
        pairs = [*combinations(moved, 2), *((one, other) for one in moved for other in run)]
        for one, other in pairs:
            if min(one[1], other[1]) - max(one[0], other[0]) > tolerance_s:
                yield f"{one[2]} and {other[2]} keep '{name}' busy at the same time"
