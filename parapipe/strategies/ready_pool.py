"""The strategy `ready-pool`: one pool of ready jobs that all processors take from.

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


class ReadyPool:
    """Takes what is at hand, else what the processor has made ready, else anything."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self._work = work

    def schedule(self, state: State) -> None:
        """Give each free processor a ready job if it runs any."""
        runs, ready_by = self._work.runs, state.ready_by
        for processor in state.free:
            pool = self._children(processor, state) or [
                job for job in ready_by if runs(job.task, processor)
            ]
            if pool:
                place = partial(self._place, processor, state)
                state.execute(min(pool, key=place) if len(pool) > 1 else pool[0], on=processor)

    def _children(self, processor: int, state: State) -> Sequence[Job]:
        """Return what reads what a processor has made last, and is ready by it."""
        if (last := state.last[processor]) is None:
            return ()
        return [
            job
            for reader in self._work.readers[last.task]
            if state.ready_by.get(job := Job(reader, last.frame, last.micro)) == processor
            and self._work.runs(reader, processor)
        ]

    def _place(self, processor: int, state: State, job: Job) -> tuple[bool | int, ...]:
        own = state.ready_by[job] == processor
        return not own, job.frame, self._work.depth[job.task], job.task, job.micro
