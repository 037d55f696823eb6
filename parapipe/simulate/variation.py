"""Times of a simulation that vary: by chance, or as a run measured them.

So what slows the tasks of a frame together stays together. A task's hand-over is what its processor
was idle for before it though it had all it needed; it goes before the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from random import Random

from parapipe.errors import SimulationError
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.plan.sharing import as_run

DISTURBED = 2.0  # times as long, as with half of a processor


class Jitter:
    """Factors of one task's times, frame after frame.

    They are log-normal: positive, of mean 1 and the standard deviation asked for. A task's factors
    depend on its name and the seed alone, so runs that differ in queues or admission meet the same.
    """

    def __init__(self, share: float, seed: int, name: str) -> None:
        self._sigma = sqrt(log(1 + share * share))
        self._draw = _SampledSequence(f"{seed} {name}", self._factor)

    def of_frame(self, frame: int) -> float:
        """Return the factor of a frame."""
        return self._draw.of_frame(frame)

    def _factor(self, random: Random) -> float:
        return random.lognormvariate(-self._sigma * self._sigma / 2, self._sigma)


class _SampledSequence:
    """Numbers by frame that do not depend on when they are asked for."""

    def __init__(self, seed: str, draw: Callable[[Random], float]) -> None:
        self._random, self._draw = Random(seed), draw
        self._samples: list[float] = []

    def of_frame(self, frame: int) -> float:
        while len(self._samples) <= frame:
            self._samples.append(self._draw(self._random))
        return self._samples[frame]


@dataclass(frozen=True, slots=True)
class Luck:
    """What times are multiplied by.

    Parameters
    ----------
    jitter
        Standard deviation of the times of tasks and transfers, as a share of them.
    disturbed
        By a processor's name: share of the frames, drawn at random, in which another program takes
        half of it, so that its tasks take twice as long.
    seed
        Of both.
    """

    jitter: float = 0.0
    disturbed: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    _jitters: dict[str, Jitter] = field(default_factory=dict, repr=False)
    _programs: dict[str, _SampledSequence] = field(default_factory=dict, repr=False)

    @property
    def is_none(self) -> bool:
        """Whether all takes what was predicted."""
        return not self.jitter and not self.disturbed

    def of(self, name: str, frame: int) -> float:
        """Return the factor of what varies, by a name that nothing else has."""
        if not self.jitter:
            return 1.0
        if name not in self._jitters:
            self._jitters[name] = Jitter(self.jitter, self.seed, name)
        return self._jitters[name].of_frame(frame)

    def of_processor(self, processor: str, frame: int) -> float:
        """Return the factor of all that a processor does for a frame."""
        share = self.disturbed.get(processor, 0.0)
        if not share:
            return 1.0
        if processor not in self._programs:
            seed = f"{self.seed} other programs on {processor}"
            self._programs[processor] = _SampledSequence(seed, lambda random: random.random())
        return DISTURBED if self._programs[processor].of_frame(frame) < share else 1.0


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
        times_of: Mapping[tuple[str, tuple[str, ...]], TaskTimes] = {
            (each.resource, each.operators): each for each in self._tasks
        }
        result = program(as_run(plan, ran), unit=self.unit, queue=queue, moves=False)
        names = [(task.resource, task.operators) for task in result.tasks]
        if times_of.keys() == {*names}:
            self._of = [times_of[name] for name in names]
            return result
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
    _samples: list[int] = field(default_factory=list)
    _random: Random | None = None

    def of(self, frame: int) -> int:
        if self.seed is None:
            return frame % self.count
        self._random = self._random or Random(f"{self.seed} frames of a run")
        while len(self._samples) <= frame:
            self._samples.append(self._random.randrange(self.count))
        return self._samples[frame]
