"""The strategy `steal`: follows the plan, but who would wait takes ready work of another.

It never costs anything that was predicted: a job is taken only if, by predicted times,

- it ends before the processor's own next job in the plan could begin, and
- what it makes is, wherever the plan reads it, sooner than from the processor that should run it.

So by predicted times no job ends later than if the plan was followed from then on, and since all
that happens can only happen earlier when something else does, none ends later than in the plan. If
all takes at most 1 + e times what was predicted, and frames are admitted as fast as they are taken,
no job ends later than 1 + e times when it ends in the plan as predicted: what the plan itself
guarantees.
"""

from __future__ import annotations

from parapipe.strategies.outlook import Outlook
from parapipe.strategies.state import State
from parapipe.strategies.work import Job, Work


class Steal:
    """Follows the plan; a processor that would wait takes what ends sooner there."""

    follows_plan = True

    def __init__(self, work: Work) -> None:
        self._work = work

    def schedule(self, state: State) -> None:
        """Give each free processor the plan's next job, else the one that gains most, if any."""
        for processor in state.free:
            own = state.planned_next(processor)
            job = own if own in state.ready_by else self._stolen(processor, own, state)
            if job is not None:
                state.execute(job, on=processor)

    def _stolen(self, processor: int, own: Job | None, state: State) -> Job | None:
        """Return the late job of another processor that gains most, if any gains."""
        outlook = Outlook(state)
        best: tuple[float, Job] | None = None
        for job in state.ready_by:
            if not self._is_late(job, processor, state):
                continue
            end_s = state.end_s(job, processor)
            if own is not None and end_s > outlook.begin_s(own):
                continue
            gain_s = self._gain_s(job, processor, end_s, outlook.end_s(job))
            if gain_s > 0 and (best is None or gain_s > best[0]):
                best = gain_s, job
        return best and best[1]

    def _is_late(self, job: Job, processor: int, state: State) -> bool:
        """Tell whether a job could have begun, and the plan's processor is busy."""
        owner = self._work.planned(job)
        busy = state.running[owner] is not None or state.planned_next(owner) != job
        return owner != processor and busy and self._work.runs(job.task, processor)

    def _gain_s(self, job: Job, processor: int, end_s: float, planned_s: float) -> float:
        """Return how much sooner all that a job makes is where the plan reads it."""
        owner = self._work.planned(job)
        gains_s = [planned_s - end_s]
        for tensor in self._work.makes[job.task]:
            moved_s = self._work.tensors[tensor].moved_s
            for reader in self._work.read_by[tensor]:
                there = self._work.planned(Job(reader, job.frame))
                there_s = planned_s + moved_s[owner][there]
                gains_s.append(there_s - end_s - moved_s[processor][there])
        return min(gains_s)
