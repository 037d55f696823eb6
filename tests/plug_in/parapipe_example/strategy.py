"""The strategy `oldest-first`: jobs of the oldest frame, first those of the earliest task."""

from parapipe.strategies.state import State
from parapipe.strategies.work import Work


class OldestFirst:
    """A free processor takes the oldest job that it can run."""

    follows_plan = False

    def __init__(self, work: Work) -> None:
        self.work = work

    def schedule(self, state: State) -> None:
        """Give each free processor a job."""
        for processor in state.free:
            jobs = [job for job in state.ready() if self.work.runs(job.task, processor)]
            if jobs:
                oldest = min(jobs, key=lambda job: (job.frame, job.task))
                state.execute(oldest, on=processor)
