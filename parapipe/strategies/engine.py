"""The engine: keeps dependencies and memory, and asks a strategy what free processors do.

It knows no clock: who runs jobs, for real or in a simulation, tells it what has happened and when.
A job waits for a number of things, and is ready when all have happened: that is all that is counted
while frames are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TypeAlias

from parapipe.errors import StrategyError
from parapipe.strategies.failures import FAILURES, begin_call, describe_error, end_call
from parapipe.strategies.state import State
from parapipe.strategies.strategy import Strategy
from parapipe.strategies.work import Job, Place, Work

# Seconds that a tensor of a frame takes from one processor to another.
Moves: TypeAlias = Callable[[int, int, int, int], float]


class Engine:
    """Frames on their way, with a strategy that decides.

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
        What moving tensors of whole frames really takes; what is predicted if not given.
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
        self.name = name
        self._work, self._moves = work, moves
        self._results_taken = 0
        self._results = dict(work.results)
        self._first = tuple(sorted(work.first))
        begin_call(name, "__init__")
        try:
            self._schedule = strategy(work).schedule
        except FAILURES as error:
            raise self._failure(error) from error
        finally:
            end_call()

    def admit(self, now_s: float) -> None:
        """Say that the next frame has been admitted."""
        state, frame = self.state, self.state.admitted
        state.now_s = now_s
        state.admitted += 1
        if state.frames is None or frame < state.frames:
            state.waiting[frame] = None
        for task in self._first:
            self._count_down(Job(task, frame), None)

    def decide(self, now_s: float) -> Sequence[int]:
        """Ask the strategy until it gives nobody anything more; return who was given something.

        Raises
        ------
        StrategyError
            If the strategy fails, or gives a processor what it cannot do now.
        """
        state = self.state
        state.now_s = now_s
        state.ask_s = inf
        count_before = -1
        try:
            while state.free and state.ready_by and len(state.assigned) > count_before:
                count_before = len(state.assigned)
                self._schedule(state)
            if state.now_s != now_s:
                raise StrategyError("it has changed state.now_s, which is the engine's")
        except FAILURES as error:
            raise self._failure(error) from error
        if not state.assigned:
            return ()
        processors, state.assigned = state.assigned, []
        return processors

    def begin_s(self, processor: int) -> float:
        """Return when a processor begins what it was just given: once all is there."""
        running = self.state.running[processor]
        assert running is not None
        came_s = (each for job in running.jobs for each in self._arrivals_s(job, processor))
        return max(came_s, default=self.state.now_s) if self._work.moves else self.state.now_s

    def _arrivals_s(self, job: Job, processor: int) -> Iterator[float]:
        """Yield when what a job reads really comes to the processor that takes it."""
        state = self.state
        for tensor in self._work.reads[job.task]:
            place = state.places.get((tensor, job.frame, job.micro))
            if place is None or place.processor == processor:
                continue
            if processor not in place.came_s:
                end_call = place.processor, processor
                moved_s = state.moved_s(tensor, job, *end_call)
                frame_s = self._work.tensors[tensor].moved_s[end_call[0]][end_call[1]]
                if self._moves and frame_s:
                    moved_s *= self._moves(tensor, job.frame, *end_call) / frame_s
                sent_s = state.sent_s(tensor, job, processor)
                there_s = state.there_s(tensor, job, processor)
                place.came_s[processor] = there_s, max(state.now_s, sent_s + moved_s)
            yield max(state.now_s, place.came_s[processor][1])

    def end(self, processor: int, now_s: float) -> None:
        """Say that a processor has ended what it was doing."""
        state = self.state
        running = state.running[processor]
        assert running is not None
        state.now_s = now_s
        state.running[processor] = None
        state.free = (processor, *state.free)
        state.paces[processor].add(now_s - running.begin_s, running.end_s - running.begin_s)
        for job in running.jobs:
            self._end_job(job, processor, now_s)
        state.last[processor] = running.jobs[-1]

    def _end_job(self, job: Job, processor: int, now_s: float) -> None:
        work, state = self._work, self.state
        task, frame, micro = job
        if work.moves:
            self._update_places(job, processor, now_s)
        for reader in work.readers[task]:
            self._count_down(Job(reader, frame, micro), processor)
        if state.is_split(frame):
            ended, everyone = state.partly[1], tuple(state.jobs(task, frame))
            ended.add(job)
            if not ended.issuperset(everyone):
                return
            ended.difference_update(everyone)
        frames = state.ended[task]
        before = frames.below
        frames.add(frame)
        for other, slots in work.holds[task]:
            for each in range(before, frames.below):
                self._count_down_all(other, each + slots, processor)

    def _update_places(self, job: Job, processor: int, now_s: float) -> None:
        """Note where what a job has made is, and forget what nobody will read again."""
        work, places = self._work, self.state.places
        task, frame, micro = job
        for tensor in work.makes[task]:
            places[tensor, frame, micro] = Place(processor, now_s, len(work.read_by[tensor]))
        for tensor in work.reads[task]:
            place = places[tensor, frame, micro]
            place.readers -= 1
            if not place.readers:
                del places[tensor, frame, micro]

    def give_up(self, processor: int) -> None:
        """Say that a processor has ended a job in vain: nobody reads what it should have made."""
        self.state.running[processor] = None
        self.state.free = (*self.state.free, processor)

    def take_results(self, now_s: float) -> None:
        """Say that the results of the next frame have been taken."""
        self.state.now_s = now_s
        self._results_taken += 1
        for task, slots in self._work.results:
            self._count_down_all(task, self._results_taken - 1 + slots, None)

    def end_before(self, frames: int) -> None:
        """Say how many frames there are: no other one begins."""
        state = self.state
        state.frames = frames if state.frames is None else min(frames, state.frames)
        for job in [each for each in state.ready_by if each.frame >= state.frames]:
            del state.ready_by[job], state.ready_s[job]
        for frame in [each for each in state.waiting if each >= state.frames]:
            del state.waiting[frame]

    @property
    def is_all_begun(self) -> bool:
        """Whether there is nothing left that could begin."""
        frames = self.state.frames
        return frames is not None and all(each.below >= frames for each in self.state.begun)

    def missing(self, job: Job) -> Iterator[str]:
        """Yield what a job that is not ready waits for."""
        tasks, state = self._work.tasks, self.state
        if job.task in self._work.first and job.frame >= state.admitted:
            yield "for the source"
        for task in self._work.producers[job.task]:
            if not state.is_over(Job(task, job.frame, job.micro)):
                yield f"for {tasks[task]}"
        for task, slots in self._work.waits_for_room[job.task]:
            if job.frame - slots >= state.ended[task].below:
                yield f"for room before {tasks[task]}"
        slots = self._results.get(job.task, job.frame + 1)
        if job.frame - slots >= self._results_taken:
            yield "for room before results"

    def _count_down_all(self, task: int, frame: int, by: int | None) -> None:
        """Count one thing less that a task waits for with a frame."""
        if not self.state.is_split(frame):
            self._count_down(Job(task, frame), by)
            return
        for job in self.state.jobs(task, frame):
            self._count_down(job, by)

    def _count_down(self, job: Job, by: int | None) -> None:
        """Count one thing less that a job waits for; it is ready if that was the last."""
        state = self.state
        left = state.left.pop(job, 0) or state.waits_of(job)
        if left > 1:
            state.left[job] = left - 1
        elif job in state.ahead:
            state.ahead.remove(job)
        elif state.frames is None or job.frame < state.frames:
            state.ready_by[job] = by
            state.ready_s[job] = state.now_s

    def _failure(self, error: BaseException) -> StrategyError:
        """Return what is told of a strategy that fails."""
        if isinstance(error, StrategyError):
            return StrategyError(f"strategy '{self.name}': {error}")
        return StrategyError(f"strategy '{self.name}' has failed: {describe_error(error)}")
