"""Platforms as plain data, for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parapipe.errors import PlatformError
from parapipe.files.mistakes import KeyPath
from parapipe.platform.catalogue import KINDS, Part, catalogue, platforms
from parapipe.platform.consistency import named_sources
from parapipe.platform.load import find_platform, load_platform
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class PlatformRow:
    """A platform that has a name, in a list.

    Parameters
    ----------
    processors
        Their names, in order.
    mistakes
        What is wrong with the file; empty if it can be used.
    """

    name: str
    description: str
    processors: tuple[str, ...]
    file: str
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkRow:
    """An ordered pair of processors in a table.

    Parameters
    ----------
    latency_s
        Seconds for a tensor of no size, conversion included.
    per_mebibyte_s
        Seconds that each mebibyte adds.
    overhead_s
        Seconds of synchronisation that each hand-over costs on top.
    occupies
        What a transfer keeps busy: nothing, sender, receiver or a shared link's name.
    """

    sender: str
    receiver: str
    latency_s: float
    per_mebibyte_s: float
    overhead_s: float
    occupies: str
    provenance: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source in a table, with the sections that name it (board, big.power, big to gpu)."""

    id: str
    provenance: str
    title: str
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlatformDescription:
    """A platform, with what its links and sources amount to in tables."""

    platform: Platform
    links: tuple[LinkRow, ...]
    sources: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class ChipRow:
    """A chip of the catalogue in a list."""

    name: str
    description: str
    processors: tuple[str, ...]
    memory: str


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the catalogue in a list.

    Parameters
    ----------
    macs_per_cycle
        Of one unit at most, by data type.
    share
        How much of that networks reach.
    sources
        Where rates, share, clock, bandwidth and power come from.
    """

    name: str
    kind: str
    description: str
    units: int
    frequency_hz: float
    macs_per_cycle: dict[str, float]
    share: float
    backend: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory of the catalogue in a list; its bandwidth is the data rate."""

    name: str
    description: str
    bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class CatalogueRows:
    """The catalogue in tables."""

    chips: tuple[ChipRow, ...]
    parts: tuple[PartRow, ...]
    memories: tuple[MemoryRow, ...]


def list_catalogue() -> CatalogueRows:
    """Return the tables of the catalogue, sorted by name within each kind."""
    figures, parts = catalogue(), catalogue().parts
    return CatalogueRows(
        chips=tuple(_chip_row(name, chip) for name, chip in figures.chips.items()),
        parts=tuple(_part_row(name, parts[name]) for name in sorted(parts, key=_order)),
        memories=tuple(
            MemoryRow(name, each.description, each.bandwidth_bytes_per_s)
            for name, each in figures.memories.items()
        ),
    )


def _chip_row(name: str, chip: Mapping[str, Any]) -> ChipRow:
    processors = (
        f"{each['name']} ({len(each['cores'])} × {each['part']})" if "cores" in each
        else f"{each.get('count', 1)} × {each['name']} ({each['part']})" if "count" in each
        else f"{each['name']} ({each['part']})"
        for each in chip["processors"]
    )  # fmt: skip
    return ChipRow(name, chip["description"], tuple(processors), chip["memory"])


def _order(name: str) -> tuple[int, str]:
    return KINDS.index(catalogue().parts[name].kind), name


def _part_row(name: str, part: Part) -> PartRow:
    achieved = part.achieved or catalogue().kinds[part.kind].achieved
    sections = (part.peak, achieved, part.clock, part.memory, part.power)
    sources = dict.fromkeys(each.source for each in sections if each)
    return PartRow(
        name=name,
        kind=part.kind,
        description=part.description,
        units=part.units,
        frequency_hz=part.clock.frequency_hz,
        macs_per_cycle={str(key): rate for key, rate in part.peak.macs_per_cycle.items()},
        share=achieved.share,
        backend=part.backend,
        sources=tuple(sources),
    )


def list_platforms() -> tuple[PlatformRow, ...]:
    """Return a row for each platform that is shipped or another package's, sorted by name."""
    return tuple(_platform_row(name) for name in platforms().names())


def _platform_row(name: str) -> PlatformRow:
    file = ""
    try:
        file = str(find_platform(name))
        platform = load_platform(file)
    except PlatformError as error:
        return PlatformRow(name, "", (), file, error.mistakes or (str(error),))
    return PlatformRow(name, platform.description, platform.names, file)


def as_dict(platform: Platform) -> dict[str, object]:
    """Return the platform in the file's own words, ready for JSON."""
    return platform.model_dump(mode="json", by_alias=True, exclude_unset=True)


def describe(platform: Platform) -> PlatformDescription:
    """Return the platform's tables."""
    links = tuple(
        LinkRow(
            sender=platform.names[p],
            receiver=platform.names[q],
            latency_s=link.time(0).value - link.overhead_s,
            per_mebibyte_s=link.time(2**20).value - link.time(0).value,
            overhead_s=link.overhead_s,
            occupies=link.occupies,
            provenance=platform.sources[link.source].provenance,
        )
        for (p, q), link in sorted(platform.link_of.items())
    )
    sections: dict[str, list[str]] = {key: [] for key in platform.sources}
    for path, source in named_sources(as_dict(platform)):
        own = path[:-1] if path[-1] == "source" else (*path[:-1], "voltage")
        sections[source].append(_section_name(platform, own))
    sources = tuple(
        SourceRow(key, source.provenance, source.title, tuple(sections[key]))
        for key, source in platform.sources.items()
    )
    return PlatformDescription(platform, links, sources)


def _section_name(platform: Platform, path: KeyPath) -> str:
    """Return a section's name for people: `big.power` for processors[0].power."""
    steps = path
    if path[0] == "processors":
        steps = (platform.names[int(path[1])], *path[2:])
    elif path[0] == "links":
        link = platform.links[int(path[1])]
        pair = f"{link.sender} {'and' if link.both_ways else 'to'} {link.receiver}"
        steps = (pair, *path[2:])
    elif path[0] == "memories":
        steps = ("memory", platform.memories[int(path[1])].name, *path[2:])
    return ".".join(map(str, steps))
