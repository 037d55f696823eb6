"""Contention: processors that run at the same time share the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.pipeline.sustained import PICOSECONDS
from parapipe.plan.network import network_of
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class Memory:
    """What all processors share.

    Parameters
    ----------
    bandwidth_bytes_per_s
        Of the memory.
    contention
        Lengthening of a task, as a share of its time, while others together move as many bytes as
        the memory can.
    """

    bandwidth_bytes_per_s: float
    contention: float


class Contention:
    """How much longer tasks take that run at the same time.

    A task takes 1 + c Σ b / B times as long: c is the contention, B the memory's bandwidth, b what
    each other one that runs moves in a second. A transfer neither slows tasks nor is slowed.
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

    def slowdown(self, running: Sequence[int]) -> list[float]:
        """Return by how many times each of the running tasks takes longer."""
        total = sum(self._share[v] for v in running)
        return [1 + total - self._share[v] if self._works[v] else 1.0 for v in running]


def moved_bytes(plan: Plan) -> dict[str, int]:
    """Return what each operator reads and writes for a frame, by its id."""
    graph = network_of(plan)
    return {each.id: each.work.read_bytes + each.work.written_bytes for each in graph.operators}
