"""Times and energies of operators one after the other: labels along the chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from parapipe.mapping.list_order import inputs_of
from parapipe.mapping.paths import supporting
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.schedule import Energies


@dataclass(frozen=True, slots=True)
class Label:
    """The first operators of a chain, placed.

    Parameters
    ----------
    end_s
        Of the last of them.
    energy_j
        Of all operators of the chain, those that are not placed yet at their least.
    processor, start_s
        Of each.
    """

    end_s: float
    energy_j: float
    processor: tuple[int, ...] = ()
    start_s: tuple[float, ...] = ()


def labels_of_chain(problem: MappingProblem, energy_j: Energies) -> list[Label]:
    """Return all placements of a chain that no other one on its last processor beats.

    What is behind an operator depends on nothing before it but its processor and its end: so of
    placements of the first operators that end on one processor only those go on that end earlier
    than all that take no more energy.
    """
    support = supporting(problem)
    least_j = [min(row[p] for p in choices) for row, choices in zip(energy_j, support, strict=True)]
    begun = Label(0.0, sum(least_j))
    last: dict[int, list[Label]] = {}
    for v, inputs in enumerate(inputs_of(problem)):
        before, last = last, {}
        for p in support[v]:
            lasts_s, more_j = problem.time_s[v][p], energy_j[v][p] - least_j[v]
            arrived_s = max((_moved_s(flow, flow.location, p) for flow in inputs), default=0.0)
            ways = [(begun, arrived_s)]
            if v:
                ways = [
                    (label, max(arrived_s, label.end_s + moved_s))
                    for q, labels in before.items()
                    for moved_s in [max(_moved_s(f, q, p) for f in inputs if f.location is None)]
                    for label in labels
                ]
            last[p] = _undominated(
                Label(
                    start_s + lasts_s,
                    label.energy_j + more_j,
                    (*label.processor, p),
                    (*label.start_s, start_s),
                )
                for label, start_s in ways
            )
    return [label for labels in last.values() for label in labels]


def _moved_s(flow: Flow, source: int | None, target: int) -> float:
    return 0.0 if source is None else flow.transfer_s[source][target]


def _undominated(labels: Iterable[Label]) -> list[Label]:
    kept, least_j = [], inf
    for label in sorted(labels, key=lambda label: (label.end_s, label.energy_j)):
        if label.energy_j < least_j:
            kept.append(label)
            least_j = label.energy_j
    return kept
