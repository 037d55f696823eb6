"""The strategy `plan`: every processor does what the plan says, in its order."""

from __future__ import annotations

from parapipe.strategies.state import State
from parapipe.strategies.work import Work


class Follow:
    """Each processor takes what the plan has it do next, and waits until that may begin."""

    follows_plan = True

    def __init__(self, work: Work) -> None:
        del work

    def schedule(self, state: State) -> None:
        """Give each free processor the plan's next job if it is ready."""
        for processor in state.free:
            job = state.planned_next(processor)
            if job in state.ready_by:
                state.execute(job, on=processor)
