"""Plans of configurations as bytes, made by several processes where that takes long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from time import perf_counter

from parapipe.front.mapped_configuration import MappedConfiguration
from parapipe.pipeline.workers import WorkerProcesses
from parapipe.plan.schema import Plan

ALONE_S = 0.5
"""About as long as another process takes to start: it helps if twice as much is left to do."""


@dataclass(slots=True)
class Plans:
    """Makes plans of configurations of one model; what all have in common is made once."""

    _like: Plan | None = None
    _shared: dict[str, str] = field(default_factory=dict)

    def plan(self, made: MappedConfiguration) -> Plan:
        """Return a configuration's plan."""
        if made.split:  # its model is another one
            return made.plan()
        self._like = made.plan(self._like)
        return self._like

    def text(self, made: MappedConfiguration) -> bytes:
        """Return a configuration's plan as its file holds it."""
        plan = self.plan(made)
        if made.split:
            return plan.to_bytes()
        self._shared = self._shared or plan.texts("tensors", "operators")
        return plan.to_bytes(self._shared)


def plan_texts(configurations: Sequence[MappedConfiguration]) -> list[bytes]:
    """Return the plans of configurations as their files hold them."""
    plans = Plans()
    return [plans.text(each) for each in configurations]


def written_plans(
    configurations: Sequence[MappedConfiguration], jobs: int
) -> Iterator[tuple[str, bytes]]:
    """Yield ids and plans in any order, each when it is there.

    A plan is the same whoever makes it. This process begins alone; if much is left to do after a
    while, other processes take their shares.

    Parameters
    ----------
    jobs
        Processes at most, this one included.
    """
    plans, began_s = Plans(), perf_counter()
    for done, each in enumerate(configurations):
        spent_s, left = perf_counter() - began_s, configurations[done:]
        if min(jobs, len(left)) > 1 and ALONE_S < spent_s > 2 * ALONE_S * done / len(left):
            yield from _together(left, min(jobs, len(left)), plans)
            return
        yield each.id, plans.text(each)


def _together(
    configurations: Sequence[MappedConfiguration], count: int, plans: Plans
) -> Iterator[tuple[str, bytes]]:
    """Yield ids and plans, each process having made every `count`-th one."""
    own, *others = (configurations[first::count] for first in range(count))
    try:
        processes: WorkerProcesses | nullcontext[None] = WorkerProcesses(count - 1)
    except OSError:  # no process can be started
        processes, own, others = nullcontext(), configurations, []
    with processes as pool:
        asked = [(share, pool.submit(plan_texts, share)) for share in others] if pool else []
        for each in own:
            yield each.id, plans.text(each)
        for share, future in asked:
            try:
                found = future.result()
            except BrokenExecutor:  # it was ended, for lack of memory perhaps
                found = plan_texts(share)
            yield from zip((each.id for each in share), found, strict=True)
