"""The engine: keeps dependencies and memory, and asks a strategy what a free processor does next.

It knows no clock: who runs jobs, for real or in a simulation, tells it what has happened and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from parapipe.errors import StrategyError
from parapipe.strategies.state import Place, Running, State
from parapipe.strategies.strategy import Strategy
from parapipe.strategies.work import Job, Work

Answer = TypeVar("Answer")
# Seconds that a tensor of a frame takes from one processor to another.
Moves: TypeAlias = Callable[[int, int, int, int], float]


class Taken(NamedTuple):
    """A job that a processor has taken, and when it begins: once all that it reads has come."""

    job: Job
    begin_s: float


class Engine:
    """Frames on their way, with a strategy that chooses.

    Parameters
    ----------
    work
        What is to be done for every frame.
    strategy
        Makes the strategy.
    name
        What messages call it.
    frames
        How many there are, if that is known.
    moves
        What moving tensors really takes; what is predicted if not given.
    """

    def __init__(
        self,
        work: Work,
        strategy: type[Strategy],
        name: str,
        frames: int | None = None,
        moves: Moves | None = None,
    ) -> None:
        self.state = State(work, follows_plan=strategy.follows_plan, frames=frames)
        self._work, self._name, self._moves = work, name, moves
        self._strategy = self._asked(lambda: strategy(work))
        self._admitted = 0
        self._taken = 0
        self._results = dict(work.results)

    def admit(self, now_s: float) -> None:
        """Say that the next frame has been admitted."""
        self.state.now_s = now_s
        self._admitted += 1
        self._look((Job(task, self._admitted - 1) for task in sorted(self._work.first)), None)

    def take(self, processor: int, now_s: float) -> Taken | None:
        """Return what a free processor does next; None if the strategy lets it wait.

        Raises
        ------
        StrategyError
            If the strategy fails, or answers with what the processor cannot do now.
        """
        state = self.state
        state.now_s = now_s
        job: object = self._asked(lambda: self._strategy.choose(processor, state))
        if job is None:
            return None
        able = isinstance(job, Job) and job in state.ready and self._work.runs(job.task, processor)
        if not isinstance(job, Job) or not able:
            raise StrategyError(
                f"strategy '{self._name}' gives '{self._work.processors[processor]}' a job that it "
                f"cannot do now ({job}): return one of state.ready that the processor runs"
            )
        begin_s = state.begin_s(job, processor)
        end_s = begin_s + self._work.time_s[job.task][processor]
        state.running[processor] = Running(job, begin_s, end_s)
        really_s = max(self._came_s(job, processor), default=now_s)
        del state.ready[job]
        state.begun[job.task].add(job.frame)
        return Taken(job, really_s)

    def _came_s(self, job: Job, processor: int) -> Iterator[float]:
        """Yield when what a job reads really comes to the processor that takes it."""
        state = self.state
        for tensor in self._work.reads[job.task]:
            place = state.places[tensor, job.frame]
            if processor not in place.came_s:
                ends = place.processor, processor
                predicted_s = self._work.tensors[tensor].moved_s[ends[0]][ends[1]]
                moved_s = self._moves(tensor, job.frame, *ends) if self._moves else predicted_s
                sent_s = state.sent_s(tensor, job, processor)
                place.there_s[processor] = state.there_s(tensor, job, processor)
                place.came_s[processor] = max(state.now_s, sent_s + moved_s)
            yield max(state.now_s, place.came_s[processor])

    def end(self, processor: int, now_s: float) -> None:
        """Say that a processor has ended what it was doing."""
        state, work = self.state, self._work
        running = state.running[processor]
        assert running is not None
        job = running.job
        state.now_s = now_s
        state.running[processor] = None
        state.last[processor] = job
        ended = state.ended[job.task]
        before = ended.below
        ended.add(job.frame)
        for tensor in work.makes[job.task]:
            state.places[tensor, job.frame] = Place(
                processor,
                now_s,
                {processor: now_s},
                {processor: now_s},
                len(work.read_by[tensor]),
            )
        for tensor in work.reads[job.task]:
            place = state.places[tensor, job.frame]
            place.readers -= 1
            if not place.readers:
                del state.places[tensor, job.frame]
        self._look((Job(task, job.frame) for task in work.readers[job.task]), processor)
        for frame in range(before, ended.below):
            freed = (Job(task, frame + slots) for task, slots in work.holds[job.task])
            self._look(freed, processor)

    def give_up(self, processor: int) -> None:
        """Say that a processor has ended a job in vain: nobody reads what it should have made."""
        self.state.running[processor] = None

    def take_results(self, now_s: float) -> None:
        """Say that the results of the next frame have been taken."""
        self.state.now_s = now_s
        self._taken += 1
        makers = self._results.items()
        self._look((Job(task, self._taken - 1 + slots) for task, slots in makers), None)

    def end_before(self, frames: int) -> None:
        """Say how many frames there are: no other one begins."""
        state = self.state
        state.frames = frames if state.frames is None else min(frames, state.frames)
        for job in [each for each in state.ready if each.frame >= state.frames]:
            del state.ready[job]

    @property
    def is_all_begun(self) -> bool:
        """Whether there is nothing left that could begin."""
        frames = self.state.frames
        return frames is not None and all(each.below >= frames for each in self.state.begun)

    def missing(self, job: Job) -> Iterator[str]:
        """Yield what a job that is not ready waits for."""
        tasks = self._work.tasks
        if job.task in self._work.first and job.frame >= self._admitted:
            yield "for the source"
        for task in self._work.producers[job.task]:
            if job.frame not in self.state.ended[task]:
                yield f"for {tasks[task]}"
        for task, slots in self._work.waits_for_room[job.task]:
            if job.frame - slots >= self.state.ended[task].below:
                yield f"for room before {tasks[task]}"
        slots = self._results.get(job.task, job.frame + 1)
        if job.frame - slots >= self._taken:
            yield "for room before results"

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Return what a strategy answers; it may be a user's, and fail in any way."""
        try:
            return ask()
        except Exception as error:
            raise StrategyError(
                f"strategy '{self._name}' has failed: {type(error).__name__}: {error}"
            ) from error

    def _look(self, jobs: Iterable[Job], by: int | None) -> None:
        """Find out which jobs are ready now."""
        state = self.state
        for job in jobs:
            known = job in state.ready or state.is_begun(job)
            past = state.frames is not None and job.frame >= state.frames
            if not known and not past and next(self.missing(job), None) is None:
                state.ready[job] = by
