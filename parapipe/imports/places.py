"""On which processors of a platform the layers of a file ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from parapipe.errors import ProfilingError
from parapipe.files.mistakes import did_you_mean, join_with_and, listed
from parapipe.imports.layers import Layer
from parapipe.platform.platform import Platform


def runs_of(layers: Sequence[Layer]) -> Iterator[tuple[Layer, ...]]:
    """Yield the layers of each inference that a file tells of.

    Where the same layers stand for several places, each of these ran the whole model; else all
    places ran it together.
    """
    names_of: dict[str, set[str]] = {}
    for layer in layers:
        names_of.setdefault(layer.place, set()).add(layer.name)
    if sum(map(len, names_of.values())) == len(set().union(*names_of.values())):
        yield tuple(layers)
        return
    for place in names_of:
        yield tuple(layer for layer in layers if layer.place == place)


def processors_of(
    places: Iterable[str], requested: Sequence[str], platform: Platform
) -> Mapping[str, str]:
    """Return the name of the processor that each place of a file is.

    Parameters
    ----------
    places
        In the tool's words; empty where it tells none.
    requested
        What the user said: `NAME` for all places, or `PLACE=NAME` for one.

    Raises
    ------
    ProfilingError
        If that is not said of a place, or the platform has no such processor.
    """
    places = tuple(dict.fromkeys(places))
    names = [processor.name for processor in platform.processors]
    said = _said(places, requested)
    known = {**{place: place for place in places if place in names}, **said}
    if len(names) == 1:
        known = {**dict.fromkeys(places, names[0]), **known}
    of_all = listed(names)
    if rest := [place for place in places if place not in known]:
        where = " and ".join(f"'{place}'" for place in rest if place)
        how = f"{rest[0]}=NAME" if len(places) > 1 else "NAME"
        raise ProfilingError(
            f"the file {f'tells of {where}' if where else 'does not tell where it ran'}, and "
            f"platform '{platform.name}' has the processors {of_all}; give `processor` {how}"
        )
    if strange := [name for name in known.values() if name not in names]:
        raise ProfilingError(
            f"platform '{platform.name}' has no processor '{strange[0]}' ({of_all})"
            f"{did_you_mean(strange[0], names)}; give `processor` one of these"
        )
    return {place: known[place] for place in places}


def _said(places: Sequence[str], requested: Sequence[str]) -> dict[str, str]:
    """Return what the user said of each place."""
    said = {}
    for each in requested:
        place, separator, name = each.rpartition("=")
        if separator and place not in places:
            there = join_with_and([f"'{p}'" for p in places if p] or ["no place"])
            raise ProfilingError(f"the file does not tell of '{place}' but of {there}")
        said.update(dict.fromkeys([place] if separator else places, name))
    return said
