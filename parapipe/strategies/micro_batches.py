"""The strategy `micro-batches`: halves of a batch overlap, where the forecast is better.

Dual-batch overlap, as in DynaFlow: while one processor works on one half, another one works on the
other. That pays where whole batches would leave a processor idle, and all that is on its way is
predicted to end sooner. Where as many batches wait as processors are free, they overlap anyway:
then a batch is split only if its halves together are predicted to take less work than the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


def forecast_s(state: State, frame: int, sizes: Sequence[int]) -> float:
    """Return when all admitted frames should have ended, one of them split into sizes.

    A job goes to the processor that should end it first, jobs one after the other as they become
    ready: list scheduling with predicted times. Room is not looked at.

    Parameters
    ----------
    frame
        One of `state.waiting`.
    """
    return _Forecast(state, frame, sizes).end_s()


class _Forecast:
    def __init__(self, state: State, frame: int, sizes: Sequence[int]) -> None:
        self._state, self._work, self._split = state, state.work, (frame, tuple(sizes))
        self._free_s = [state.free_s(p) for p in range(len(state.running))]
        self._result_at: dict[
            Job, tuple[int, float]
        ] = {}  # what is not over: where, and when it is
        for p, running in enumerate(state.running):
            if running is not None:
                self._result_at.update(dict.fromkeys(running.jobs, (p, self._free_s[p])))

    def end_s(self) -> float:
        """Run all that has not begun; return when the last job ends."""
        left, ready = self._waiting_counts()
        while ready:
            _, _, _, job = heappop(ready)
            self._assign(job)
            for reader in self._work.readers[job.task]:
                behind = Job(reader, job.frame, job.micro)
                left[behind] -= 1
                if not left[behind]:
                    self._push_ready(ready, behind)
        return max(self._free_s)

    def _waiting_counts(self) -> tuple[dict[Job, int], list[tuple[float, int, int, Job]]]:
        """Return how many producers jobs wait for that have not begun, and those without any."""
        left: dict[Job, int] = {}
        ready: list[tuple[float, int, int, Job]] = []
        for job in self._jobs_left():
            left[job] = sum(not self._is_begun(each) for each in self._producers(job))
            if not left[job]:
                self._push_ready(ready, job)
        return left, ready

    def _jobs_left(self) -> Iterator[Job]:
        """Yield all jobs of admitted frames that have not begun."""
        first = min(each.below for each in self._state.begun)
        for frame in range(first, self._state.admitted):
            for task in range(len(self._work.tasks)):
                for micro in range(len(self._sizes(frame))):
                    if not self._is_begun(job := Job(task, frame, micro)):
                        yield job

    def _assign(self, job: Job) -> None:
        size = self._sizes(job.frame)[job.micro]
        end_s, best = min(
            (
                max(self._free_s[p], self._arrival_s(job, p))
                + self._work.seconds(job.task, p, size),
                p,
            )
            for p in range(len(self._free_s))
        )
        self._free_s[best] = end_s
        self._result_at[job] = best, end_s

    def _push_ready(self, ready: list[tuple[float, int, int, Job]], job: Job) -> None:
        when_s = max(
            (self._result_at[j][1] for j in self._producers(job) if j in self._result_at), default=0
        )
        heappush(ready, (when_s, job.frame, self._work.depth[job.task], job))

    def _arrival_s(self, job: Job, processor: int) -> float:
        """Return when all that a job reads is at a processor."""
        there_s = self._state.now_s
        for tensor in self._work.reads[job.task]:
            source = self._result_at.get(
                Job(self._work.tensors[tensor].producer, job.frame, job.micro)
            )
            if source is not None:
                share = self._sizes(job.frame)[job.micro] / self._work.batch
                moved_s = share * self._work.tensors[tensor].moved_s[source[0]][processor]
                there_s = max(there_s, source[1] + moved_s)
        return there_s

    def _producers(self, job: Job) -> Iterator[Job]:
        return (Job(u, job.frame, job.micro) for u in self._work.producers[job.task])

    def _is_begun(self, job: Job) -> bool:
        return job.frame != self._split[0] and self._state.is_begun(job)

    def _sizes(self, frame: int) -> tuple[int, ...]:
        return self._split[1] if frame == self._split[0] else self._state.sizes(frame)


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
        splits = ([self._work.batch], sizes)
        if idle:
            unsplit_s, split_s = (forecast_s(state, frame, each) - state.now_s for each in splits)
        else:
            unsplit_s, split_s = (self._work.least_s(each) for each in splits)
        return split_s < (1 - WORTH) * unsplit_s

    def _end_s(self, job: Job, processor: int, state: State) -> float:
        begin_s = max(state.free_s(processor), state.begin_s(job, processor))
        return begin_s + state.seconds(job, processor)
