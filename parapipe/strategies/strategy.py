"""What a strategy is."""

from __future__ import annotations

from typing import Protocol

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


class Strategy(Protocol):
    """Decides what a processor does next; one is made for each run, from its work.

    It is asked whenever a processor is free and something has happened. What may be run is in
    `state.ready`; the engine looks after dependencies, data and memory.
    """

    follows_plan: bool
    """Whether the plan's processor of a task gets what the task reads as soon as it is made.
    Otherwise tensors are moved once a processor takes the task that reads them."""

    def __init__(self, work: Work) -> None: ...

    def choose(self, processor: int, state: State) -> Job | None:
        """Return what a free processor does next, one of `state.ready`; None if it waits."""
