"""The strategy `barriers`: all processors finish a level of the network before the next begins.

As a runtime does that runs operator by operator: it is there to compare others with it. A task goes
to the free processor that should end it first.
"""

from __future__ import annotations

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


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
            if job in state.ready_by and (best := self._best(job, state)) is not None:
                state.execute(job, on=best)

    def _best(self, job: Job, state: State) -> int | None:
        """Return the free processor that would end a job first."""
        able = (p for p in state.free if self._work.runs(job.task, p))
        return min(able, key=lambda p: (state.end_s(job, p), p), default=None)

    def _is_finished(self, state: State) -> bool:
        return all(state.is_over(Job(task, self._frame)) for task in self._levels[self._level])
