"""Contention: processors that run at the same time share the memory, streams share a processor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parapipe.errors import SimulationError
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.mapped import network_of
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class StreamLaw:
    """How much the streams of a processor slow each other down.

    Parameters
    ----------
    of
        Name of the processor.
    share
        Of the predicted time, as if all streams were at work: what an operator takes while 1, 2, …
        are.
    """

    of: str
    share: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """What all processors share, and streams of one processor.

    Parameters
    ----------
    bandwidth_bytes_per_s
        Of the memory.
    contention
        Lengthening of a task, as a share of its time, while others together move as many bytes as
        the memory can.
    laws
        How much streams slow each other down, by their names; those of other processors have none.
    """

    bandwidth_bytes_per_s: float
    contention: float
    laws: Mapping[str, StreamLaw] = field(default_factory=dict)


class Contention:
    """How much longer tasks take that run at the same time.

    A task takes 1 + c Σ b / B times as long: c is the contention, B the memory's bandwidth, b what
    each other one that runs moves in a second. A transfer neither slows tasks nor is slowed. On a
    stream, it takes less while other streams of the processor do nothing.
    """

    def __init__(self, plan: Plan, program: Program, memory: Memory) -> None:
        moved = moved_bytes(plan)
        self._share = [
            memory.contention
            * sum(moved[v] for v in task.operators)
            / memory.bandwidth_bytes_per_s
            / (time_ps / PICOSECONDS)
            if task.operators and time_ps
            else 0.0
            for task, time_ps in zip(program.tasks, program.graph.time_ps, strict=True)
        ]
        self._works = [bool(task.operators) for task in program.tasks]
        self._laws = [memory.laws.get(task.resource) for task in program.tasks]

    def slowdown(self, running: Sequence[int]) -> list[float]:
        """Return by how many times each of the running tasks takes longer."""
        total = sum(self._share[v] for v in running)
        at_once = Counter(law.of for v in running if (law := self._laws[v]))
        factors = [1 + total - self._share[v] if self._works[v] else 1.0 for v in running]
        for i, v in enumerate(running):
            if law := self._laws[v]:
                factors[i] *= law.share[at_once[law.of] - 1]
        return factors


def laws_of(plan: Plan, platform: Platform) -> dict[str, StreamLaw]:
    """Return the laws of a plan's streams, by their names.

    Those of a CPU have none: each has its share of the threads, whatever the others do.

    Raises
    ------
    SimulationError
        If the platform does not say what so many streams of a processor take.
    """
    known = {each.name: each.streams for each in platform.processors}
    laws: dict[str, StreamLaw] = {}
    for each in plan.processors:
        if each.stream is None or each.kind == "cpu":
            continue
        streams, count = known.get(each.stream.of), each.stream.count
        if streams is None or len(streams.slowdown) < count:
            raise SimulationError(
                f"platform '{platform.name}' does not say what {count} streams of "
                f"'{each.stream.of}' take: give the plan's own platform by `platform`"
            )
        factors = streams.slowdown[:count]
        laws[each.name] = StreamLaw(each.stream.of, tuple(x / factors[-1] for x in factors))
    return laws


def moved_bytes(plan: Plan) -> dict[str, int]:
    """Return what each operator reads and writes for a frame, by its id."""
    graph = network_of(plan)
    return {each.id: each.work.read_bytes + each.work.written_bytes for each in graph.operators}
