"""What operator classes reach on the boards whose operators were measured, by kind of processor.

A platform of the catalogue has one peak and one bandwidth for all classes. The boards say how far
classes are from them. Across these boards and their clusters,

- products reach a share of the peak that depends on the class: a 3×3 convolution more than a 1×1;
- what only moves elements (pools, normalisation, element-wise work) goes with the clock and the
  width of the processor, not with the memory: it has bytes per multiply-accumulate of the peak;
- a product of a vector with constants waits for the memory: it has bytes a second, whatever the
  processor.

Each is the geometric mean over the boards' processors of a kind. A class with fewer than three
measured operators has the bytes of element-wise work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from parapipe.cost.profile import Measurement, shipped_profiles
from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.platform.load import read_platform
from parapipe.platform.new import new_platform
from parapipe.platform.processor import Processor
from parapipe.profiling.rate_fit import PRODUCTS, STREAMING, Rates

BOARDS: Mapping[str, str] = {"a311d": "amlogic-a311d", "rk3399": "rockchip-rk3399pro"}
"""Chips of the catalogue whose operators were measured, and the profile of each."""
_FEWEST = 3
_LEAST_SHARE = 0.1  # of a time, that is not taken for the launch


@dataclass(frozen=True, slots=True)
class KindRates:
    """Rates of a kind of processor, each of a class.

    Parameters
    ----------
    share_of_peak
        Multiply-accumulates over those of the peak, of products.
    bytes_per_mac
        Bytes a second over the multiply-accumulates a second of the peak, of what moves elements.
    bytes_per_s
        Bytes a second, of products that wait for the memory.
    """

    share_of_peak: Mapping[str, float]
    bytes_per_mac: Mapping[str, float]
    bytes_per_s: Mapping[str, float]

    def of(self, processor: Processor) -> Rates:
        """Return the ratios that a processor has by them, of all classes."""
        peak, bandwidth = peak_of(processor), processor.memory.bandwidth_bytes_per_s
        like_convolutions = self.share_of_peak["conv1x1"]
        elementwise = self.bytes_per_mac["elementwise"]
        compute = {
            name: self.share_of_peak.get(name, like_convolutions) if name in PRODUCTS else 1.0
            for name in OPERATOR_CLASSES
        }
        moving = {
            name: self.bytes_per_mac.get(name, elementwise) * peak / bandwidth
            for name in OPERATOR_CLASSES
            if name not in PRODUCTS
        }
        waiting = {name: rate / bandwidth for name, rate in self.bytes_per_s.items()}
        return Rates(
            processor.launch.overhead_s,
            compute,
            {name: {**moving, **waiting}.get(name, 1.0) for name in OPERATOR_CLASSES},
        )


def peak_of(processor: Processor) -> float:
    """Return multiply-accumulates a second in float32, or else in the fastest type."""
    peaks = processor.peak.macs_per_s
    return peaks.get("float32") or max(peaks.values())


def kind_rates(kind: str, boards: Sequence[str] = tuple(BOARDS)) -> KindRates | None:
    """Return the rates of a kind of processor on some boards; None if none has the kind.

    Parameters
    ----------
    boards
        Chips of `BOARDS`.
    """
    each = [_rates_on(p, own) for chip in boards for p, own in _measured(chip, kind)]
    if not each:
        return None
    return KindRates(
        *(
            {name: geometric_mean(rates[name] for rates in some) for name in _common(some)}
            for some in zip(*each, strict=True)
        )
    )


def _common(some: Sequence[Mapping[str, float]]) -> list[str]:
    return [name for name in some[0] if all(name in rates for rates in some)]


def _measured(chip: str, kind: str) -> Iterator[tuple[Processor, list[Measurement]]]:
    text = new_platform(name=None, chip=chip, parts=_NO_PARTS, memory=None, full=False).text
    measurements = [m for each in shipped_profiles(BOARDS[chip]) for m in each.measurements]
    for processor in read_platform(text, chip).processors:
        own = [
            m
            for m in measurements
            if m.processor == processor.name and m.frequency_hz == processor.point.frequency_hz
        ]
        if processor.kind == kind and own:
            yield processor, own


_NO_PARTS: Mapping[str, Sequence[str]] = dict.fromkeys(("cpu", "gpu", "npu", "dsp"), ())


def _rates_on(
    processor: Processor, measurements: Sequence[Measurement]
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return the fields of `KindRates` for one processor."""
    peak, launch_s = peak_of(processor), processor.launch.overhead_s
    shares: dict[str, float] = {}
    moving: dict[str, float] = {}
    waiting: dict[str, float] = {}
    for name in OPERATOR_CLASSES:
        own = [m for m in measurements if m.operator_class == name]
        if len(own) < _FEWEST or name == "view":
            continue
        time_s = sum(max(m.time_s - launch_s, _LEAST_SHARE * m.time_s) for m in own)
        if name in STREAMING:
            waiting[name] = sum(m.size_bytes for m in own) / time_s
        elif name in PRODUCTS:
            shares[name] = sum(m.macs for m in own) / time_s / peak
        else:
            moving[name] = sum(m.size_bytes for m in own) / time_s / peak
    return shares, moving, waiting
