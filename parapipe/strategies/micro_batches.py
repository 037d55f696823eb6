"""The strategy `micro-batches`: halves of a batch overlap, where that is predicted to pay.

Dual-batch overlap, as in DynaFlow: while one processor works on one half, another one works on the
other. But halves together may take longer than the whole, and where frames wait already, there is
no gain: so each batch is split only if all that is on its way is predicted to end sooner.
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
        """Split batches that wait or let them be, and give free processors what they do best."""
        for frame in tuple(state.waiting):
            whole_s = forecast_s(state, frame, [self._work.batch])
            worth_s = whole_s - WORTH * (whole_s - state.now_s)
            pay = [sizes for sizes in self._splits if forecast_s(state, frame, sizes) < worth_s]
            state.split(pay[0] if pay else [self._work.batch], frame)
        for job in sorted(state.ready(), key=lambda job: (job.frame, self._work.depth[job.task])):
            best = min(range(len(state.running)), key=lambda p: self._end_s(job, p, state))
            if best in state.free:
                state.execute(job, on=best)

    def _end_s(self, job: Job, processor: int, state: State) -> float:
        begin_s = max(state.free_s(processor), state.begin_s(job, processor))
        return begin_s + state.seconds(job, processor)
