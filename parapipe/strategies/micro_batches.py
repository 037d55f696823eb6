"""The strategy `micro-batches`: halves of a batch overlap, where that is predicted to pay.

Dual-batch overlap, as in DynaFlow: while one processor works on one half, another one works on the
other. That pays where whole batches would leave a processor idle, and all that is on its way is
predicted to end sooner. Where as many batches wait as processors are free, they overlap anyway:
then a batch is split only if its halves together are predicted to take less work than the whole.
"""

from __future__ import annotations

from parapipe.strategies.forecast import forecast_s
from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work

WORTH = 0.03  # of the time that is left, before a batch is split: predictions are not exact


class MicroBatches:
    """Splits a batch where it pays; a job goes to the processor that should end it first."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self._work, self._splits = work, self.splits(work.batch)

    @staticmethod
    def splits(batch: int) -> list[list[int]]:
        """Return the halves of a batch."""
        return [[batch - batch // 2, batch // 2]] if batch > 1 else []

    def schedule(self, state: State) -> None:
        """Split batches that wait where that pays; give free processors what they do best."""
        idle = len(state.free) > len(state.waiting)
        for frame in tuple(state.waiting):
            if pay := [each for each in self._splits if self._pays(each, frame, state, idle=idle)]:
                state.split(pay[0], frame)
        for job in sorted(state.ready(), key=lambda job: (job.frame, self._work.depth[job.task])):
            best = min(range(len(state.running)), key=lambda p: self._end_s(job, p, state))
            if best in state.free:
                state.execute(job, on=best)

    def _pays(self, sizes: list[int], frame: int, state: State, *, idle: bool) -> bool:
        ways = ([self._work.batch], sizes)
        if idle:
            whole_s, split_s = (forecast_s(state, frame, each) - state.now_s for each in ways)
        else:
            whole_s, split_s = (self._work.least_s(each) for each in ways)
        return split_s < (1 - WORTH) * whole_s

    def _end_s(self, job: Job, processor: int, state: State) -> float:
        begin_s = max(state.free_s(processor), state.begin_s(job, processor))
        return begin_s + state.seconds(job, processor)
