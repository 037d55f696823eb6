"""Least slots of a plan's channels with which a simulation keeps what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from parapipe.plan.build import fewest_slots, with_slots
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan
from parapipe.simulate.simulation import Simulation

MOST_SIMULATIONS = 400
Run = Callable[[Plan], Simulation]
Keeps = Callable[[Simulation], bool]


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of each transfer of a plan.

    Parameters
    ----------
    least
        Whether no others with fewer bytes keep the demand; else none of the channels can do with
        fewer slots while the others stay.
    """

    slots: tuple[int, ...]
    simulation: Simulation
    least: bool


def least_slots(
    plan: Plan, run: Run, keeps: Keeps, frames: int, *, most: int = MOST_SIMULATIONS
) -> Slots | None:
    """Return the slots that take the fewest bytes among those that keep a demand; None if none do.

    Slots are tried in the order of their bytes, from the fewest that a plan may have. Where they do
    not keep the demand, a channel gets one more if a task has waited for room in it: more room
    elsewhere would change no start. So nothing with fewer bytes is passed over. If that takes too
    many simulations, each channel in turn, the largest first, is given as few as keep the demand.

    Parameters
    ----------
    run
        Simulates a plan; the same task takes the same time in the same frame.
    frames
        Of a simulation.
    most
        Simulations before that is done in turn.
    """
    sizes = [each.size_bytes for each in plan.transfers]
    first = fewest_slots(plan)
    heap, seen = [(0, 0, first)], {first}
    for _ in range(most):
        if not heap:
            return None
        size_bytes, more, slots = heappop(heap)
        simulation = run(with_slots(plan, slots))
        if keeps(simulation):
            return Slots(slots, simulation, least=True)
        for channel in _channels_waited_for(plan, simulation, slots):
            wider = tuple(n + (i in channel) for i, n in enumerate(slots))
            if wider not in seen:
                seen.add(wider)
                added = sum(sizes[i] for i in channel)
                heappush(heap, (size_bytes + added, more + len(channel), wider))
    return _reduce_one_by_one(plan, run, keeps, [frames] * len(first))


def _reduce_one_by_one(plan: Plan, run: Run, keeps: Keeps, slots: list[int]) -> Slots | None:
    """Take away what slots can be spared, channel after channel; None if these are not enough."""
    best = run(with_slots(plan, slots))
    if not keeps(best):
        return None
    fewest = fewest_slots(plan)
    for i in sorted(range(len(slots)), key=lambda i: -plan.transfers[i].size_bytes):
        low, high = fewest[i], slots[i]
        while low < high:
            slots[i] = (low + high) // 2
            tried = run(with_slots(plan, slots))
            if keeps(tried):
                high, best = slots[i], tried
            else:
                low = slots[i] + 1
        slots[i] = high
    return Slots(tuple(slots), best, least=False)


def _channels_waited_for(
    plan: Plan, simulation: Simulation, slots: Sequence[int]
) -> Iterator[frozenset[int]]:
    """Yield, for each channel that a task may have waited for, the transfers that give it slots."""
    replayed = simulation.replayed
    assert replayed is not None, "it follows the plan"
    transfers = _transfers_of(plan, simulation.program)
    for u, v, depth in simulation.program.graph.channels:
        starts, ends = replayed.start_ps[u], replayed.end_ps[v]
        if any(end_ps == start_ps for start_ps, end_ps in zip(starts[depth:], ends, strict=False)):
            some = transfers.get((u, v), [])
            least = min((slots[i] for i in some), default=0)
            if narrowest := frozenset(i for i in some if slots[i] == least):
                yield narrowest


def _transfers_of(plan: Plan, program: Program) -> dict[tuple[int, int], list[int]]:
    """Return the transfers, by index, that go from task to task."""
    number = {(each.tensor, each.target): i for i, each in enumerate(plan.transfers)}
    readers: dict[str, set[int]] = {}
    for each in program.handovers:
        readers.setdefault(each.tensor, set()).add(each.consumer)
    transfers_between: dict[tuple[int, int], list[int]] = {}
    channels = {(u, v) for u, v, _ in program.graph.channels}
    for each in program.handovers:
        for v in readers[each.tensor]:
            i = number.get((each.tensor, program.tasks[v].resource))
            if i is not None and (each.producer, v) in channels:
                some = transfers_between.setdefault((each.producer, v), [])
                some += [] if i in some else [i]
    return transfers_between
