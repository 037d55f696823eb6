"""Operating points in front.json, and in the drawing of a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.cost.operating_points import Settings
from parapipe.formats.front_schema import DvfsRow, OperatingPointRow, ProcessorRow
from parapipe.platform.platform import Platform
from parapipe.platform.processor import OperatingPoint, Processor


def point_row(point: OperatingPoint) -> OperatingPointRow:
    """Return an operating point as a row."""
    return OperatingPointRow(frequency_hz=point.frequency_hz, voltage_v=point.voltage_v)


def defaults_hz(platform: Platform) -> dict[str, float]:
    """Return the default frequency of each processor, by name."""
    return {p.name: p.clock.default_frequency_hz for p in platform.processors}


def drawn_name(processor: ProcessorRow, defaults_hz: Mapping[str, float]) -> str:
    """Return its name, followed by its gigahertz if it is not at its default frequency."""
    frequency_hz = processor.operating_point.frequency_hz
    if frequency_hz == defaults_hz[processor.name]:
        return processor.name
    return f"{processor.name}@{frequency_hz / 1e9:.3g}"


def considered_points(settings: Settings) -> dict[str, DvfsRow] | None:
    """Return the operating points of each processor, None if there is one combination only."""
    if len(settings.combinations) == 1:
        return None
    processors = settings.combinations[0].platform.processors
    return {
        processor.name: _considered(processor, points)
        for processor, points in zip(processors, settings.points, strict=True)
    }


def _considered(processor: Processor, points: Sequence[OperatingPoint]) -> DvfsRow:
    switching = processor.clock.switching
    return DvfsRow(
        operating_points=tuple(map(point_row, points)),
        listed=len(processor.operating_points),
        switching_up_s=None if switching is None else switching.up_s,
        switching_down_s=None if switching is None else switching.down_s,
    )
