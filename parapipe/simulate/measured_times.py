"""Times of a run in a simulation: every frame takes what some frame of the run took, in all tasks.

So what slows the tasks of a frame together stays together. A task's hand-over is what its processor
was idle for before it though it had all it needed; it goes before the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from parapipe.errors import SimulationError
from parapipe.plan.in_place import as_run
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """What a task took in the frames of a run, in seconds.

    Parameters
    ----------
    resource, operators
        What it is known by: where it ran, and the ids of its operators.
    """

    resource: str
    operators: tuple[str, ...]
    times_s: Sequence[float]
    handovers_s: Sequence[float]


class MeasuredTimes:
    """Times of the tasks of a plan, by frame of a simulation.

    Parameters
    ----------
    name
        What messages call the run.
    tasks
        Of the run, each with as many frames.
    seed
        Of which frame of the run a frame of the simulation is; None takes them in their order,
        again and again.

    Raises
    ------
    SimulationError
        There are no times.
    """

    def __init__(self, name: str, tasks: Sequence[TaskTimes], seed: int | None = 0) -> None:
        frames = {len(each.times_s) for each in tasks} | {len(each.handovers_s) for each in tasks}
        if len(frames) != 1 or frames == {0}:
            raise SimulationError(
                f"{name} does not hold the times of each frame: run the plan with this version, "
                "as in `parapipe run PLAN --json`, without a strategy"
            )
        self.name = name
        self._tasks = tasks
        self._frames = _Frames(frames.pop(), seed)
        self._of: Sequence[TaskTimes] = ()
        one_each = all(len(each.operators) == 1 for each in tasks)
        self.unit: Unit = "operator" if one_each else "segment"

    def program(self, plan: Plan, queue: int | None) -> Program:
        """Return what an executor does with the plan, cut as in the run.

        Raises
        ------
        SimulationError
            The run is of another plan.
        """
        ran = {operator for each in self._tasks for operator in each.operators}
        known: Mapping[tuple[str, tuple[str, ...]], TaskTimes] = {
            (each.resource, each.operators): each for each in self._tasks
        }
        made = program(as_run(plan, ran), unit=self.unit, queue=queue, moves=False)
        names = [(task.resource, task.operators) for task in made.tasks]
        if known.keys() == {*names}:
            self._of = [known[name] for name in names]
            return made
        raise SimulationError(
            f"{self.name} is of another plan than this one: its tasks are others; run this plan, "
            "as in `parapipe run PLAN --json`"
        )

    def took_s(self, task: int, frame: int) -> float:
        """Return the seconds of a task of the program in a frame."""
        return self._of[task].times_s[self._frames.of(frame)]

    def handover_s(self, task: int, frame: int) -> float:
        """Return the seconds that it was handed over in."""
        return self._of[task].handovers_s[self._frames.of(frame)]


@dataclass(slots=True)
class _Frames:
    """Which frame of the run a frame takes its times from."""

    count: int
    seed: int | None
    _drawn: list[int] = field(default_factory=list)
    _random: Random | None = None

    def of(self, frame: int) -> int:
        if self.seed is None:
            return frame % self.count
        self._random = self._random or Random(f"{self.seed} frames of a run")
        while len(self._drawn) <= frame:
            self._drawn.append(self._random.randrange(self.count))
        return self._drawn[frame]
