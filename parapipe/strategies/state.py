"""What a strategy sees while frames are under way, and what is left to do of the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from parapipe.errors import StrategyError
from parapipe.strategies.work import Frames, Job, MicroBatch, Pace, Place, Replace, Running, Work


class State:
    """What is ready, what runs, and how late it is. Times are seconds from the start of the run.

    A strategy reads it, and changes it by `split`, `execute` and `ask_again` only.

    Parameters
    ----------
    work
        What is to be done for every frame.
    follows_plan
        As of the strategy.

    Attributes
    ----------
    now_s
        The time.
    ready_by
        Jobs that may begin, in the order in which they became ready, and by each the processor
        that ended the last of what they waited for; None where that was no processor.
    ready_s
        Since when they may begin.
    free
        Processors that do nothing, the one that has ended something last first.
    running
        By processor: what it does, None if it is free.
    last
        By processor: what it ended last.
    paces
        By processor: how its times are to those predicted, over about the last frame's work.
    waiting
        Frames that are admitted and of which nothing has begun: they may be split.
    admitted
        How many frames have been admitted so far.
    frames
        How many there are; None as long as that is not known.
    ask_s
        When the strategy is asked again though nothing has happened; infinite if never.
    """

    def __init__(self, work: Work, *, follows_plan: bool, frames: int | None = None) -> None:
        everyone = range(len(work.processors))
        self.work = work
        self.follows_plan = follows_plan
        self.now_s = 0.0
        self.ready_by: dict[Job, int | None] = {}
        self.ready_s: dict[Job, float] = {}
        self.free = tuple(everyone)
        self.running: list[Running | None] = [None for _ in everyone]
        self.last: list[Job | None] = [None for _ in everyone]
        self.paces = [Pace(work.own_s(p)) for p in everyone]
        self.waiting: dict[int, None] = {}
        self.admitted = 0
        self.frames = frames
        self.ask_s = inf
        self.begun = [Frames() for _ in work.tasks]
        self.ended = [Frames() for _ in work.tasks]
        self.places: dict[tuple[int, int, int], Place] = {}
        self.left: dict[Job, int] = {}  # what jobs wait for, if that is less than at first
        self.partly: tuple[set[Job], set[Job]] = (set(), set())  # of split frames: begun, ended
        self.ahead: set[Job] = set()  # what was begun behind what it waits for
        self.assigned: list[int] = []  # processors that have been given something
        self._sizes: dict[int, tuple[int, ...]] = {}  # of frames that are split
        self._agendas = Agendas(work, self)

    # What a strategy may do

    def split(self, sizes: Sequence[int], frame: int | None = None) -> tuple[MicroBatch, ...]:
        """Split a frame into micro-batches of some sizes; return them.

        Parameters
        ----------
        frame
            One of `waiting`; its first one if not given.

        Raises
        ------
        StrategyError
            If it is too late, or sizes do not make a batch, or were not announced.
        """
        frame = next(iter(self.waiting), None) if frame is None else frame
        if frame is None or frame not in self.waiting:
            raise StrategyError(f"frame {frame} is split too late: split one of state.waiting")
        announced = {self.work.batch, *self.work.sized_s}
        if sum(sizes) != self.work.batch or not announced.issuperset(sizes):
            raise StrategyError(
                f"a batch of {self.work.batch} is split into {list(sizes)}: sizes are to add up to "
                f"it, and to be announced by splits(batch); known are {sorted(announced)}"
            )
        del self.waiting[frame]
        if len(sizes) == 1:
            return (MicroBatch(frame, 0),)
        self._sizes[frame] = tuple(sizes)
        for counts in (self.left, self.ready_by, self.ready_s):
            for job in [each for each in counts if each.frame == frame]:
                value: Any = counts.pop(job)
                counts.update(dict.fromkeys(self.jobs(job.task, frame), value))
        return tuple(MicroBatch(frame, number) for number in range(len(sizes)))

    def ready(self, i: MicroBatch | None = None) -> list[Job]:
        """Return the jobs that may begin, of one micro-batch or of all."""
        if i is None:
            return list(self.ready_by)
        return [job for job in self.ready_by if job[1:] == i]

    def execute(
        self, pieces: Job | Sequence[Job], *, on: int, replace: Replace | None = None
    ) -> None:
        """Let a free processor do a job that is ready, or several as one.

        Parameters
        ----------
        pieces
            A job; or the same task for neighbouring micro-batches of a frame, which are run as one
            batch; or different tasks of a micro-batch, which are run one after the other (each is
            ready, or waits for some before it only).
        on
            The processor.
        replace
            Called in place of different pieces on this machine, with what they read.

        Raises
        ------
        StrategyError
            If the processor cannot do that now.
        """
        jobs = (pieces,) if isinstance(pieces, Job) else tuple(pieces)
        if len(jobs) != 1 or jobs[0] not in self.ready_by or not self._is_able(jobs[0], on):
            self._refuse_impossible(jobs, on)
        begin_s = self.now_s
        if self.work.moves:
            begin_s = max(self.begin_s(job, on) for job in jobs)
        self.running[on] = Running(jobs, begin_s, begin_s + self.seconds(jobs, on), replace)
        self.free = tuple([p for p in self.free if p != on])
        for job in jobs:
            self._begin_job(job)
        self.assigned.append(on)

    def ask_again(self, at_s: float) -> None:
        """Ask the strategy again at a time, if a job is running then and nothing has happened.

        Of several times before the strategy is asked again, the first one counts.

        Raises
        ------
        StrategyError
            If the time has passed.
        """
        if not at_s > self.now_s:
            raise StrategyError(f"ask_again({at_s!r}) is not after state.now_s: give a later time")
        self.ask_s = min(self.ask_s, at_s)

    # What a strategy may ask

    def sizes(self, frame: int) -> tuple[int, ...]:
        """Return the sizes of the micro-batches that a frame is split into."""
        return self._sizes.get(frame) or (self.work.batch,)

    def is_split(self, frame: int) -> bool:
        """Tell whether a frame is split."""
        return frame in self._sizes

    def jobs(self, task: int, frame: int) -> Iterator[Job]:
        """Yield a task's jobs for the micro-batches of a frame."""
        return (Job(task, frame, micro) for micro in range(len(self.sizes(frame))))

    def seconds(self, pieces: Job | Sequence[Job], processor: int) -> float:
        """Return what a job takes on a processor, or several as one, as predicted."""
        jobs = (pieces,) if isinstance(pieces, Job) else pieces
        if len(jobs) == 1 and not self._sizes:
            return self.work.time_s[jobs[0].task][processor]
        first, sizes = jobs[0], self._sizes.get(jobs[0].frame)
        if sizes is None:
            return sum(self.work.time_s[job.task][processor] for job in jobs)
        if len(jobs) > 1 and jobs[1].task == first.task:
            size = sum(sizes[job.micro] for job in jobs)
            return self.work.seconds(first.task, processor, size)
        return sum(self.work.seconds(j.task, processor, sizes[j.micro]) for j in jobs)

    def is_over(self, job: Job) -> bool:
        """Tell whether a job has ended."""
        return job.frame in self.ended[job.task] or job in self.partly[1]

    def is_begun(self, job: Job) -> bool:
        """Tell whether a job has begun."""
        return job.frame in self.begun[job.task] or job in self.partly[0]

    def planned_next(self, processor: int) -> Job | None:
        """Return what the plan has a processor do next of what nobody has begun."""
        return self._agendas.next(processor)

    def planned(self, processor: int) -> Iterator[Job]:
        """Yield what the plan has a processor do and nobody has begun, in its order."""
        return self._agendas.left(processor)

    def free_s(self, processor: int) -> float:
        """Return when a processor should be free."""
        running = self.running[processor]
        return self.now_s if running is None else max(self.now_s, running.end_s)

    def begin_s(self, job: Job, processor: int) -> float:
        """Return when a job that is ready would begin on a processor that takes it now."""
        if not self.work.moves:
            return self.now_s
        tensors = (t for t in self.work.reads[job.task] if (t, job.frame, job.micro) in self.places)
        return max((self.there_s(t, job, processor) for t in tensors), default=self.now_s)

    def end_s(self, job: Job, processor: int) -> float:
        """Return when it should end then."""
        return self.begin_s(job, processor) + self.seconds(job, processor)

    def there_s(self, tensor: int, job: Job, processor: int) -> float:
        """Return when a tensor that was made is there if a processor takes its reader now."""
        place = self.places[tensor, job.frame, job.micro]
        if processor == place.processor:
            return self.now_s
        if processor in place.came_s:
            return max(self.now_s, place.came_s[processor][0])
        moved_s = self.moved_s(tensor, job, place.processor, processor)
        return max(self.now_s, self.sent_s(tensor, job, processor) + moved_s)

    def moved_s(self, tensor: int, job: Job, source: int, target: int) -> float:
        """Return what moving a tensor takes; of a micro-batch, its share."""
        sizes = self._sizes.get(job.frame)
        share = sizes[job.micro] / self.work.batch if sizes else 1.0
        return share * self.work.tensors[tensor].moved_s[source][target]

    def sent_s(self, tensor: int, job: Job, processor: int) -> float:
        """Return when a tensor starts on its way if a processor takes its reader now."""
        pushed = self.follows_plan and self.work.planned(job) == processor
        return self.places[tensor, job.frame, job.micro].made_s if pushed else self.now_s

    # For `execute`

    def _begin_job(self, job: Job) -> None:
        if job in self.ready_by:
            del self.ready_by[job], self.ready_s[job]
        else:
            self.ahead.add(job)
        self.waiting.pop(job.frame, None)
        if job.frame in self._sizes:
            begun = self.partly[0]
            begun.add(job)
            everyone = tuple(self.jobs(job.task, job.frame))
            if not begun.issuperset(everyone):
                return
            begun.difference_update(everyone)
        self.begun[job.task].add(job.frame)

    def _is_able(self, job: Job, processor: int) -> bool:
        return processor in self.free and self.work.time_s[job.task][processor] < inf

    def _refuse_impossible(self, jobs: tuple[object, ...], on: int) -> None:
        """Refuse what a processor cannot do now."""
        accepted: list[Job] = []
        for job in jobs:
            if isinstance(job, Job) and self.may_follow(job, accepted) and self._is_able(job, on):
                accepted.append(job)
        if jobs and len(accepted) == len(jobs) and self._can_run_as_one(accepted):
            return
        if on not in range(len(self.running)):
            raise StrategyError(f"there is no processor {on!r}: execute on one of state.free")
        name = self.work.processors[on]
        listed = ", ".join(str(tuple(job)) if isinstance(job, Job) else str(job) for job in jobs)
        raise StrategyError(
            f"'{name}' is given what it cannot do now ({listed}): execute jobs of state.ready() "
            "that the processor runs, on one of state.free"
        )

    def may_follow(self, job: Job, before: Sequence[Job]) -> bool:
        """Tell whether a job is ready, or waits for some before it only: not for room either."""
        if job in self.ready_by:
            return True
        count = sum(Job(u, job.frame, job.micro) in before for u in self.work.producers[job.task])
        return bool(count) and self.left.get(job, self.waits_of(job)) == count

    def _can_run_as_one(self, jobs: Sequence[Job]) -> bool:
        """Whether jobs can be run as one: neighbouring micro-batches, or different tasks."""
        first = jobs[0]
        if len(jobs) == 1 or jobs[1].task != first.task:
            return len({job[1:] for job in jobs}) == 1 and len(set(jobs)) == len(jobs)
        size = sum(self.sizes(first.frame)[job.micro] for job in jobs)
        neighbours = [Job(first.task, first.frame, first.micro + n) for n in range(len(jobs))]
        return list(jobs) == neighbours and size in {self.work.batch, *self.work.sized_s}

    def waits_of(self, job: Job) -> int:
        """Return how many things a job waits for at first."""
        always, rooms = self.work.waits[job.task]
        for slots in rooms:
            if job.frame >= slots:
                always += 1
        return always


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
        while (at < len(queue) or self._extend(processor)) and self._is_gone(queue[at]):
            at += 1
        if at > SPENT:
            del queue[:at]
            at = 0
        self._at[processor] = at
        if at == len(queue):
            return None
        return (
            next(self._unbegun(queue[at])) if self._state.is_split(queue[at].frame) else queue[at]
        )

    def left(self, processor: int) -> Iterator[Job]:
        """Yield the jobs of a processor that nobody has begun."""
        self.next(processor)
        queue, at = self._queues[processor], self._at[processor]
        while at < len(queue) or self._extend(processor):
            if not self._is_gone(queue[at]):
                yield from self._unbegun(queue[at])
            at += 1

    def _extend(self, processor: int) -> bool:
        """Put the plan's next job into a queue; return whether there is one."""
        more = next(self._agendas[processor], None)
        if more is None or self._is_behind_the_last(more):
            return False
        self._queues[processor].append(more)
        return True

    def _unbegun(self, job: Job) -> Iterator[Job]:
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
