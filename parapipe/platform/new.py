"""A platform file in short form, of a chip or of parts of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from parapipe.errors import PlatformError
from parapipe.files.atomic import refuse_changed, write_atomically
from parapipe.files.mistakes import did_you_mean
from parapipe.platform.catalogue import Catalogue, Part, catalogue
from parapipe.platform.describe import as_dict
from parapipe.platform.load import read_platform

HEAD = "# Nominal figures of parapipe's catalogue; `parapipe platforms show` lists them.\n"
CLUSTERS: Mapping[int, Sequence[str]] = {
    1: ("cpu",), 2: ("little", "big"), 3: ("little", "big", "prime"),
}  # fmt: skip
_PART_PATTERN = re.compile(r"(?:(\d{1,4})x)?([^@]+?)(?:@([0-9.]+)(GHz|MHz))?")
_HERTZ = {"GHz": 1e9, "MHz": 1e6}
_EXAMPLE = "write it as in 4xCortex-A76@2.4GHz"


@dataclass(frozen=True, slots=True)
class NewPlatform:
    """A platform file.

    Parameters
    ----------
    text
        YAML that `load_platform` reads.
    processors
        Names of the processors it describes.
    """

    text: str
    processors: tuple[str, ...]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file, whole or not at all.

        Parameters
        ----------
        force
            Replace a file that is there and differs.

        Raises
        ------
        OutputError
            There is such a file, or it cannot be written.
        """
        place, content = Path(path), self.text.encode()
        if not force:
            refuse_changed(place, content)
        write_atomically(place, content)


@dataclass(frozen=True, slots=True)
class _PartRequest:
    """What was asked for: a part, how many units or copies, and a clock."""

    name: str
    part: Part
    number: int | None
    frequency_hz: float | None

    @property
    def core_rate(self) -> float:
        """Multiply-accumulates a second of a unit at most: the order of clusters."""
        frequency_hz = self.frequency_hz or self.part.clock.frequency_hz
        return max(self.part.peak.macs_per_cycle.values()) * frequency_hz


def new_platform(
    *,
    name: str | None,
    chip: str | None,
    parts: Mapping[str, Sequence[str]],
    memory: str | None,
    full: bool,
) -> NewPlatform:
    """Return a platform file of a chip, or of parts.

    Parameters
    ----------
    parts
        By kind, such as 4xCortex-A76@2.4GHz.
    full
        Write all figures down instead of naming parts.

    Raises
    ------
    PlatformError
        If the catalogue does not know a name, or something is missing.
    """
    figures = catalogue()
    lines = ["schema: parapipe/platform/1"]
    if chip is not None:
        spelling = figures.spelling_of("chips", chip) or _refuse_name("chip", chip, figures.chips)
        if parts["cpu"]:
            raise PlatformError(f"{spelling} has its CPU; leave out `cpu`, or `chip`")
        lines += [f"name: {name or spelling}", f"chip: {spelling}"]
    else:
        _check_complete(parts, memory, figures)
        lines += [f"name: {name or 'board'}"]
    if memory is not None:
        kind = figures.spelling_of("memories", memory)
        lines += [f"memory: {kind or _refuse_name('memory', memory, figures.memories)}"]
    requests = {
        kind: [_part_request(text, kind, figures) for text in texts]
        for kind, texts in parts.items()
    }
    if any(requests.values()):
        lines += ["processors:", *_cluster_lines(requests["cpu"]), *_accelerator_lines(requests)]
    text = HEAD + "\n".join(lines) + "\n"
    platform = read_platform(text, "the new platform")
    if full:
        text = HEAD + yaml.safe_dump(
            as_dict(platform), sort_keys=False, width=100, allow_unicode=True
        )
    return NewPlatform(text, platform.names)


def _check_complete(
    parts: Mapping[str, Sequence[str]], memory: str | None, figures: Catalogue
) -> None:
    if not parts["cpu"]:
        raise PlatformError(
            f"nothing says what the platform is made of: give a chip ({', '.join(figures.chips)}), "
            "or its CPU, as in 4xCortex-A76@2.4GHz, and memory"
        )
    if memory is None:
        raise PlatformError(f"the memory is missing; give one of {', '.join(figures.memories)}")


def _refuse_name(what: str, name: str, names: Mapping[str, object]) -> str:
    near = did_you_mean(name, names)
    raise PlatformError(f"the catalogue has no {what} '{name}'; it has {', '.join(names)}{near}")


def _part_request(text: str, kind: str, figures: Catalogue) -> _PartRequest:
    match = _PART_PATTERN.fullmatch(text.strip())
    if match is None:
        raise PlatformError(f"'{text}' is no part and its clock; {_EXAMPLE}")
    number, name, clock, unit = match.groups()
    of_kind = {key: part for key, part in figures.parts.items() if part.kind == kind}
    spelled = figures.spelling_of("parts", name) or _refuse_name(kind, name, of_kind)
    part = figures.parts[spelled]
    if part.kind != kind:
        raise PlatformError(f"{spelled} is a {part.kind}; give it as {part.kind}, not as {kind}")
    if number is not None and not 1 <= int(number) <= 1000:
        raise PlatformError(f"'{text}' asks for {number} units; give 1 to 1000")
    try:
        frequency_hz = None if clock is None else float(clock) * _HERTZ[unit]
    except ValueError:
        raise PlatformError(f"'{clock}' of '{text}' is no number; {_EXAMPLE}") from None
    return _PartRequest(spelled, part, None if number is None else int(number), frequency_hz)


def _cluster_lines(requests: Sequence[_PartRequest]) -> Iterator[str]:
    """Yield a line for each cluster, the slowest cores first, as Linux counts them."""
    ordered = sorted(requests, key=lambda each: each.core_rate)
    names = CLUSTERS.get(len(ordered), [f"cpu{i}" for i in range(len(ordered))])
    first = 0
    for name, each in zip(names, ordered, strict=True):
        number = each.number or 1
        cores = ", ".join(str(core) for core in range(first, first + number))
        first += number
        yield _processor_line(name, each, f", cores: [{cores}]")


def _accelerator_lines(requests: Mapping[str, Sequence[_PartRequest]]) -> Iterator[str]:
    for kind in ("gpu", "npu", "dsp"):
        several = len(requests[kind]) > 1
        for each in requests[kind]:
            counted = "units" if kind == "gpu" else "count"
            number = "" if each.number is None else f", {counted}: {each.number}"
            yield _processor_line(each.name.lower() if several else kind, each, number)


def _processor_line(name: str, each: _PartRequest, more: str) -> str:
    clock = "" if each.frequency_hz is None else f", frequency_hz: {each.frequency_hz / 1e9:g}e9"
    return f"  - {{name: {name}, part: {each.name}{more}{clock}}}"
