"""Pins: operators that run on one processor only, since the user says so.

A pin holds for an operator of the graph that is mapped. It names this operator or any node that is
fused into it, or it is a shell pattern of such names. A name goes before a pattern. The parts of a
divided processor, and its streams, count as the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.errors import MappingError
from parapipe.files.mistakes import did_you_mean, join_with_and, listed, listed_sentences
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.platform.platform import Platform
from parapipe.platform.support import Refusal

Pins = Mapping[str, str]
"""Processors by the name of an operator, or by a shell pattern of names."""

PINNED = "pinned to "
"""How the cause of a refusal begins that is due to a pin."""


def pinned_operators(graph: OperatorGraph, platform: Platform, pins: Pins) -> dict[int, str]:
    """Return the processors that operators are pinned to, by the index of the operator.

    Raises
    ------
    MappingError
        A processor is unknown or left out, a pin matches no operator, or two of them disagree; it
        names all of these.
    """
    if not pins:
        return {}
    wrong = list(_unknown_processors(platform, pins))
    names = [{*_names_of(each, graph)} for each in graph.operators]
    every = dict.fromkeys(name for own in names for name in sorted(own))
    matched = {pin: [name for name in every if _matches(pin, name, every)] for pin in pins}
    wrong += (
        f"the pin '{pin}' matches no operator{did_you_mean(pin, every)}"
        for pin, some in matched.items()
        if not some
    )
    pinned: dict[int, str] = {}
    for v, own in enumerate(names):
        mine = [pin for pin, some in matched.items() if not own.isdisjoint(some)]
        mine = [pin for pin in mine if pin in own] or mine
        if len(targets := dict.fromkeys(pins[pin] for pin in mine)) > 1:
            where = join_with_and([f"{pins[pin]} by '{pin}'" for pin in mine])
            wrong.append(f"'{graph.operators[v].name}' is pinned to {where}; leave one")
        elif targets:
            (pinned[v],) = targets
    if wrong:
        raise MappingError(listed_sentences(wrong))
    return pinned


def _unknown_processors(platform: Platform, pins: Pins) -> Iterator[str]:
    """Yield a sentence for each processor that a pin cannot name."""
    for name in dict.fromkeys(pins.values()):
        if name in platform.names and not platform.processors[platform.index(name)].whole:
            continue
        own = [each.name for each in platform.processors if not each.whole]
        to = listed([f"'{pin}'" for pin, target in pins.items() if target == name])
        if name in (each.name for each in platform.excluded):
            yield f"{to} is pinned to {name}, which `exclude` leaves out; leave out one of the two"
            continue
        has = f"platform '{platform.name}' has {', '.join(own)}"
        yield f"{to} is pinned to '{name}', and {has}{did_you_mean(name, own)}"


def _names_of(operator: Operator, graph: OperatorGraph) -> Iterator[str]:
    """Yield the names that a pin may give an operator; of several models, for all their frames."""
    names = {operator.name, *operator.members}
    for part in (*operator.parts, *operator.folded):
        names.update(_names_of(part, graph))
    for member in graph.source.members:
        for frame in range(member.frames):
            prefix = member.prefix(frame)
            names = {
                f"{member.name}/{name.removeprefix(prefix)}" if name.startswith(prefix) else name
                for name in names
            }
    yield from names


def _matches(pin: str, name: str, every: Mapping[str, None]) -> bool:
    """Tell whether a pin is of a name; what is a name itself is no pattern."""
    return pin == name if pin in every else fnmatchcase(name, pin)


def with_pins(
    costs: CostTable, graph: OperatorGraph, platform: Platform, pinned: Mapping[int, str]
) -> CostTable:
    """Return costs by which operators run on the processors only that they are pinned to.

    Parameters
    ----------
    platform
        The one that the costs are of.

    Raises
    ------
    MappingError
        A processor cannot run what is pinned to it; it names all such operators, with the reasons.
    """
    if not pinned:
        return costs
    owners = [(each.whole or each).name for each in platform.processors]
    entries = list(costs.entries)
    wrong = []
    for v, name in pinned.items():
        own, operator = costs.entries[v], graph.operators[v]
        able = [p for p, owner in enumerate(owners) if owner == name]
        if not any(isinstance(own[p], OperatorCost) for p in able):
            others = [costs.processors[p] for p, e in enumerate(own) if isinstance(e, OperatorCost)]
            wrong.append(
                f"'{operator.name}' is pinned to {name}: {own[able[0]]}; {_able_text(others)}"
            )
        entries[v] = tuple(
            entry
            if p in able or isinstance(entry, Refusal)
            else Refusal(costs.processors[p], f"{PINNED}{name}", operator.type, operator.name)
            for p, entry in enumerate(own)
        )
    if wrong:
        raise MappingError(listed_sentences(wrong))
    return replace(costs, entries=tuple(entries))


def _able_text(names: list[str]) -> str:
    return f"{join_with_and(names)} can run it" if names else "no processor can"
