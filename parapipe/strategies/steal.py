"""The strategy `steal`: follows the plan, but who would wait takes ready work of others.

A job is taken only if

- it ends before the processor's own next job in the plan could begin, and
- what it makes is, wherever the plan reads it, sooner than from the processor that should run it,

by predicted times, times how processors keep to them at present: one that has taken twice what was
predicted for about its last frame is expected to go on so. If all takes what was predicted, no job
ends later than in the plan.

What thefts have cost in fact is counted: how much longer than without it the thief's own next job
waited, or those that read what was made. Nothing is taken while that is more than a share of the
time since the start. So, whatever times are, no job ends later than if the plan was followed by
more than this share, and a job of each processor. (If transfers take what was predicted, and what
is taken would not have taken less than predicted where the plan has it.)

A job may also be *overdue*: it has taken much longer than predicted by now, since another program
has its processor or a clock has dropped. It is then expected to take as long again. Whoever waits
for it does meanwhile what is ready and should end by then: its own later jobs, and those of that
processor that would end later there. For this, no plan is looked at ahead: it is quick enough for
jobs of a tenth of a millisecond. While the job that is waited for is not overdue, the strategy is
asked again when it would be.

Looking ahead takes time, too, which is estimated by the number of jobs that are looked at. What a
theft should gain pays for the look before it, and for no other one. Nothing is looked at while what
is not paid for is more than a share of the time since the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from math import inf
from typing import NamedTuple

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Running, Work


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
        self._previous: dict[Job | None, Job | None] = {}
        everyone = range(len(state.running))
        self._agendas = [pairwise(chain([None], state.planned(p))) for p in everyone]

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
            before = list(self._predecessors(at))
            missing = [each for each in before if each not in self._end_s and each not in opened]
            left += missing
            if not missing:
                self._end_s[at] = max(self._lower_bounds_s(at, before)) + self._time_s(at)
        return self._end_s[job]

    def begin_s(self, job: Job) -> float:
        """Return when it begins there."""
        return self.end_s(job) - self._time_s(job)

    def _time_s(self, job: Job) -> float:
        processor = self._work.planned(job)
        return self._paces[processor] * self.state.seconds(job, processor)

    def _lower_bounds_s(self, job: Job, before: list[Job]) -> Iterator[float]:
        """Yield what a job's begin is not earlier than."""
        state, processor = self.state, self._work.planned(job)
        yield self._free_s[processor]
        # What waits for itself, since queues are too short, never ends.
        yield from (self._end_s.get(each, inf) for each in before)
        for tensor in self._work.reads[job.task]:
            maker = Job(self._work.tensors[tensor].producer, job.frame, job.micro)
            if not state.is_over(maker):
                source, end_s = self._where_it_ends(maker)
                yield end_s + state.moved_s(tensor, job, source, processor)
            elif self._work.moves:
                yield state.there_s(tensor, job, processor)
        for reader in self._makes_room(job):
            if not state.is_over(reader):
                yield self._where_it_ends(reader)[1]

    def _where_it_ends(self, job: Job) -> tuple[int, float]:
        """Return where a job that is not over ends, and when."""
        for processor, each in enumerate(self.state.running):
            if each is not None and job in each.jobs:
                return processor, self._free_s[processor]
        return self._work.planned(job), self._end_s.get(job, inf)

    def _makes_room(self, job: Job) -> Iterator[Job]:
        for task, slots in self._work.waits_for_room[job.task]:
            if job.frame >= slots:
                yield from self.state.jobs(task, job.frame - slots)

    def _predecessors(self, job: Job) -> Iterator[Job]:
        """Yield what nobody has begun and what a job waits for in the plan."""
        producers = (Job(task, job.frame, job.micro) for task in self._work.producers[job.task])
        for each in (*producers, *self._makes_room(job)):
            if not self.state.is_begun(each):
                yield each
        if job not in self._previous:
            for previous, planned in self._agendas[self._work.planned(job)]:
                self._previous[planned] = previous
                if planned == job:
                    break
        if (last := self._previous[job]) is not None:
            yield last


LATE = 1.25
"""A processor that takes so many times what was predicted is late, and so is a job."""
OVERDUE_S = 1e-4
"""A job is overdue if it is late and takes at least so much longer: clocks differ by less."""
LONG_S = 2.5e-3
"""Shorter jobs are taken from late processors only: to look ahead takes a tenth of this time. While
overdue jobs are waited for, shorter ones are taken without looking ahead."""
LOST = 0.05
"""Share of the time since the start that thefts may have cost."""
LOOK_S, LOOK_JOB_S = 1e-4, 1e-5
"""To look ahead takes about so long, and for each job that is looked at."""
LOOKED = 0.03
"""Share of the time since the start that looks may have taken beyond what each should gain."""


class _Theft(NamedTuple):
    """A job that was taken from another processor.

    Parameters
    ----------
    running
        What the thief does.
    own
        The thief's next job in the plan.
    owner, busy
        Whom the job was taken from, and what that one was doing then.
    due_s
        Nobody waits longer for what the job makes if it ends by then.
    """

    running: Running
    own: Job | None
    owner: int
    busy: Running | None
    due_s: float


class Steal:
    """Follows the plan; a processor that would wait takes what ends sooner there."""

    follows_plan = True

    def __init__(self, work: Work) -> None:
        self._work = work
        self._thefts: dict[int, _Theft] = {}
        self._lost_s = self._looked_s = 0.0
        self._longest_s = [
            max((each for each in own if each < inf), default=0.0)
            for own in zip(*work.time_s, strict=True)
        ]

    def schedule(self, state: State) -> None:
        """Give each free processor the plan's next job, else the one that gains most, if any."""
        for processor, theft in list(self._thefts.items()):
            if state.running[processor] is not theft.running:
                self._lost_s += _cost_s(theft, state)
                del self._thefts[processor]
        idle = []
        for processor in state.free:
            own = state.planned_next(processor)
            if own in state.ready_by:
                state.execute(own, on=processor)
            else:
                idle.append((processor, own))
        for processor, own in idle:
            if (
                state.ready_by
                and self._may_look(state.now_s)
                and not self._work_meanwhile(processor, own, state)
            ):
                self._steal(processor, own, state)

    def _may_look(self, now_s: float) -> bool:
        """Tell whether neither thefts nor looking ahead have cost too much so far."""
        return self._lost_s <= LOST * now_s and self._looked_s <= LOOKED * now_s

    def _work_meanwhile(self, processor: int, own: Job | None, state: State) -> bool:
        """Give a processor that waits for overdue jobs something that should end before them."""
        until_s = self._overdue_until_s(processor, own, state)
        if not until_s:
            return False
        pace, best = max(1.0, state.paces[processor].factor), None
        for job in state.ready_by:
            owner, time_s = self._work.planned(job), state.seconds(job, processor)
            key = job.frame, self._work.depth[job.task], job.task, job.micro
            if time_s >= LONG_S or (owner != processor and owner not in until_s):
                continue
            end_s = state.begin_s(job, processor) + pace * time_s
            if end_s > max(until_s.values()) or (best is not None and best[0] < key):
                continue
            if owner == processor or end_s < self._due_s(
                job, processor, _planned_end_s(job, owner, until_s[owner], state)
            ):
                best = key, job, owner
        if best is None:
            state.ask_again(max(until_s.values()))
            return False
        _, job, owner = best
        due_s = inf
        if owner != processor:
            free_s = state.free_s(owner)
            due_s = self._due_s(job, processor, _planned_end_s(job, owner, free_s, state))
        state.execute(job, on=processor)
        running = state.running[processor]
        assert running is not None
        busy = None if owner == processor else state.running[owner]
        self._thefts[processor] = _Theft(running, own, owner, busy, due_s)
        return True

    def _overdue_until_s(self, processor: int, own: Job | None, state: State) -> dict[int, float]:
        """Return until when overdue processors should be busy that a processor waits for.

        If none is overdue yet, the strategy is asked again when one would be.
        """
        until_s, next_s = dict[int, float](), inf
        for other in self._awaited(processor, own, state):
            running = state.running[other]
            if running is None:
                continue
            overdue_s = running.begin_s + max(LATE * running.time_s, running.time_s + OVERDUE_S)
            if overdue_s <= state.now_s:
                until_s[other] = state.now_s + (state.now_s - running.begin_s)
            else:
                next_s = min(next_s, overdue_s)
        if not until_s and next_s < inf:
            state.ask_again(next_s)
        return until_s

    def _awaited(self, processor: int, own: Job | None, state: State) -> set[int]:
        """Return processors that a processor's next job waits for; all if it has none."""
        everyone = range(len(state.running))
        if own is None:
            return {p for p in everyone if p != processor}
        before = [Job(task, own.frame, own.micro) for task in self._work.producers[own.task]]
        for task, slots in self._work.waits_for_room[own.task]:
            if own.frame >= slots:
                before += state.jobs(task, own.frame - slots)
        found = set[int]()
        for job in before:
            if not state.is_over(job):
                does = (p for p in everyone if (r := state.running[p]) and job in r.jobs)
                found.add(next(does, self._work.planned(job)))
        return found - {processor}

    def _steal(self, processor: int, own: Job | None, state: State) -> None:
        """Give a processor the ready job of another one that gains most, if any gains."""
        late = [p != processor and _is_late(p, state) for p in range(len(state.running))]
        if not any(late) and self._longest_s[processor] < LONG_S:
            return
        jobs = [job for job in state.ready_by if self._may_take(job, processor, late, state)]
        if not jobs:
            return
        paces = [max(1.0, each.factor) for each in state.paces]
        outlook = Outlook(state, paces)
        gain_s, job = max((self._gain_s(job, processor, own, outlook, paces), job) for job in jobs)
        took_s = LOOK_S + LOOK_JOB_S * outlook.jobs
        self._looked_s += max(0.0, took_s - max(0.0, gain_s))
        if gain_s <= 0:
            return
        due_s = self._due_s(job, processor, Outlook(state).end_s(job))
        owner = self._work.planned(job)
        state.execute(job, on=processor)
        running = state.running[processor]
        assert running is not None
        self._thefts[processor] = _Theft(running, own, owner, state.running[owner], due_s)

    def _may_take(self, job: Job, processor: int, late: Sequence[bool], state: State) -> bool:
        """Tell whether a job waits for a processor that is busy, and is worth to be looked at."""
        owner, time_s = self._work.planned(job), state.seconds(job, processor)
        if owner == processor or time_s == inf or (time_s < LONG_S and not late[owner]):
            return False
        return state.running[owner] is not None or state.planned_next(owner) != job

    def _gain_s(
        self, job: Job, processor: int, own: Job | None, outlook: Outlook, paces: Sequence[float]
    ) -> float:
        """Return how much sooner all that a job makes is where the plan reads it.

        0 if it would not have ended when the processor's own next job could begin.
        """
        state = outlook.state
        end_s = state.begin_s(job, processor) + paces[processor] * state.seconds(job, processor)
        gain_s = self._due_s(job, processor, outlook.end_s(job)) - end_s
        return gain_s if gain_s <= 0 or own is None or end_s <= outlook.begin_s(own) else 0.0

    def _due_s(self, job: Job, processor: int, planned_s: float) -> float:
        """Return until when a processor has to end a job, so that nobody waits longer for it.

        Parameters
        ----------
        planned_s
            When the plan's processor would end it.
        """
        owner, due_s = self._work.planned(job), planned_s
        for tensor in self._work.makes[job.task]:
            moved_s = self._work.tensors[tensor].moved_s
            for reader in self._work.read_by[tensor]:
                there = self._work.planned(Job(reader, job.frame))
                due_s = min(due_s, planned_s + moved_s[owner][there] - moved_s[processor][there])
        return due_s


def _planned_end_s(job: Job, owner: int, free_s: float, state: State) -> float:
    """Return when the plan's processor ends a job if it is free at a time and never waits."""
    for each in state.planned(owner):
        free_s += state.seconds(each, owner)
        if each == job:
            break
    return free_s


def _is_late(processor: int, state: State) -> bool:
    """Tell whether a processor takes much longer than predicted, or is about to."""
    if state.paces[processor].factor > LATE:
        return True
    running = state.running[processor]
    return running is not None and state.now_s - running.begin_s > LATE * running.time_s


def _cost_s(theft: _Theft, state: State) -> float:
    """Return how much longer than without it anything has waited for a theft that has ended."""
    own_s = state.now_s - state.ready_s.get(theft.own, state.now_s) if theft.own else 0.0
    if theft.busy is not None and state.running[theft.owner] is theft.busy:
        return own_s  # it would not even have begun
    return max(own_s, state.now_s - theft.due_s)
