"""A processor in full form, made of a part of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from parapipe.platform.catalogue import KindDefaults, Part, catalogue

Raw = dict[str, Any]
SHORT_KEYS = ("units", "frequency_hz")


class AddSource(Protocol):
    """Adds a source for figures that follow from several sections, and returns its key."""

    def __call__(self, key: str, how: str, *sections: Any) -> str:  # noqa: ANN401 - sections
        """Take the key, how the figures follow, and the sections."""


def full_processor(part: Part, entry: Raw, memory: object, add_source: AddSource) -> Raw | str:
    """Return a processor's sections, those of the entry first; a text says what is wrong.

    Parameters
    ----------
    entry
        What the file says of the processor: name, cores or units, clock, and sections of its own.
    memory
        The memory that all share, as the full file has it.
    """
    units = _unit_count(part, entry)
    if isinstance(units, str):
        return units
    kind = catalogue().kinds[part.kind]
    processor: Raw = {
        "name": entry.get("name"),
        "kind": part.kind,
        "backend": part.backend,
        "description": part.description if units == 1 else f"{units} × {part.description}",
        "source": kind.data_types.source,
        **_operators(part),
        **({"compiler": part.compiler.model_dump()} if part.compiler else {}),
        **({"compiled": part.compiled.model_dump()} if part.compiled else {}),
        **{key: value for key, value in entry.items() if key not in SHORT_KEYS},
        "clock": _clock(part, entry, kind),
    }
    point = _default_point(processor["clock"])
    if point is None:
        return processor
    figures = _NominalFigures(part, kind, units, *point, str(entry.get("name")), add_source)
    processor.setdefault("launch", kind.launch.model_dump())
    if "peak" not in processor:
        processor["peak"] = figures.peak(entry.get("data_types"))
    if "data_types" not in processor and isinstance(processor["peak"], Mapping):
        rates = processor["peak"].get("macs_per_s")
        processor["data_types"] = tuple(rates) if isinstance(rates, Mapping) else ()
    if part.segments:
        processor.setdefault("segments", part.segments.model_dump(exclude_unset=True))
    if "memory" not in processor:
        processor["memory"] = figures.memory(memory)
    if part.rates and "peak" not in entry and "memory" not in entry:
        processor.setdefault("rates", part.rates.model_dump())
    if "power" not in processor:
        processor["power"] = figures.power()
    for port in ("input", "output"):
        processor.setdefault(port, kind.frame.model_dump(exclude_unset=True))
    return processor


def _unit_count(part: Part, entry: Raw) -> int | str:
    if part.kind == "cpu":
        cores = entry.get("cores")
        if not isinstance(cores, tuple | list) or not cores:
            return "needs the numbers of its cores beside it, as in cores: [0, 1, 2, 3]"
        return len(cores)
    units = entry.get("units", part.units)
    if not isinstance(units, int) or isinstance(units, bool) or not 1 <= units <= 1000:
        return "needs a whole number from 1 to 1000 as units"
    return units


def _operators(part: Part) -> Raw:
    if part.operators is None:
        return {}
    support = catalogue().operators[part.operators]
    return {"operators": support.model_dump(by_alias=True, exclude_unset=True)}


def _clock(part: Part, entry: Raw, kind: KindDefaults) -> object:
    stated, own = entry.get("frequency_hz"), entry.get("clock")
    if own is not None and not isinstance(own, Mapping):
        return own
    if own is None:
        frequency_hz = part.clock.frequency_hz if stated is None else stated
        point = {"frequency_hz": frequency_hz, "voltage_v": part.clock.voltage_v}
        source = part.clock.source if stated is None else "stated-clock"
        own = {"default_frequency_hz": frequency_hz, "points": (point,), "source": source}
    elif stated is not None:
        own = {**own, "default_frequency_hz": stated}
    return {"scaling": kind.scaling.model_dump(), **own}


def _default_point(clock: object) -> tuple[float, float] | None:
    """Return frequency and voltage of the default operating point; None if the clock is wrong."""
    if not isinstance(clock, Mapping):
        return None
    default, points = clock.get("default_frequency_hz"), clock.get("points")
    for point in points if isinstance(points, tuple | list) else ():
        if isinstance(point, Mapping) and point.get("frequency_hz") == default:
            voltage_v = point.get("voltage_v")
            if _is_positive(default) and _is_positive(voltage_v):
                return float(str(default)), float(str(voltage_v))
    return None


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e30


@dataclass(frozen=True, slots=True)
class _NominalFigures:
    """What follows from a part for a processor with so many units at its top clock."""

    part: Part
    kind: KindDefaults
    units: int
    frequency_hz: float
    voltage_v: float
    name: str
    add_source: AddSource

    def peak(self, data_types: object) -> Raw:
        """Return the achieved rates of the data types that are wanted; of all if that is None."""
        stated = self.part.peak.macs_per_cycle
        rates = dict(stated)
        for dtype, each in self.kind.data_types.types.items():
            if each.of in stated:
                rates.setdefault(dtype, stated[each.of] * each.share)
        if isinstance(data_types, tuple | list):
            rates = {dtype: rate for dtype, rate in rates.items() if dtype in data_types}
        achieved = self.part.achieved or self.kind.achieved
        cycle_rates = ", ".join(f"{rate:g} in {dtype}" for dtype, rate in stated.items())
        how = (
            f"Multiply-accumulates per cycle ({cycle_rates}) × {self.units} × "
            f"{self.frequency_hz / 1e9:g} GHz × {achieved.share:g}, the share that networks reach."
        )
        scale = self.units * self.frequency_hz * achieved.share
        sections = (self.part.peak, achieved, self.kind.data_types)
        return {
            "macs_per_s": {dtype: four_digits(rate * scale) for dtype, rate in rates.items()},
            "source": self.add_source(f"{self.name}-peak", how, *sections),
        }

    def memory(self, shared: object) -> object:
        """Return the bandwidth of the units together, at most that of the memory they share."""
        shared_rate = shared.get("bandwidth_bytes_per_s") if isinstance(shared, Mapping) else None
        if self.part.memory is None or not _is_positive(shared_rate):
            return shared
        unit_rate = self.part.memory.bandwidth_bytes_per_s
        if self.units * unit_rate >= float(str(shared_rate)):
            return shared
        how = f"{self.units} × {unit_rate / 1e9:g} GB/s, less than the memory's."
        return {
            "bandwidth_bytes_per_s": four_digits(self.units * unit_rate),
            "source": self.add_source(f"{self.name}-bandwidth", how, self.part.memory),
        }

    def power(self) -> Raw:
        """Return the coefficients of equation (8) of Para-Pipe."""
        unit_alpha = self.part.power.alpha_w_per_v2_hz
        full_w = self.units * unit_alpha * self.voltage_v**2 * self.frequency_hz
        how = f"{self.units} × {unit_alpha:.4g} W/(V²·Hz), {full_w:.3g} W at full utilisation."
        sections = (self.part.power, self.kind.power)
        return {
            "alpha_w_per_v2_hz": four_digits(self.units * unit_alpha),
            "beta_w_per_v": four_digits(self.kind.power.static_share * full_w / self.voltage_v),
            "utilisation": dict(self.kind.power.utilisation),
            "source": self.add_source(f"{self.name}-power", how, *sections),
        }


def four_digits(value: float) -> float:
    """Return four digits: no nominal figure is better than that, nor what a short test measures."""
    return float(f"{value:.4g}")
