"""The strategy `plan`: every processor does what the plan says, in its order."""

from __future__ import annotations

from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


class Follow:
    """Takes what the plan has the processor do next, and waits until that may begin."""

    follows_plan = True

    def __init__(self, work: Work) -> None:
        del work

    def choose(self, processor: int, state: State) -> Job | None:
        """Return the plan's next job if it is ready."""
        job = state.planned_next(processor)
        return job if job in state.ready else None
