"""The strategies `plan`, `barriers` and `ready-pool`, which choose among ready jobs by order.

As a runtime does that runs operator by operator: it is there to compare others with it. A task goes
to the free processor that should end it first.

The engine of ASPEN (Park et al., NeurIPS 2023) on tasks in place of tiles: the pool has a row for
each processor, with what it has made ready. A processor goes on with a reader of what it has just
made, which lies in its cache; else it takes from its own row, else from all. Frames go first that
came first, and within a frame the tasks that are least deep in the network. No plan is looked at,
and no predicted time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


class Follow:
    """Each processor takes what the plan has it do next, and waits until that may begin."""

    follows_plan = True

    def __init__(self, work: Work) -> None:
        del work

    def schedule(self, state: State) -> None:
        """Give each free processor the plan's next job if it is ready."""
        for processor in state.free:
            job = state.planned_next(processor)
            if job in state.ready_by:
                state.execute(job, on=processor)


class Barriers:
    """One frame after the other, and of a frame one level after the other."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self._work = work
        self._levels = [
            [task for task, depth in enumerate(work.depth) if depth == level]
            for level in range(max(work.depth) + 1)
        ]
        self._frame = self._level = 0

    def schedule(self, state: State) -> None:
        """Give ready jobs of the level each to the free processor that would end it first."""
        while self._is_finished(state):
            self._level += 1
            if self._level == len(self._levels):
                self._frame, self._level = self._frame + 1, 0
        for task in self._levels[self._level]:
            job = Job(task, self._frame)
            if job in state.ready_by and (best := self._earliest_processor(job, state)) is not None:
                state.execute(job, on=best)

    def _earliest_processor(self, job: Job, state: State) -> int | None:
        """Return the free processor that would end a job first."""
        able = (p for p in state.free if self._work.runs(job.task, p))
        return min(able, key=lambda p: (state.end_s(job, p), p), default=None)

    def _is_finished(self, state: State) -> bool:
        return all(state.is_over(Job(task, self._frame)) for task in self._levels[self._level])


class ReadyPool:
    """Takes what is at hand, else what the processor has made ready, else anything."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self._work = work

    def schedule(self, state: State) -> None:
        """Give each free processor a ready job if it runs any."""
        runs, ready_by = self._work.runs, state.ready_by
        for processor in state.free:
            pool = self._readers_of_last(processor, state) or [
                job for job in ready_by if runs(job.task, processor)
            ]
            if pool:
                place = partial(self._priority, processor, state)
                state.execute(min(pool, key=place) if len(pool) > 1 else pool[0], on=processor)

    def _readers_of_last(self, processor: int, state: State) -> Sequence[Job]:
        """Return what reads what a processor has made last, and is ready by it."""
        if (last := state.last[processor]) is None:
            return ()
        return [
            job
            for reader in self._work.readers[last.task]
            if state.ready_by.get(job := Job(reader, last.frame, last.micro)) == processor
            and self._work.runs(reader, processor)
        ]

    def _priority(self, processor: int, state: State, job: Job) -> tuple[bool | int, ...]:
        own = state.ready_by[job] == processor
        return not own, job.frame, self._work.depth[job.task], job.task, job.micro
