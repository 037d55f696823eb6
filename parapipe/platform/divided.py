"""A platform with clusters divided, or streams: parts as processors, and the links they have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product
from math import prod

from parapipe.platform.platform import Link, Platform
from parapipe.platform.processor import Processor
from parapipe.platform.sections import Divisions, Streams

Division = tuple[int, ...] | None


def variant_count(platform: Platform) -> int:
    """Return how many variants a platform has."""
    return prod(1 + len(_divisions_of(processor.division)) for processor in platform.processors)


def variants(platform: Platform) -> Iterator[Platform]:
    """Yield the platform as it stands, then with its processors divided in every combination.

    The cores of clusters are divided, and other processors into streams. Parts are listed behind
    the platform's own processors, which keep their places; one that is divided stays in the list
    and runs nothing. A part has the links of its whole, and the `hand_over` to the other parts.
    """
    choices = ((None, *_divisions_of(processor.division)) for processor in platform.processors)
    yield from (_divide(platform, divisions) for divisions in product(*choices))


def variant_with(platform: Platform, names: Collection[str]) -> Platform:
    """Return a variant that has all these processors; the platform itself if none has."""
    divisions: list[Division] = []
    for whole in platform.processors:
        choices = {
            sizes: {p.name for p in whole.parts(sizes)} for sizes in _divisions_of(whole.division)
        }
        own = set().union(*choices.values()).intersection(names)
        matches = [sizes for sizes, parts in choices.items() if own <= parts]
        if own and not matches:
            return platform
        divisions.append(matches[0] if own else None)
    return _divide(platform, divisions)


def named_processors(platform: Platform) -> dict[str, Processor]:
    """Return a platform's processors and all parts that it can divide them into, by name."""
    parts = (
        part
        for whole in platform.processors
        for sizes in _divisions_of(whole.division)
        for part in whole.parts(sizes)
    )
    return {processor.name: processor for processor in (*platform.processors, *parts)}


def divisions_used(platform: Platform, processors: Collection[str]) -> tuple[str, ...]:
    """Say how what some processors are parts of is divided: `big 2+2`, `gpu 3 streams`."""
    cores = {p.name: str(len(p.cores)) for p in platform.processors}

    def division_text(whole: Processor) -> str:
        parts = whole.divided_into
        return f"{len(parts)} streams" if whole.streams else "+".join(cores[p] for p in parts)

    return tuple(
        f"{whole.name} {division_text(whole)}"
        for whole in platform.processors
        if not set(whole.divided_into).isdisjoint(processors)
    )


def _divisions_of(division: Divisions | Streams | None) -> Sequence[tuple[int, ...]]:
    return division.into if division else ()


def _divide(platform: Platform, divisions: Sequence[Division]) -> Platform:
    if all(sizes is None for sizes in divisions):
        return platform
    processors = list(platform.processors)
    added: list[Processor] = []
    parts: dict[str, list[str]] = {}
    for p, sizes in enumerate(divisions):
        if sizes is not None:
            whole = processors[p]
            its_parts = whole.parts(sizes)
            parts[whole.name] = [part.name for part in its_parts]
            processors[p] = whole.divided(parts[whole.name])
            added += its_parts
    return platform.model_copy(
        update={
            "processors": (*processors, *added),
            "links": (*platform.links, *_part_links(platform, parts)),
        }
    )


def _part_links(platform: Platform, parts: dict[str, list[str]]) -> Iterator[Link]:
    """Yield the links of the parts: those of their wholes, and between parts of one whole."""
    for link in platform.links:
        ends = [(each, *parts.get(each, ())) for each in (link.sender, link.receiver)]
        for sender, receiver in [*product(*ends)][1:]:
            yield link.model_copy(update={"sender": sender, "receiver": receiver})
    for name, its_parts in parts.items():
        division = platform.processors[platform.index(name)].division
        assert division is not None
        between = {**division.hand_over.model_dump(), "source": division.source}
        for one, other in combinations((name, *its_parts), 2):
            yield Link.model_validate({"from": one, "to": other, "both_ways": True, **between})
