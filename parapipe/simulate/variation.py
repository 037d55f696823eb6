"""Times of a simulation that differ from those predicted: by chance, as measured, by contention.

By chance or as a run measured them, what slows the tasks of a frame together stays together. A
task's hand-over is what its processor was idle for before it though it had all it needed; it goes
before the task. Contention: processors that run at the same time share the memory, streams share a
processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from random import Random
from typing import Generic, TypeVar

from parapipe.cost.co_run import CoRunLaw
from parapipe.errors import SimulationError
from parapipe.mappings.frame_replay import RunningTask
from parapipe.plan.co_run import slowdowns_of
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.plan.sharing import executed_plan
from parapipe.platform.platform import Platform

Number = TypeVar("Number", int, float)
DISTURBED = 2.0  # times as long, as with half of a processor


class _SampledSequence(Generic[Number]):
    """Numbers by frame that do not depend on when they are asked for."""

    def __init__(self, seed: str, sample: Callable[[Random], Number]) -> None:
        self._random = Random(seed)
        self._sample: Callable[[Random], Number] = sample
        self._samples: list[Number] = []

    def of_frame(self, frame: int) -> Number:
        """Return the number of a frame."""
        while len(self._samples) <= frame:
            self._samples.append(self._sample(self._random))
        return self._samples[frame]


def jitter_factors(share: float, seed: int, name: str) -> _SampledSequence[float]:
    """Return factors of one task's times, frame after frame.

    They are log-normal: positive, of mean 1 and the standard deviation asked for. A task's factors
    depend on its name and the seed alone, so runs that differ in queues or admission meet the same.
    """
    sigma = sqrt(log(1 + share * share))
    return _SampledSequence(
        f"{seed} {name}", lambda random: random.lognormvariate(-sigma * sigma / 2, sigma)
    )


@dataclass(frozen=True, slots=True)
class RandomFactors:
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
    _jitters: dict[str, _SampledSequence[float]] = field(default_factory=dict, repr=False)
    _programs: dict[str, _SampledSequence[float]] = field(default_factory=dict, repr=False)

    @property
    def is_none(self) -> bool:
        """Whether all takes what was predicted."""
        return not self.jitter and not self.disturbed

    def of(self, name: str, frame: int) -> float:
        """Return the factor of what varies, by a name that nothing else has."""
        if not self.jitter:
            return 1.0
        if name not in self._jitters:
            self._jitters[name] = jitter_factors(self.jitter, self.seed, name)
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
        count = frames.pop()
        sampled = _SampledSequence(
            f"{seed} frames of a run", lambda random: random.randrange(count)
        )
        self._frame_of = sampled.of_frame if seed is not None else lambda frame: frame % count
        self._times: Sequence[TaskTimes] = ()
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
        result = program(executed_plan(plan, ran), unit=self.unit, queue=queue, moves=False)
        names = [(task.resource, task.operators) for task in result.tasks]
        if times_of.keys() == {*names}:
            self._times = [times_of[name] for name in names]
            return result
        raise SimulationError(
            f"{self.name} is of another plan than this one: its tasks are others; run this plan, "
            "as in `parapipe run PLAN --json`"
        )

    def took_s(self, task: int, frame: int) -> float:
        """Return the seconds of a task of the program in a frame."""
        return self._times[task].times_s[self._frame_of(frame)]

    def handover_s(self, task: int, frame: int) -> float:
        """Return the seconds that it was handed over in."""
        return self._times[task].handovers_s[self._frame_of(frame)]


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
    law
        How much processors slow each other down; None if not at all.
    streams
        How much streams slow each other down, by their names; those of other processors have none.
    contention
        What the law was made of: lengthening of a task, as a share of its time, while others
        together move as many bytes as the memory can; 0 where another law holds.
    """

    law: CoRunLaw | None
    streams: Mapping[str, StreamLaw] = field(default_factory=dict)
    contention: float = 0.0


class Contention:
    """How much longer tasks take that run at the same time.

    Processors slow each other down by the memory's law. A transfer neither slows tasks nor is
    slowed. On a stream, a task takes less while other streams of the processor do nothing.
    """

    def __init__(self, plan: Plan, program: Program, memory: Memory) -> None:
        self._others = slowdowns_of(plan, program, memory.law) if memory.law else None
        self._laws = [memory.streams.get(task.resource) for task in program.tasks]

    def slowdown(self, running: Sequence[RunningTask]) -> list[float]:
        """Return by how many times each of the running tasks takes longer."""
        factors = [*self._others.of(running)] if self._others else [1.0] * len(running)
        at_once = Counter(law.of for v, _ in running if (law := self._laws[v]))
        for i, (v, _) in enumerate(running):
            if law := self._laws[v]:
                factors[i] *= law.share[at_once[law.of] - 1]
        return factors


def stream_laws(plan: Plan, platform: Platform) -> dict[str, StreamLaw]:
    """Return the laws of a plan's streams, by their names.

    Those of a CPU have none: each has its share of the threads, whatever the others do.

    Raises
    ------
    SimulationError
        If the platform does not say what so many streams of a processor take.
    """
    streams_of_processor = {each.name: each.streams for each in platform.processors}
    laws: dict[str, StreamLaw] = {}
    for each in plan.processors:
        if each.stream is None or each.kind == "cpu":
            continue
        streams, count = streams_of_processor.get(each.stream.of), each.stream.count
        if streams is None or len(streams.slowdown) < count:
            raise SimulationError(
                f"platform '{platform.name}' does not say what {count} streams of "
                f"'{each.stream.of}' take: give the plan's own platform by `platform`"
            )
        factors = streams.slowdown[:count]
        laws[each.name] = StreamLaw(each.stream.of, tuple(x / factors[-1] for x in factors))
    return laws
