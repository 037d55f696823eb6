"""A processor in full form, made of a part of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from parapipe.platform.catalogue import KindDefaults, Part, catalogue

Raw = dict[str, Any]
SHORT = ("units", "frequency_hz")


class AddSource(Protocol):
    """Adds a source for figures that follow from several sections, and returns its key."""

    def __call__(self, key: str, how: str, *sections: Any) -> str:  # noqa: ANN401 - sections
        """Take the key, how the figures follow, and the sections."""


def made_of(part: Part, entry: Raw, memory: object, add_source: AddSource) -> Raw | str:
    """Return a processor's sections, those of the entry first; a text says what is wrong.

    Parameters
    ----------
    entry
        What the file says of the processor: name, cores or units, clock, and sections of its own.
    memory
        The memory that all share, as the full file has it.
    """
    kind = catalogue().kinds[part.kind]
    units = _units(part, entry)
    if isinstance(units, str):
        return units
    name = entry.get("name")
    clock = _clock(part, entry, kind)
    made: Raw = {
        "name": name,
        "kind": part.kind,
        "backend": part.backend,
        "description": part.description if units == 1 else f"{units} × {part.description}",
        "source": kind.data_types.source,
        **({"operators": _operators(part)} if part.operators else {}),
        **{key: value for key, value in entry.items() if key not in SHORT},
        "clock": clock,
    }
    top = _top(clock)
    if top is None:
        return {**made, **{key: entry[key] for key in ("peak", "power") if key in entry}}
    made.setdefault("launch", kind.launch.model_dump())
    if "peak" not in made:
        made["peak"] = _peak(part, kind, units, top[0], entry, add_source)
    rates = made["peak"].get("macs_per_s") if isinstance(made["peak"], Mapping) else None
    made.setdefault("data_types", tuple(rates) if isinstance(rates, Mapping) else ())
    if "memory" not in made:
        made["memory"] = _memory(part, units, memory, name, add_source)
    if "power" not in made:
        made["power"] = _power(part, kind, units, top, name, add_source)
    frame = kind.frame.model_dump(exclude_unset=True)
    made.setdefault("input", frame)
    made.setdefault("output", dict(frame))
    return made


def _units(part: Part, entry: Raw) -> int | str:
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
    support = catalogue().operators[part.operators or ""]
    return support.model_dump(by_alias=True, exclude_unset=True)


def _clock(part: Part, entry: Raw, kind: KindDefaults) -> object:
    stated = entry.get("frequency_hz")
    own = entry.get("clock")
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


def _top(clock: object) -> tuple[float, float] | None:
    """Return frequency and voltage of the default operating point; None if the clock is wrong."""
    if not isinstance(clock, Mapping):
        return None
    default, points = clock.get("default_frequency_hz"), clock.get("points")
    for point in points if isinstance(points, tuple | list) else ():
        if isinstance(point, Mapping) and point.get("frequency_hz") == default:
            numbers = default, point.get("voltage_v")
            if all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
                return float(numbers[0]), float(numbers[1])
    return None


def _peak(
    part: Part, kind: KindDefaults, units: int, top_hz: float, entry: Raw, add_source: AddSource
) -> Raw:
    rates: dict[str, float] = dict(part.peak.macs_per_cycle)
    for dtype, derived in kind.data_types.types.items():
        if derived.of in part.peak.macs_per_cycle and dtype not in rates:
            rates[dtype] = part.peak.macs_per_cycle[derived.of] * derived.share
    wanted = entry.get("data_types", tuple(rates))
    if isinstance(wanted, tuple | list):
        rates = {dtype: rate for dtype, rate in rates.items() if dtype in wanted}
    achieved = part.achieved or kind.achieved
    stated = ", ".join(f"{rate:g} in {dtype}" for dtype, rate in part.peak.macs_per_cycle.items())
    how = (
        f"Multiply-accumulates per cycle ({stated}) × {units} × {top_hz / 1e9:g} GHz × "
        f"{achieved.share:g}, the share of the peak that networks reach."
    )
    sections = (part.peak, achieved, kind.data_types)
    return {
        "macs_per_s": {
            dtype: rounded(rate * units * top_hz * achieved.share) for dtype, rate in rates.items()
        },
        "source": add_source(f"{entry.get('name')}-peak", how, *sections),
    }


def _memory(
    part: Part, units: int, memory: object, name: object, add_source: AddSource
) -> object:
    whole = memory.get("bandwidth_bytes_per_s") if isinstance(memory, Mapping) else None
    if part.memory is None or not isinstance(whole, int | float):
        return memory
    most = units * part.memory.bandwidth_bytes_per_s
    if most >= whole:
        return memory
    how = f"{units} × {part.memory.bandwidth_bytes_per_s / 1e9:g} GB/s, less than the memory's."
    return {
        "bandwidth_bytes_per_s": rounded(most),
        "source": add_source(f"{name}-bandwidth", how, part.memory),
    }


def _power(
    part: Part,
    kind: KindDefaults,
    units: int,
    top: tuple[float, float],
    name: object,
    add_source: AddSource,
) -> Raw:
    frequency_hz, voltage_v = top
    alpha = part.power.alpha_w_per_v2_hz * units
    full_w = alpha * voltage_v**2 * frequency_hz
    how = f"{units} × {part.power.alpha_w_per_v2_hz:.4g} W/(V²·Hz); {full_w:.3g} W at the top."
    return {
        "alpha_w_per_v2_hz": rounded(alpha),
        "beta_w_per_v": rounded(kind.power.static_share * full_w / voltage_v),
        "utilisation": dict(kind.power.utilisation),
        "source": add_source(f"{name}-power", how, part.power, kind.power),
    }


def rounded(value: float) -> float:
    """Return four digits: no nominal figure is better than that."""
    return float(f"{value:.4g}")
