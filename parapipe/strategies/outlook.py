"""When jobs begin and end if all goes on as the plan says, as fast as predicted or paced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from parapipe.strategies.state import State
from parapipe.strategies.work import Job


class Outlook:
    """What lies ahead at a moment if nobody leaves the plan any more.

    The plan's processor of a job first does what the plan puts before it; jobs wait for what they
    read and for room. What is not looked at (frames that are yet to be admitted, results that are
    yet to be taken) can only make jobs later: no time here is later than what would come of it.

    Parameters
    ----------
    paces
        By processor: how many times longer than predicted it takes; 1 if not given.
    """

    def __init__(self, state: State, paces: Sequence[float] = ()) -> None:
        self.state, self._work = state, state.work
        self._paces = paces or (1.0,) * len(state.running)
        self._free_s = [
            state.now_s if each is None else max(state.now_s, each.begin_s + pace * each.time_s)
            for each, pace in zip(state.running, self._paces, strict=True)
        ]
        self._end_s: dict[Job, float] = {}
        self._previous: dict[Job, Job | None] = {}
        everyone = range(len(state.running))
        self._agendas = [_with_previous(state.planned(p)) for p in everyone]

    @property
    def jobs(self) -> int:
        """So many have been looked at."""
        return len(self._end_s)

    def end_s(self, job: Job) -> float:
        """Return when a job that nobody has begun ends on the plan's processor."""
        left, opened = [job], set[Job]()
        while left:
            at = left[-1]
            if at in self._end_s:
                left.pop()
                continue
            opened.add(at)
            before = list(self._before(at))
            missing = [each for each in before if each not in self._end_s and each not in opened]
            left += missing
            if not missing:
                self._end_s[at] = max(self._times_s(at, before)) + self._time_s(at)
        return self._end_s[job]

    def begin_s(self, job: Job) -> float:
        """Return when it begins there."""
        return self.end_s(job) - self._time_s(job)

    def _time_s(self, job: Job) -> float:
        processor = self._work.planned(job)
        return self._paces[processor] * self.state.seconds(job, processor)

    def _times_s(self, job: Job, before: list[Job]) -> Iterator[float]:
        """Yield what a job's begin is not earlier than."""
        state, processor = self.state, self._work.planned(job)
        yield self._free_s[processor]
        # What waits for itself, since queues are too short, never ends.
        yield from (self._end_s.get(each, inf) for each in before)
        for tensor in self._work.reads[job.task]:
            maker = Job(self._work.tensors[tensor].producer, job.frame, job.micro)
            if not state.is_over(maker):
                source, end_s = self._made(maker)
                yield end_s + state.moved_s(tensor, job, source, processor)
            elif self._work.moves:
                yield state.there_s(tensor, job, processor)
        for reader in self._makes_room(job):
            if not state.is_over(reader):
                yield self._made(reader)[1]

    def _made(self, job: Job) -> tuple[int, float]:
        """Return where a job that is not over ends, and when."""
        for processor, each in enumerate(self.state.running):
            if each is not None and job in each.jobs:
                return processor, self._free_s[processor]
        return self._work.planned(job), self._end_s.get(job, inf)

    def _makes_room(self, job: Job) -> Iterator[Job]:
        for task, slots in self._work.waits_for_room[job.task]:
            if job.frame >= slots:
                yield from self.state.jobs(task, job.frame - slots)

    def _before(self, job: Job) -> Iterator[Job]:
        """Yield what nobody has begun and what a job waits for in the plan."""
        producers = (Job(task, job.frame, job.micro) for task in self._work.producers[job.task])
        for each in (*producers, *self._makes_room(job)):
            if not self.state.is_begun(each):
                yield each
        if job not in self._previous:
            for each, previous in self._agendas[self._work.planned(job)]:
                self._previous[each] = previous
                if each == job:
                    break
        if (last := self._previous[job]) is not None:
            yield last


def _with_previous(jobs: Iterator[Job]) -> Iterator[tuple[Job, Job | None]]:
    """Yield jobs, and with each the one before it."""
    previous: Job | None = None
    for job in jobs:
        yield job, previous
        previous = job
