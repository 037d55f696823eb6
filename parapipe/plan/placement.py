"""Rules on where and when a plan runs its operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise

from parapipe.plan.places import Edge, Place, edges, every_place
from parapipe.plan.schema import Plan
from parapipe.plan.structure import repeated


def placement_violations(plan: Plan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with the stages of a plan.

    The rules: stages are numbered from 0 and share no processor; every operator runs once; lags
    begin at 0, each stage's follow on those of the stage before, and none decreases along a
    tensor; operators run within their stage's time and one at a time; an operator that works on
    the same frame as one it reads from starts no earlier than that one's end and the transfer
    together; a tensor from an earlier stage arrives its transfer time after the stage's start; and
    the order of the processors lets every operator get its inputs.
    """
    places = tuple(every_place(plan))
    crossing = edges(plan)
    yield from _stages(plan)
    yield from _once(plan, places)
    yield from _lags(places)
    yield from _within_stage(plan, places, tolerance_s)
    yield from _one_at_a_time(places, tolerance_s)
    yield from _arrivals(plan, crossing, tolerance_s)
    yield from _deadlock(places, crossing)


def _stages(plan: Plan) -> Iterator[str]:
    known = {processor.name for processor in plan.processors}
    for position, stage in enumerate(plan.stages):
        if stage.index != position:
            yield f"stage {stage.index} stands where stage {position} should"
        for processor in stage.processors:
            if processor.name not in known:
                yield f"stage {position} runs on '{processor.name}', which is no processor listed"
    used = [processor.name for stage in plan.stages for processor in stage.processors]
    for name in repeated(used):
        yield f"processor '{name}' stands in the stages twice"
    for name in sorted(known.difference(used)):
        yield f"processor '{name}' is listed and not used"


def _once(plan: Plan, places: tuple[Place, ...]) -> Iterator[str]:
    known = {operator.id for operator in plan.operators}
    placed = [place.operator for place in places]
    for operator in sorted(known.difference(placed)):
        yield f"operator '{operator}' is in no stage"
    for operator in sorted(set(placed) - known):
        yield f"operator '{operator}' is in a stage and not in the list of operators"
    for operator in repeated(placed):
        yield f"operator '{operator}' is placed more than once"


def _lags(places: tuple[Place, ...]) -> Iterator[str]:
    """Check that the lags of all stages, one after the other, are 0, 1, 2 and so on."""
    following = 0
    for stage, group in groupby(places, lambda place: place.stage):
        lags = sorted({place.lag for place in group})
        expected = list(range(following, following + len(lags)))
        if lags != expected:
            yield f"stage {stage} has the frame lags {lags}, and {expected} should follow"
        following = lags[-1] + 1


def _within_stage(plan: Plan, places: tuple[Place, ...], tolerance_s: float) -> Iterator[str]:
    for place in places:
        time_s = plan.stages[place.stage].time_s
        if place.end_s < place.start_s:
            yield (
                f"operator '{place.operator}' ends at {place.end_s:.9g} s, before its start at "
                f"{place.start_s:.9g} s"
            )
        if place.end_s > time_s + tolerance_s:
            yield (
                f"operator '{place.operator}' ends at {place.end_s:.9g} s, and stage "
                f"{place.stage} takes {time_s:.9g} s"
            )


def _one_at_a_time(places: tuple[Place, ...], tolerance_s: float) -> Iterator[str]:
    for (_, processor), group in groupby(places, lambda place: (place.stage, place.processor)):
        for before, behind in pairwise(group):
            if behind.start_s < before.end_s - tolerance_s:
                yield (
                    f"operator '{behind.operator}' starts at {behind.start_s:.9g} s on processor "
                    f"'{processor}', which runs '{before.operator}' until {before.end_s:.9g} s"
                )


def _arrivals(plan: Plan, crossing: tuple[Edge, ...], tolerance_s: float) -> Iterator[str]:
    transfer_s = {(t.tensor, t.source, t.target): t.time_s for t in plan.transfers}
    for edge in crossing:
        made, read = edge.producer, edge.consumer
        moved_s = 0.0
        if made.processor != read.processor:
            # A missing transfer is said where transfers are checked; here it takes no time.
            moved_s = transfer_s.get((edge.tensor, made.processor, read.processor), 0.0)
        what = f"operator '{read.operator}' reads '{edge.tensor}'"
        if made.stage > read.stage:
            yield f"{what}, which is made in a later stage ({made.stage}, after {read.stage})"
        elif made.lag > read.lag:
            yield f"{what} at frame lag {read.lag}, and it is made at {made.lag}"
        else:
            # At a higher lag, or in a later stage, the tensor was made before the stage began.
            begun = made.lag < read.lag or made.stage < read.stage
            arrival_s = (0.0 if begun else made.end_s) + moved_s
            if read.start_s < arrival_s - tolerance_s:
                yield (
                    f"{what} from {read.start_s:.9g} s, and it arrives on '{read.processor}' at "
                    f"{arrival_s:.9g} s"
                )


def _deadlock(places: tuple[Place, ...], crossing: tuple[Edge, ...]) -> Iterator[str]:
    """Check that no operators wait for each other in a circle.

    Times alone do not exclude it: operators that take no time may start and end together. What
    an operator reads at a higher lag was made a period before, and is not waited for.
    """
    waits: dict[Place, set[Place]] = {place: set() for place in places}
    for _, group in groupby(places, lambda place: (place.stage, place.processor)):
        for before, behind in pairwise(group):
            waits[behind].add(before)
    for edge in crossing:
        if edge.producer.lag == edge.consumer.lag:
            waits[edge.consumer].add(edge.producer)
    stuck = _never_ready(waits)
    if stuck:
        names = ", ".join(f"'{place.operator}'" for place in places if place in stuck)
        yield f"operators wait for each other in a circle, or for one in a circle: {names}"


def _never_ready(waits: Mapping[Place, set[Place]]) -> set[Place]:
    readers: dict[Place, list[Place]] = {}
    for place, awaited in waits.items():
        for other in awaited:
            readers.setdefault(other, []).append(place)
    open_waits = {place: len(awaited) for place, awaited in waits.items()}
    ready = [place for place, count in open_waits.items() if count == 0]
    while ready:
        for reader in readers.get(place := ready.pop(), ()):
            open_waits[reader] -= 1
            if open_waits[reader] == 0:
                ready.append(reader)
        del open_waits[place]
    return set(open_waits)
