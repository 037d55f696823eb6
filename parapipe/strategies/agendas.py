"""What the plan has every processor do, less what has begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from parapipe.strategies.work import Job, Work

if TYPE_CHECKING:
    from parapipe.strategies.state import State

SPENT = 256  # so many jobs of a queue are forgotten at once


class Agendas:
    """Queues of jobs, in the plan's order.

    Parameters
    ----------
    state
        Says what has begun.
    """

    def __init__(self, work: Work, state: State) -> None:
        everyone = range(len(work.processors))
        self._work, self._state = work, state
        self._agendas = [work.agenda(p) for p in everyone]
        self._queues: list[list[Job]] = [[] for _ in everyone]
        self._at = [0 for _ in everyone]

    def next(self, processor: int) -> Job | None:
        """Return the first job of a processor that nobody has begun."""
        queue, at = self._queues[processor], self._at[processor]
        while (at < len(queue) or self._grow(processor)) and self._is_gone(queue[at]):
            at += 1
        if at > SPENT:
            del queue[:at]
            at = 0
        self._at[processor] = at
        if at == len(queue):
            return None
        return next(self._of(queue[at])) if self._state.is_split(queue[at].frame) else queue[at]

    def left(self, processor: int) -> Iterator[Job]:
        """Yield the jobs of a processor that nobody has begun."""
        self.next(processor)
        queue, at = self._queues[processor], self._at[processor]
        while at < len(queue) or self._grow(processor):
            if not self._is_gone(queue[at]):
                yield from self._of(queue[at])
            at += 1

    def _grow(self, processor: int) -> bool:
        """Put the plan's next job into a queue; return whether there is one."""
        more = next(self._agendas[processor], None)
        if more is None or self._is_behind_the_last(more):
            return False
        self._queues[processor].append(more)
        return True

    def _of(self, job: Job) -> Iterator[Job]:
        """Yield what is left of a job: of a split frame, its micro-batches."""
        if not self._state.is_split(job.frame):
            yield job
            return
        for each in self._state.jobs(job.task, job.frame):
            if not self._state.is_begun(each):
                yield each

    def _is_gone(self, job: Job) -> bool:
        frames = self._state.frames
        begun = job.frame in self._state.begun[job.task]
        return begun or (frames is not None and job.frame >= frames)

    def _is_behind_the_last(self, job: Job) -> bool:
        """Tell whether all that comes from a job on would be for frames that there are not."""
        frames = self._state.frames
        if frames is None:
            return False
        return job.frame + self._work.lag[job.task] >= frames + max(self._work.lag)
