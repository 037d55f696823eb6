"""Discrete-event replay of what a strategy decides: the engine on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from parapipe.errors import StrategyError
from parapipe.runtime.record import Frame, Span
from parapipe.strategies.engine import Engine, Moves
from parapipe.strategies.failures import begins, ends
from parapipe.strategies.strategy import Strategy
from parapipe.strategies.work import Job, Work

# What a job really takes on a processor, as a multiple of what is predicted.
Took: TypeAlias = Callable[[Job, int], float]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How frames are admitted.

    Parameters
    ----------
    interval_s
        Seconds between frames; None admits them as fast as they are taken.
    waiting
        Then so many frames are admitted that no task has begun.
    """

    interval_s: float | None
    waiting: int


class WaitsForeverError(Exception):
    """A strategy lets all processors wait though frames are left."""


def strategy_replay(
    work: Work,
    strategy: type[Strategy],
    name: str,
    frames: int,
    arrivals: Arrivals,
    *,
    took: Took | None = None,
    moves: Moves | None = None,
) -> tuple[tuple[Span, ...], tuple[Frame, ...]]:
    """Send frames through what a strategy decides; return what was done, and the frames.

    Parameters
    ----------
    name
        What messages call the strategy.
    took, moves
        What jobs really take, and moving a tensor; what is predicted if not given.

    Raises
    ------
    WaitsForeverError
        If nothing runs, and the strategy begins nothing.
    StrategyError
        If the strategy fails, or answers with what cannot be done.
    """
    engine = Engine(work, strategy, name, frames, moves)
    return _Replay(work, engine, frames, arrivals, took).run()


class _Replay:
    def __init__(
        self, work: Work, engine: Engine, frames: int, arrivals: Arrivals, took: Took | None
    ) -> None:
        self._work, self._engine, self._frames, self._arrivals = work, engine, frames, arrivals
        self._took = took or (lambda job, p: 1.0)
        self._now_s = 0.0
        self._ends_s: dict[int, tuple[float, tuple[Job, ...]]] = {}  # of what runs, by processor
        self._spans: list[Span] = []
        self._admitted_s: list[float] = []
        self._begun: dict[int, None] = {}
        self._done_s = [0.0] * frames
        self._most = frames * len(work.tasks) * work.batch  # all that can begin

    def run(self) -> tuple[tuple[Span, ...], tuple[Frame, ...]]:
        left = self._frames * len(self._work.tasks)
        while left:
            while self._admit() or self._begin():
                pass
            self._now_s = self._next_s()
            left -= self._end()
        frames = (
            Frame(frame, admitted_s, self._done_s[frame])
            for frame, admitted_s in enumerate(self._admitted_s)
        )
        return tuple(sorted(self._spans, key=lambda s: (s.start_s, s.end_s))), tuple(frames)

    def _due_s(self) -> float | None:
        """Return when the next frame is admitted; None if that is not known, or there is none."""
        frame = len(self._admitted_s)
        if frame == self._frames:
            return None
        if self._arrivals.interval_s is not None:
            return frame * self._arrivals.interval_s
        before = frame - self._arrivals.waiting
        return self._now_s if before < 0 or before in self._begun else None

    def _admit(self) -> bool:
        due_s = self._due_s()
        if due_s is None or due_s > self._now_s:
            return False
        self._admitted_s.append(due_s)
        self._engine.admit(self._now_s)
        return True

    def _begin(self) -> bool:
        """Let free processors begin what they are given; return whether one did."""
        begins(self._engine.name, "schedule")
        given = self._engine.decide(self._now_s)
        ends()
        if len(self._spans) > self._most:
            raise StrategyError(f"strategy '{self._engine.name}' begins the same again and again")
        for processor in given:
            running = self._engine.state.running[processor]
            assert running is not None
            jobs, end_s = running.jobs, self._engine.begin_s(processor)
            for run in _runs(jobs):
                start_s, (task, frame, _) = end_s, run[0]
                factor = self._took(run[0], processor)
                end_s += self._engine.state.seconds(run, processor) * factor
                name = self._work.processors[processor]
                self._spans.append(Span(name, self._work.tasks[task], frame, start_s, end_s))
            self._begun[frame] = None
            self._ends_s[processor] = end_s, jobs
            self._done_s[frame] = max(self._done_s[frame], end_s)
        return bool(given)

    def _next_s(self) -> float:
        moments = [end_s for end_s, _ in self._ends_s.values()]
        if (due_s := self._due_s()) is not None:
            moments.append(due_s)
        if not moments:
            raise WaitsForeverError
        return min(moments)

    def _end(self) -> int:
        """End what ends now; return how many tasks have ended for a whole frame."""
        whole = 0
        for processor, (end_s, jobs) in sorted(self._ends_s.items(), reverse=True):
            if end_s <= self._now_s:
                del self._ends_s[processor]
                self._engine.end(processor, self._now_s)
                ended = self._engine.state.ended
                whole += sum(frame in ended[task] for task, frame in {job[:2] for job in jobs})
        return whole


def _runs(jobs: tuple[Job, ...]) -> Iterator[tuple[Job, ...]]:
    """Yield what is run at one go: neighbouring micro-batches of a task together."""
    return (tuple(run) for _, run in groupby(jobs, key=lambda job: job.task))
