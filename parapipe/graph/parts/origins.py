"""Which operator of a model each operator of the split model is, is a part of, or serves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from parapipe.graph.parts.marks import own_and_run, whole_and_number


class Joined(Protocol):
    """An operator of a graph, or of a plan."""

    @property
    def id(self) -> str:
        """Name of its first output."""
        ...

    @property
    def inputs(self) -> Sequence[str]:
        """Names of what it reads."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Names of what it makes."""
        ...


def origins(operators: Sequence[Joined], model: Collection[str]) -> Mapping[str, str]:
    """Return the id of the model's operator for each id of the split model's.

    What cuts a tensor for parts or joins them belongs to the first operator that reads the result,
    or else to the one that makes what it reads.

    Parameters
    ----------
    operators
        Of the split model, in topological order.
    model
        Ids of the model's operators.
    """
    found = {each.id: own for each in operators if (own := _own(each.id, model))}
    if len(found) == len(operators):
        return found
    maker = {name: each.id for each in operators for name in each.outputs}
    makers = {each.id: [maker[n] for n in each.inputs if n in maker] for each in operators}
    readers: dict[str, list[str]] = defaultdict(list)
    for reader, sources in makers.items():
        for source in sources:
            readers[source].append(reader)
    for near, order in ((readers, reversed(operators)), (makers, operators)):
        for each in order:
            known = (found[other] for other in near[each.id] if other in found)
            if each.id not in found and (own := next(known, "")):
                found[each.id] = own
    return found


def _own(name: str, model: Collection[str]) -> str:
    """Return the id of the operator that this is, is a part or another run of; empty if none."""
    others = (found[0] for found in (whole_and_number(name), own_and_run(name)) if found)
    return next((own for own in (name, *others) if own in model), "")
