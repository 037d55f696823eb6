"""The strategy `ready-pool`: one pool of ready jobs that all processors take from.

The engine of ASPEN (Park et al., NeurIPS 2023) on tasks in place of tiles: the pool has a row for
each processor, with what it has made ready. A processor goes on with a reader of what it has just
made, which lies in its cache; else it takes from its own row, else from all. Frames go first that
came first, and within a frame the tasks that are least deep in the network. No plan is looked at,
and no predicted time.
"""

from __future__ import annotations

from functools import partial

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


class ReadyPool:
    """Takes what is at hand, else what the processor has made ready, else anything."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self._work = work

    def schedule(self, state: State) -> None:
        """Give each free processor a ready job if it runs any."""
        for processor in state.free:
            pool = [job for job in state.ready_by if self._work.runs(job.task, processor)]
            if pool:
                place = partial(self._place, processor, state)
                state.execute(min(pool, key=place) if len(pool) > 1 else pool[0], on=processor)

    def _place(self, processor: int, state: State, job: Job) -> tuple[bool | int, ...]:
        last, work = state.last[processor], self._work
        own = state.ready_by[job] == processor
        child = own and last and last[1:] == job[1:] and last.task in work.producers[job.task]
        return not child, not own, job.frame, work.depth[job.task], job.task, job.micro
