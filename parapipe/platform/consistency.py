"""Contradictions between parts of a platform, found even where other parts are wrong.

The functions take the raw values of a file, so that all mistakes are told at once: what is not
of the expected shape is passed over here, because its own mistake is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.platform.mistake import KeyPath, Mistake, did_you_mean, nearest

MANY_PROCESSORS = 32
_ALIKE = (0.6, 0.8)  # how like a word of its own a link's name may be at most, given once or more
OCCUPIED = ("nothing", "sender", "receiver")


def contradictions(raw: object) -> Iterator[Mistake]:
    """Yield every contradiction in the raw values of a platform file."""
    platform = _mapping(raw)
    processors = [_mapping(item) for item in _sequence(platform.get("processors"))]
    names = [name for p in processors if isinstance(name := p.get("name"), str)]
    yield from _repeated_names(processors)
    yield from _shared_cores(processors)
    for index, processor in enumerate(processors):
        path: KeyPath = ("processors", index)
        yield from _wrong_host(processor, processors, path)
        yield from _wrong_clock(_mapping(processor.get("clock")), path)
        yield from _wrong_peaks(processor, path)
        for keys in (("power", "utilisation"), ("clock", "scaling", "compute_share")):
            yield from _missing_shares(processor, keys, path)
    yield from _wrong_links(platform, names)
    yield from _wrong_occupations(platform, names)
    yield from _unknown_sources(platform)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple | list) else ()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _repeated_names(processors: Sequence[Mapping[str, object]]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, processor in enumerate(processors):
        name = processor.get("name")
        if isinstance(name, str) and first.setdefault(name, index) != index:
            text = f"'{name}' is also the name of processors[{first[name]}]; rename one"
            yield Mistake(("processors", index, "name"), text)


def _shared_cores(processors: Sequence[Mapping[str, object]]) -> Iterator[Mistake]:
    owner: dict[int, int] = {}
    for index, processor in enumerate(processors):
        for position, core in enumerate(_sequence(processor.get("cores"))):
            if isinstance(core, bool) or not isinstance(core, int):
                continue
            if core in owner:
                text = f"core {core} is already listed in processors[{owner[core]}]; list it once"
                yield Mistake(("processors", index, "cores", position), text)
            owner.setdefault(core, index)


def _wrong_host(
    processor: Mapping[str, object], processors: Sequence[Mapping[str, object]], path: KeyPath
) -> Iterator[Mistake]:
    host = processor.get("host")
    if not isinstance(host, str):
        return
    # A kind that is itself misspelt says nothing about who is a CPU.
    kinds = {str(each.get("name")): each.get("kind") for each in processors}
    if processor.get("kind") == "cpu":
        yield Mistake((*path, "host"), "a CPU needs no host; delete the key")
    elif kinds.get(host) in (None, "gpu", "npu", "dsp"):
        known = ", ".join(name for name, kind in kinds.items() if kind == "cpu") or "none"
        yield Mistake((*path, "host"), f"'{host}' is no CPU of this platform; known: {known}")


def _wrong_clock(clock: Mapping[str, object], path: KeyPath) -> Iterator[Mistake]:
    points = [_mapping(point).get("frequency_hz") for point in _sequence(clock.get("points"))]
    for position, frequency in enumerate(points):
        if _is_number(frequency) and frequency in points[:position]:
            where = (*path, "clock", "points", position, "frequency_hz")
            yield Mistake(where, f"{frequency} Hz is listed twice; keep one")
    default = clock.get("default_frequency_hz")
    if _is_number(default) and points and all(map(_is_number, points)) and default not in points:
        where = (*path, "clock", "default_frequency_hz")
        yield Mistake(where, f"{default} Hz is not among the points; add it or choose one of them")


def _wrong_peaks(processor: Mapping[str, object], path: KeyPath) -> Iterator[Mistake]:
    types = [t for t in _sequence(processor.get("data_types")) if isinstance(t, str)]
    for position, dtype in enumerate(types):
        if dtype in types[:position]:
            yield Mistake((*path, "data_types", position), f"'{dtype}' is listed twice; keep one")
    peaks = _mapping(processor.get("peak")).get("macs_per_s")
    if not isinstance(peaks, Mapping) or not types:
        return
    where = (*path, "peak", "macs_per_s")
    for dtype in dict.fromkeys(types):
        if dtype not in peaks:
            yield Mistake(where, f"has no peak for data type '{dtype}'; add it")
    for dtype in peaks:
        if dtype not in types:
            text = "is not among the data_types of the processor; add it there or delete it here"
            yield Mistake((*where, dtype), text)


def _missing_shares(
    processor: Mapping[str, object], keys: KeyPath, path: KeyPath
) -> Iterator[Mistake]:
    shares: object = processor
    for key in keys:
        shares = _mapping(shares).get(str(key))
    if not isinstance(shares, Mapping) or not {*OPERATOR_CLASSES}.issuperset(shares):
        return
    missing = [name for name in OPERATOR_CLASSES if name not in shares]
    if missing:
        text = f"says nothing of {', '.join(missing)}; add them or a default"
        yield Mistake((*path, *keys), text)


def _wrong_links(platform: Mapping[str, object], names: Sequence[str]) -> Iterator[Mistake]:
    covered: dict[tuple[str, str], int] = {}
    readable = True
    for index, item in enumerate(_sequence(platform.get("links"))):
        link = _mapping(item)
        path: KeyPath = ("links", index)
        ends = [end for key in ("from", "to") if isinstance(end := link.get(key), str)]
        for key in ("from", "to"):
            end = link.get(key)
            if isinstance(end, str) and end not in names:
                text = f"no processor is named '{end}'; known: {', '.join(names) or 'none'}"
                yield Mistake((*path, key), text + did_you_mean(end, names))
        if len(ends) < 2 or not set(ends) <= set(names):
            readable = False
            continue
        pair = (ends[0], ends[1])
        if pair[0] == pair[1]:
            text = f"joins '{pair[0]}' with itself, which costs nothing; delete it"
            yield Mistake(path, text)
            continue
        for each in (pair, pair[::-1]) if link.get("both_ways") is True else (pair,):
            if each in covered:
                text = f"{each[0]} to {each[1]} is already covered by links[{covered[each]}]"
                yield Mistake(path, text + "; delete one")
            covered.setdefault(each, index)
    yield from _missing_links(names, set(covered), readable)


def _wrong_occupations(platform: Mapping[str, object], names: Sequence[str]) -> Iterator[Mistake]:
    links = [_mapping(item).get("occupies") for item in _sequence(platform.get("links"))]
    for index, occupied in enumerate(links):
        if not isinstance(occupied, str) or occupied in OCCUPIED:
            continue
        path: KeyPath = ("links", index, "occupies")
        if occupied in names:
            text = f"'{occupied}' is a processor; write sender or receiver, whichever it is"
            yield Mistake(path, text)
        elif near := nearest(occupied, OCCUPIED, cutoff=_ALIKE[links.count(occupied) > 1]):
            text = f"'{occupied}' would be the name of a shared link; did you mean '{near}'?"
            yield Mistake(path, f"{text} If not, choose a name that is less like it")


def _missing_links(
    names: Sequence[str], covered: set[tuple[str, str]], readable: bool
) -> Iterator[Mistake]:
    # Where an end is misspelt, the pair it leaves open is not a second mistake.
    if not readable or len(names) > MANY_PROCESSORS:
        return
    missing = [pair for pair in permutations(dict.fromkeys(names), 2) if pair not in covered]
    if missing:
        pairs = ", ".join(f"{p} to {q}" for p, q in missing)
        yield Mistake(("links",), f"nothing is said of {pairs}; add a link for each")


def _unknown_sources(platform: Mapping[str, object]) -> Iterator[Mistake]:
    sources = platform.get("sources")
    if not isinstance(sources, Mapping):
        return
    rest = {key: value for key, value in platform.items() if key != "sources"}
    places: dict[str, list[KeyPath]] = {}
    for path, source in _named_sources(rest, ()):
        places.setdefault(source, []).append(path)
    for source, paths in places.items():
        if source not in sources:
            more = f" (nor for {len(paths) - 1} more sections)" if len(paths) > 1 else ""
            near = did_you_mean(source, map(str, sources))
            yield Mistake(
                paths[0], f"'{source}' is not among the sources{more}; add it there{near}"
            )


def _named_sources(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "source" and isinstance(item, str):
                yield (*path, key), item
            else:
                yield from _named_sources(item, (*path, str(key)))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _named_sources(item, (*path, index))
