"""Plans of configurations as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from parapipe.front.mapped_configuration import MappedConfiguration
from parapipe.pipeline.shared_work import shared_work
from parapipe.plan.schema import Plan


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


def plan_texts(configurations: Iterable[MappedConfiguration]) -> Iterator[bytes]:
    """Yield the plans of configurations as their files hold them."""
    plans = Plans()
    return (plans.text(each) for each in configurations)


def written_plans(
    configurations: Sequence[MappedConfiguration], jobs: int
) -> Iterator[tuple[str, bytes]]:
    """Yield ids and plans in any order, each when it is there.

    Parameters
    ----------
    jobs
        Processes at most, this one included.
    """
    for number, text in shared_work(plan_texts, configurations, jobs):
        yield configurations[number].id, text
