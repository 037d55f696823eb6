"""A platform with clusters divided: the parts as processors, and the links that they have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product

from parapipe.platform.division import Divisions, parts_of
from parapipe.platform.platform import Link, Platform

Division = Sequence[int] | None


def variants(platform: Platform) -> tuple[Platform, ...]:
    """Return the platform as it stands, then with its clusters divided in every combination.

    Parts are listed behind the platform's own processors, which keep their places; one that is
    divided stays in the list and runs nothing. A part has the links of its whole, and the clusters'
    `hand_over` to the other parts.
    """
    choices = ((None, *_into(processor.divisions)) for processor in platform.processors)
    _, *divisions = product(*choices)
    return (platform, *(_divided(platform, taken) for taken in divisions))


def holding(platform: Platform, names: Collection[str]) -> Platform:
    """Return the first variant that has all these processors; the platform itself if none has."""
    found = (each for each in variants(platform) if set(names) <= set(each.names))
    return next(found, platform)


def divisions_used(platform: Platform, processors: Collection[str]) -> tuple[str, ...]:
    """Say which clusters are divided of which a part is among some processors: `big 2+2`."""
    cores = {p.name: str(len(p.cores)) for p in platform.processors}
    return tuple(
        f"{whole.name} {'+'.join(cores[part] for part in whole.divided_into)}"
        for whole in platform.processors
        if not set(whole.divided_into).isdisjoint(processors)
    )


def _into(divisions: Divisions | None) -> Sequence[Division]:
    return divisions.into if divisions else ()


def _divided(platform: Platform, taken: Sequence[Division]) -> Platform:
    processors, added = list(platform.processors), []
    parts: dict[str, list[str]] = {}
    for p, sizes in enumerate(taken):
        if sizes is not None:
            whole = processors[p]
            cores = parts_of(whole.name, whole.cores, sizes)
            parts[whole.name] = [*cores]
            processors[p] = whole.divided(parts[whole.name])
            added += [whole.part(name, own) for name, own in cores.items()]
    return platform.model_copy(
        update={
            "processors": (*processors, *added),
            "links": (*platform.links, *_links(platform, parts)),
        }
    )


def _links(platform: Platform, parts: dict[str, list[str]]) -> Iterator[Link]:
    """Yield the links of the parts: those of their wholes, and between parts of one whole."""
    for link in platform.links:
        ends = [(each, *parts.get(each, ())) for each in (link.sender, link.receiver)]
        for sender, receiver in [*product(*ends)][1:]:
            yield link.model_copy(update={"sender": sender, "receiver": receiver})
    for name, own in parts.items():
        divisions = platform.processors[platform.index(name)].divisions
        assert divisions is not None
        between = {**divisions.hand_over.model_dump(), "source": divisions.source}
        for one, other in combinations((name, *own), 2):
            yield Link.model_validate({"from": one, "to": other, "both_ways": True, **between})
