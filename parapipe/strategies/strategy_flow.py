"""Frames on their way through segments, each run by the processor that a strategy chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

from parapipe.errors import StrategyError
from parapipe.runtime.arena import SOURCE
from parapipe.runtime.document import Segment
from parapipe.runtime.flow import SINK, Arrays, Doing, Flow
from parapipe.runtime.folder import Folder
from parapipe.strategies.engine import Engine
from parapipe.strategies.work import Job


class StrategyFlow(Flow):
    """As `Flow`, with an engine that says who runs what.

    Who ends a segment asks the strategy for its own next one first, then for all that wait.

    Parameters
    ----------
    engine
        Its work is that of the folder.
    """

    def __init__(self, folder: Folder, queue: int, remembered: int, engine: Engine) -> None:
        super().__init__(folder, queue, remembered)
        self._engine = engine
        self._segments = folder.segments
        self._task = {segment.id: i for i, segment in enumerate(folder.segments)}
        self._number = {each.name: p for p, each in enumerate(folder.processors)}
        self._names = tuple(self._number)
        self._given: dict[str, Job] = {}
        self._wakes = dict.fromkeys(self._ended, (*self._names, SOURCE))
        self._begin_s = perf_counter()

    def take(self, processor: str) -> tuple[Segment, int, Arrays] | None:
        """Wait until a processor is given something; return it and what it reads, None at the end.

        What it was given before has ended.
        """
        while True:
            with self._lock:
                self._runs.pop(processor, None)
                if self.abandoned:
                    return None
                if processor in self._given or self._choose(processor):
                    task, frame = self._given.pop(processor)
                    segment = self._segments[task]
                    self._runs[processor] = Doing(segment.id, frame, False, perf_counter())
                    self._began[segment.id] = max(self._began[segment.id], frame + 1)
                    self.bytes.begin(segment.id, frame)
                    names = self._sources[segment.id]
                    inputs = {each: self._held[each][frame][0] for each in names}
                    woken = self._woken((SOURCE, *self._names))
                    break
                if self._is_over():
                    return None
                self._parked[processor] = self._waits(processor)
            self._gates[processor].acquire()
        self._unpark(woken)
        return segment, frame, inputs

    def give_up(self, processor: str) -> None:
        """Say that what a processor was given went wrong."""
        with self._lock:
            self._engine.give_up(self._number[processor])

    def missing(self, segment: str, frame: int) -> str:
        """Say what a segment that waits has not got."""
        waits_for = self._engine.missing(Job(self._task[segment], frame))
        return " and ".join(waits_for) or "for its turn"

    def _waits(self, processor: str) -> Doing:
        """Return what a processor waits for if it follows the plan."""
        job = self._engine.state.planned_next(self._number[processor])
        task, frame = job or Job(0, 0)
        return Doing(self._segments[task].id, frame, True, perf_counter())

    def _is_over(self) -> bool:
        return self.abandoned or self._engine.is_all_begun

    def _choose(self, processor: str) -> bool:
        """Ask what a processor does next; return whether there is something."""
        try:
            taken = self._engine.take(self._number[processor], self._now_s())
        except StrategyError as error:
            self.cause = self.cause or str(error)
            self.abandoned = True
            self._tell_sink()
            return False
        if taken is None:
            return False
        self._given[processor] = taken.job
        return True

    def _now_s(self) -> float:
        return perf_counter() - self._begin_s

    def _may_go(self, processor: str) -> bool:
        if processor == SOURCE:
            return super()._may_go(processor)
        return self._is_over() or self._choose(processor) or self.abandoned

    def _woken(self, threads: Iterable[str]) -> Sequence[str]:
        """Ask again after every choice: who has waited for another to choose may choose now."""
        threads, woken = tuple(threads), list[str]()
        while more := super()._woken(threads):
            woken += more
        return woken

    def _advance(self, name: str, frame: int) -> Sequence[str]:
        now_s = self._now_s()
        if name == SOURCE:
            self._engine.admit(now_s)
        elif name == SINK:
            self._engine.take_results(now_s)
        else:
            self._end(Job(self._task[name], frame), now_s)
        return super()._advance(name, frame)

    def _end(self, job: Job, now_s: float) -> None:
        running = enumerate(self._engine.state.running)
        number = next(p for p, each in running if each is not None and each.job == job)
        self._engine.end(number, now_s)
        if not self.abandoned:
            self._choose(self._names[number])

    def _end_before(self, frame: int) -> None:
        with self._lock:
            self._engine.end_before(frame)
        super()._end_before(frame)
