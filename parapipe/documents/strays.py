"""Operators that ran elsewhere than planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from parapipe.files.record import Row

if TYPE_CHECKING:
    from parapipe.documents.run_schema import TaskRow
    from parapipe.plan.schema import Plan
    from parapipe.runtime.sessions import ProviderUse


class StrayRow(Row):
    """Operators that ran elsewhere than planned: on a processor, by another provider."""

    processor: str
    """Where they were planned."""
    backend: str
    """The processor's back end, as the plan has it."""
    provider: str
    """What ran them."""
    why: str
    """Why: the processor's provider is not there, or does not take them."""
    operators: tuple[str, ...]
    """Ids of the operators."""
    types: dict[str, int]
    """How many of each ONNX type."""
    predicted_s: float
    """Seconds per frame predicted for the tasks that hold them."""
    observed_s: float
    """Seconds per frame that these tasks took."""
    lost_s: float
    """What these tasks took longer than predicted; 0 if they did not."""

    def sentence(self) -> str:
        """Say it for people."""
        count = len(self.operators)
        types = ", ".join(f"{number} {name}" for name, number in self.types.items())
        which = f", the first {self.operators[0]}" if count > 1 else f", {self.operators[0]}"
        lost = "no longer than predicted"
        if self.lost_s:
            lost = f"{self.lost_s * 1e3:.2f} ms a frame longer than predicted"
        return (
            f"{count} operator{'s' * (count > 1)} planned on '{self.processor}' ({self.backend}) "
            f"ran by {self.provider}: {types}{which}; their tasks took {lost}"
        )


def stray_rows(
    plan: Plan, used: Sequence[ProviderUse], tasks: Sequence[TaskRow]
) -> Iterator[StrayRow]:
    """Yield operators that ran elsewhere than planned, by processor and what ran them."""
    operators = {each.id: each for each in plan.operators}
    backends = {each.name: each.backend for each in plan.processors}
    for use in used:
        ran_by = {node: by for nodes in use.strays.values() for node, by in nodes.items()}
        own = [task for task in tasks if task.resource == use.processor and task.operators]
        by_provider: dict[str, list[str]] = {}
        for name in (name for task in own for name in task.operators):
            ran = {ran_by[node] for node in operators[name].members if node in ran_by}
            if use.substitute:
                ran = {use.provider}
            for provider in ran:
                by_provider.setdefault(provider, []).append(name)
        for provider, names in by_provider.items():
            some = [task for task in own if not set(names).isdisjoint(task.operators)]
            predicted_s = sum(task.predicted_s for task in some)
            observed_s = sum(task.observed_s for task in some)
            yield StrayRow(
                processor=use.processor,
                backend=backends[use.processor],
                provider=provider,
                why=use.substitute or f"{use.provider} does not take them",
                operators=tuple(names),
                types=dict(Counter(operators[name].type for name in names).most_common()),
                predicted_s=predicted_s,
                observed_s=observed_s,
                lost_s=max(0.0, observed_s - predicted_s),
            )
