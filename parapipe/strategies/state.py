"""What a strategy sees while frames are on their way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from parapipe.strategies.work import Job, Work

SPENT = 256  # so many jobs of a queue are forgotten at once


@dataclass(slots=True)
class Frames:
    """Numbers of frames, most of them all those below a number."""

    below: int = 0
    others: set[int] = field(default_factory=set)

    def __contains__(self, frame: int) -> bool:
        return frame < self.below or frame in self.others

    def add(self, frame: int) -> None:
        """Add one."""
        self.others.add(frame)
        while self.below in self.others:
            self.others.remove(self.below)
            self.below += 1


@dataclass(slots=True)
class Place:
    """Where a tensor of a frame is.

    Parameters
    ----------
    processor, made_s
        Who made it, and when.
    there_s, came_s
        When each processor that has asked for it should have it, as predicted then, and when it
        really has it, which a strategy cannot know beforehand.
    readers
        Tasks that are yet to read it.
    """

    processor: int
    made_s: float
    there_s: dict[int, float]
    came_s: dict[int, float]
    readers: int


@dataclass(frozen=True, slots=True)
class Running:
    """A job that a processor does.

    Parameters
    ----------
    begin_s, end_s
        When it should begin, once all that it reads has arrived, and when it should end: as
        predicted when the processor took it.
    """

    job: Job
    begin_s: float
    end_s: float


class State:
    """What is ready, what runs, and how late it is. Times are seconds from the start of the run.

    A strategy reads it, and changes nothing.

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
    ready
        Jobs that may begin, in the order in which they became ready, and by each the processor
        that ended the last of what they waited for; None where that was no processor.
    running
        By processor: what it does, None if it is free.
    last
        By processor: what it ended last.
    frames
        How many frames there are; None as long as that is not known.
    """

    def __init__(self, work: Work, *, follows_plan: bool, frames: int | None = None) -> None:
        everyone = range(len(work.processors))
        self.work = work
        self.follows_plan = follows_plan
        self.now_s = 0.0
        self.ready: dict[Job, int | None] = {}
        self.running: list[Running | None] = [None for _ in everyone]
        self.last: list[Job | None] = [None for _ in everyone]
        self.frames = frames
        self.begun = [Frames() for _ in work.tasks]
        self.ended = [Frames() for _ in work.tasks]
        self.places: dict[tuple[int, int], Place] = {}
        self._agendas = [work.agenda(p) for p in everyone]
        self._next: list[list[Job]] = [[] for _ in everyone]
        self._at = [0 for _ in everyone]

    def is_over(self, job: Job) -> bool:
        """Tell whether a job has ended."""
        return job.frame in self.ended[job.task]

    def is_begun(self, job: Job) -> bool:
        """Tell whether a job has begun."""
        return job.frame in self.begun[job.task]

    def planned_next(self, processor: int) -> Job | None:
        """Return what the plan has a processor do next of what nobody has begun."""
        return next(self.left(processor), None)

    def free_s(self, processor: int) -> float:
        """Return when a processor should be free."""
        running = self.running[processor]
        return self.now_s if running is None else max(self.now_s, running.end_s)

    def begin_s(self, job: Job, processor: int) -> float:
        """Return when a job that is ready would begin on a processor that takes it now."""
        return max(
            (self.there_s(t, job, processor) for t in self.work.reads[job.task]),
            default=self.now_s,
        )

    def end_s(self, job: Job, processor: int) -> float:
        """Return when it should end then."""
        return self.begin_s(job, processor) + self.work.time_s[job.task][processor]

    def there_s(self, tensor: int, job: Job, processor: int) -> float:
        """Return when a tensor that was made is there if a processor takes its reader now."""
        place = self.places[tensor, job.frame]
        if processor in place.there_s:
            return max(self.now_s, place.there_s[processor])
        moved_s = self.work.tensors[tensor].moved_s[place.processor][processor]
        return max(self.now_s, self.sent_s(tensor, job, processor) + moved_s)

    def sent_s(self, tensor: int, job: Job, processor: int) -> float:
        """Return when a tensor starts on its way if a processor takes its reader now."""
        pushed = self.follows_plan and self.work.planned(job) == processor
        return self.places[tensor, job.frame].made_s if pushed else self.now_s

    def left(self, processor: int) -> Iterator[Job]:
        """Yield what the plan has a processor do and nobody has begun, in its order."""
        queue, at = self._next[processor], self._at[processor]
        while at < len(queue) and self._is_gone(queue[at]):
            at += 1
        if at > SPENT:
            del queue[:at]
            at = 0
        self._at[processor] = at
        while True:
            while at >= len(queue):
                more = next(self._agendas[processor], None)
                if more is None or self._is_behind_the_last(more):
                    return
                queue.append(more)
            if not self._is_gone(queue[at]):
                yield queue[at]
            at += 1

    def _is_gone(self, job: Job) -> bool:
        return self.is_begun(job) or (self.frames is not None and job.frame >= self.frames)

    def _is_behind_the_last(self, job: Job) -> bool:
        """Tell whether all that comes from a job on would be for frames that there are not."""
        if self.frames is None:
            return False
        return job.frame + self.work.lag[job.task] >= self.frames + max(self.work.lag)
