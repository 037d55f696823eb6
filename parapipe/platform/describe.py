"""Platforms as plain data, for people and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parapipe.errors import PlatformError
from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.platform.load import find, load_platform, shipped
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class PlatformRow:
    """A shipped platform in a list.

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
class ProcessorRow:
    """A processor in a table: its default operating point and what follows from it.

    Parameters
    ----------
    power_w
        Static power plus that of the hungriest operator class.
    """

    name: str
    kind: str
    backend: str
    description: str
    cores: tuple[int, ...]
    host: str | None
    data_types: tuple[str, ...]
    frequency_hz: float
    voltage_v: float
    operating_points: int
    static_power_w: float
    power_w: float


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
    """A platform in tables."""

    name: str
    description: str
    profile: str
    idle_power_w: float
    bandwidth_bytes_per_s: float
    processors: tuple[ProcessorRow, ...]
    links: tuple[LinkRow, ...]
    sources: tuple[SourceRow, ...]


def list_platforms() -> tuple[PlatformRow, ...]:
    """Return a row for each shipped platform, sorted by name."""
    return tuple(_row(name) for name in shipped())


def _row(name: str) -> PlatformRow:
    file = str(find(name))
    try:
        platform = load_platform(name)
    except PlatformError as error:
        return PlatformRow(name, "", (), file, error.mistakes or (str(error),))
    return PlatformRow(name, platform.description, platform.names, file)


def as_dict(platform: Platform) -> dict[str, object]:
    """Return the platform in the file's own words, ready for JSON."""
    return platform.model_dump(mode="json", by_alias=True, exclude_unset=True)


def describe(platform: Platform) -> PlatformDescription:
    """Return the platform's tables."""
    return PlatformDescription(
        name=platform.name,
        description=platform.description,
        profile=platform.profile_name,
        idle_power_w=platform.idle_power_w,
        bandwidth_bytes_per_s=platform.memory.bandwidth_bytes_per_s,
        processors=_processors(platform),
        links=tuple(_links(platform)),
        sources=_sources(platform),
    )


def _processors(platform: Platform) -> tuple[ProcessorRow, ...]:
    return tuple(
        ProcessorRow(
            name=p.name,
            kind=p.kind,
            backend=p.backend,
            description=p.description,
            cores=p.cores,
            host=p.host,
            data_types=p.data_types,
            frequency_hz=p.point.frequency_hz,
            voltage_v=p.point.voltage_v,
            operating_points=len(p.operating_points),
            static_power_w=p.static_power_w,
            power_w=p.static_power_w + max(p.dynamic_power_w(each) for each in OPERATOR_CLASSES),
        )
        for p in platform.processors
    )


def _links(platform: Platform) -> Iterator[LinkRow]:
    for (p, q), link in sorted(platform.link_of.items()):
        yield LinkRow(
            sender=platform.names[p],
            receiver=platform.names[q],
            latency_s=link.time_s(0) - link.overhead_s,
            per_mebibyte_s=link.time_s(2**20) - link.time_s(0),
            overhead_s=link.overhead_s,
            occupies=link.occupies,
            provenance=platform.sources[link.source].provenance,
        )


def _sources(platform: Platform) -> tuple[SourceRow, ...]:
    sections: dict[str, list[str]] = {key: [] for key in platform.sources}
    for name, source in _named(platform):
        sections[source].append(name)
    return tuple(
        SourceRow(key, source.provenance, source.title, tuple(sections[key]))
        for key, source in platform.sources.items()
    )


def _named(platform: Platform) -> Iterator[tuple[str, str]]:
    yield "board", platform.board.source
    yield "memory", platform.memory.source
    for p in platform.processors:
        yield p.name, p.source
        if p.operators.source is not None:
            yield f"{p.name}.operators", p.operators.source
        for key in ("clock", "launch", "peak", "memory", "power", "input", "output"):
            yield f"{p.name}.{key}", getattr(p, key).source
        for key in ("scaling", "switching"):
            if (section := getattr(p.clock, key)) is not None:
                yield f"{p.name}.clock.{key}", section.source
    for link in platform.links:
        arrow = "and" if link.both_ways else "to"
        yield f"{link.sender} {arrow} {link.receiver}", link.source
        if link.synchronisation is not None:
            name = f"{link.sender} {arrow} {link.receiver}.synchronisation"
            yield name, link.synchronisation.source
