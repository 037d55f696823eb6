"""From the short form of a platform file to the full one, with figures of the catalogue.

A short file names a `chip`, or a `part` for each processor and a kind of memory; `count` stands for
identical processors, and `between` for the links of all pairs of two kinds. `base` names a shipped
platform that the file is a variant of. Whatever a file states itself wins. Files in full form are
left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Any

from parapipe.files.mistakes import KeyPath, Mistake, did_you_mean
from parapipe.files.yaml_file import Expansion
from parapipe.platform.catalogue import KINDS, Catalogue, catalogue, shipped, shipped_values
from parapipe.platform.consistency import MANY_PROCESSORS, named_sources
from parapipe.platform.from_part import full_processor

Raw = dict[str, Any]
Pair = tuple[str, str]


def expansion_of(raw: object) -> Expansion:
    """Return plain values of a platform file in full form."""
    if not isinstance(raw, Mapping) or not _is_short(raw):
        return Expansion(raw)
    return _Expander(dict(raw)).expansion()


def _is_short(raw: Mapping[str, Any]) -> bool:
    processors, links = _mappings_in(raw, "processors"), _mappings_in(raw, "links")
    return (
        "chip" in raw
        or "base" in raw
        or isinstance(raw.get("memory"), str)
        or any("part" in each or "count" in each for _, each in processors)
        or any("between" in each for _, each in links)
    )


def _mappings_in(raw: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    items = raw.get(key)
    listed = items if isinstance(items, tuple | list) else ()
    return [(i, each) for i, each in enumerate(listed) if isinstance(each, Mapping)]


@dataclass(slots=True)
class _Expander:
    """The file in the making.

    Parameters
    ----------
    names
        What a processor's name in the file stands for.
    inherited
        Processors of the chip or the base.
    """

    raw: Raw
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    uses_catalogue: bool = False
    own_sources: Mapping[str, Any] = field(default_factory=dict)
    inherited: Sequence[str] = ()

    def expansion(self) -> Expansion:
        self.own_sources = _as_mapping(self.raw.get("sources"))
        if "base" in self.raw:
            self._take_base()
        if "chip" in self.raw:
            self._take_chip()
        own = self.raw.get("processors", ())
        if not isinstance(own, tuple | list) or not all(isinstance(p, Mapping) for p in own):
            return Expansion(self.raw, self.origins, tuple(self.mistakes))
        self._take_memory()
        self._make_processors(own)
        self._make_links()
        self._name_memories()
        self._take_sources()
        return Expansion(self.raw, self.origins, tuple(self.mistakes))

    def _add_mistake(self, path: KeyPath, text: str) -> None:
        self.mistakes.append(Mistake(path, text))

    def _spelling(self, path: KeyPath, field_: str, what: str, name: object) -> str | None:
        """Return the name of an entry of the catalogue as it is spelled there."""
        entries = getattr(catalogue(), field_)
        spelling = catalogue().spelling_of(field_, str(name))
        if spelling is None:
            names = ", ".join(entries)
            text = f"'{name}' is no {what} of the catalogue; known: {names}"
            self._add_mistake(path, text + did_you_mean(str(name), entries))
        self.uses_catalogue = True
        return spelling

    def _take_chip(self) -> None:
        name = self._spelling(("chip",), "chips", "chip", self.raw.pop("chip"))
        if name is not None:
            self._merge_inherited("chip", catalogue().chips[name])

    def _take_base(self) -> None:
        name = self.raw.pop("base")
        if "chip" in self.raw:
            self._add_mistake(("base",), "stands beside 'chip'; keep one of them")
        elif name not in shipped():
            names = ", ".join(shipped())
            text = f"'{name}' is no shipped platform; shipped: {names}"
            self._add_mistake(("base",), text + did_you_mean(str(name), shipped()))
        else:
            self._merge_inherited("base", expansion_of(shipped_values(name)).value)

    def _merge_inherited(self, key: str, full: object) -> None:
        """Take what the file does not state itself from what the key names."""
        values = dict(_as_mapping(full))
        inherited = {each["name"]: each for each in values.pop("processors")}
        self.inherited = [str(name) for name in inherited]
        own = _mappings_in(self.raw, "processors")
        by_name = {str(each.get("name")): (i, each) for i, each in own}
        merged: list[Raw] = []
        for processor, entry in inherited.items():
            index, changes = by_name.pop(processor, (None, {}))
            origin = (key,) if index is None else ("processors", index)
            self.origins["processors", len(merged)] = origin
            merged.append(dict(changes) if "part" in changes else {**entry, **changes})
        for index, changes in by_name.values():
            self.origins["processors", len(merged)] = ("processors", index)
            merged.append(dict(changes))
        sources = {**values.pop("sources", {}), **_as_mapping(self.raw.get("sources"))}
        self.raw = {**values, **self.raw, "processors": tuple(merged), "sources": sources}

    def _take_memory(self) -> None:
        name = self.raw.get("memory")
        figures: Catalogue = catalogue()
        path = ("memory",)
        if isinstance(name, str) and (kind := self._spelling(path, "memories", "memory", name)):
            rate, share = figures.memories[kind], figures.memory_share
            self._add_source("memory", f"{share.share:g} of the data rate.", rate, share)
            bandwidth = rate.bandwidth_bytes_per_s * share.share
            self.raw["memory"] = {"bandwidth_bytes_per_s": bandwidth, "source": "memory"}
        if "board" not in self.raw:
            self.raw["board"] = figures.board.model_dump()

    def _add_source(self, key: str, how: str, *sections: Any) -> str:  # noqa: ANN401 - sections
        """Add a source for figures that follow from several sections of the catalogue."""
        sources = [
            catalogue().sources[key] for key in dict.fromkeys(each.source for each in sections)
        ]
        reasons = " ".join(filter(None, [how, *(each.reasoning for each in sources)]))
        links = [url for each in sources if (url := each.url)]
        source = {
            "provenance": "nominal",
            "title": "; ".join(each.title for each in sources),
            "reasoning": reasons,
            **({"url": links[0]} if links else {}),
        }
        self._check_source(key)
        self.raw["sources"] = {key: source, **_as_mapping(self.raw.get("sources"))}
        return key

    def _check_source(self, key: str) -> None:
        if key in self.own_sources:
            text = "is the name of a source that the catalogue's figures rest on; rename it"
            self._add_mistake(("sources", key), text)

    def _make_processors(self, own: Sequence[Mapping[str, Any]]) -> None:
        origins, self.origins = self.origins, {}
        processors: list[Raw] = []
        for index, entry in enumerate(own):
            origin = origins.get(("processors", index), ("processors", index))
            for each in self._copies(self._full_processor(dict(entry), origin), origin):
                self.origins["processors", len(processors)] = origin
                processors.append(each)
        peaks = {p.get("name"): _core_peak(p) for p in processors if p.get("kind") == "cpu"}
        for each in processors:
            if each.pop("part", None) and each.get("kind") != "cpu" and peaks:
                each.setdefault("host", max(peaks, key=lambda name: peaks[name]))
        self.raw["processors"] = tuple(processors)

    def _full_processor(self, entry: Raw, origin: KeyPath) -> Raw:
        if "part" not in entry:
            return entry
        name = self._spelling((*origin, "part"), "parts", "part", entry["part"])
        if name is None:
            return entry
        processor = full_processor(
            catalogue().parts[name], entry, self.raw.get("memory"), self._add_source
        )
        if isinstance(processor, str):
            self._add_mistake((*origin, "part"), processor)
            return entry
        return processor

    def _copies(self, entry: Raw, origin: KeyPath) -> Iterator[Raw]:
        count, name = entry.pop("count", 1), str(entry.get("name"))
        most = MANY_PROCESSORS
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= most:
            self._add_mistake((*origin, "count"), f"must be a whole number from 0 to {most}")
        elif count > 1 and entry.get("kind") == "cpu":
            text = "a CPU's cores have numbers; write each cluster by itself"
            self._add_mistake((*origin, "count"), text)
        elif count == 0 and name not in self.inherited:
            text = f"is 0, and '{name}' is no processor of a chip or base that it could leave out"
            self._add_mistake((*origin, "count"), text + did_you_mean(name, self.inherited))
        else:
            names = [name] if count == 1 else [f"{name}{i}" for i in range(count)]
            self.names[name] = names
            renamed = isinstance(entry.get("name"), str) and count != 1
            yield from ({**entry, "name": each} if renamed else entry for each in names)
            return
        yield entry

    def _make_links(self) -> None:
        kinds = {str(p.get("name")): str(p.get("kind")) for p in self.raw["processors"]}
        defaults: list[tuple[KeyPath, frozenset[object], Raw]] = []
        links: list[Raw] = []
        for index, entry in _mappings_in(self.raw, "links"):
            link = dict(entry)
            if "between" in link:
                between = link.pop("between")
                pair = between if isinstance(between, tuple | list) else ()
                if len(pair) != 2 or any(kind not in KINDS for kind in pair):
                    text = "must name two kinds, as in [cpu, npu]"
                    self._add_mistake(("links", index, "between"), text)
                    continue
                defaults.append((("links", index), frozenset(pair), link))
                continue
            for each in self._links_between(link):
                self.origins["links", len(links)] = ("links", index)
                links.append(each)
        if self.uses_catalogue:
            for kind_link in catalogue().links:
                link = kind_link.model_dump(exclude_unset=True, exclude={"between"})
                defaults.append((("links",), frozenset(kind_link.between), link))
        covered = {pair for link in links for pair in _link_pairs(link)}
        for one, other in combinations(kinds, 2):
            both = frozenset((kinds[one], kinds[other]))
            default = next(((o, link) for o, pair, link in defaults if pair == both), None)
            uncovered = [p for p in ((one, other), (other, one)) if p not in covered]
            if default is None or not uncovered:
                continue
            self.origins["links", len(links)] = default[0]
            sender, receiver = uncovered[0]
            direction = {"both_ways": True} if len(uncovered) > 1 else {}
            links.append({"from": sender, "to": receiver, **direction, **default[1]})
        self.raw["links"] = tuple(links)

    def _links_between(self, link: Raw) -> Iterator[Raw]:
        """Yield a link between each two of the processors that its ends stand for."""
        ends = [link.get("from"), link.get("to")]
        senders, receivers = (self.names.get(str(end), [end]) for end in ends)
        if ends[0] == ends[1] and len(senders) > 1:
            link.pop("both_ways", None)
            pairs = list(permutations(senders, 2))
        else:
            pairs = list(product(senders, receivers))
        for sender, receiver in pairs:
            yield {**link, "from": sender, "to": receiver}

    def _name_memories(self) -> None:
        """Put all processors that a name stands for into the memory that names it."""
        memories = self.raw.get("memories")
        if isinstance(memories, tuple | list):
            self.raw["memories"] = tuple(map(self._name_processors, memories))

    def _name_processors(self, memory: object) -> object:
        if not isinstance(memory, Mapping):
            return memory
        listed = memory.get("processors")
        if not isinstance(listed, tuple | list):
            return memory
        names = [name for each in listed for name in self.names.get(str(each), [each])]
        return {**memory, "processors": tuple(names)}

    def _take_sources(self) -> None:
        """Add the catalogue's sources that sections name."""
        if not self.uses_catalogue:
            return
        used = {source for _, source in named_sources({**self.raw, "sources": {}})}
        catalogued = catalogue().sources
        needed = {
            key: catalogued[key].model_dump(exclude_unset=True)
            for key in sorted(used.intersection(catalogued))
        }
        for key in needed:
            self._check_source(key)
        self.raw["sources"] = {**_as_mapping(self.raw.get("sources")), **needed}


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _core_peak(processor: Raw) -> float:
    rates = _as_mapping(_as_mapping(processor.get("peak")).get("macs_per_s"))
    rate, cores = rates.get("float32"), processor.get("cores")
    if not (isinstance(rate, int | float) and isinstance(cores, tuple | list) and cores):
        return 0.0
    return float(rate) / len(cores)


def _link_pairs(link: Raw) -> tuple[Pair, ...]:
    pair = (str(link.get("from")), str(link.get("to")))
    return (pair, pair[::-1]) if link.get("both_ways") is True else (pair,)
