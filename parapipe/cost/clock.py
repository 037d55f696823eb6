"""Nominal times, and times at operating points that were not measured.

Between two measured frequencies a time runs straight over 1/f, the time of a cycle: what is counted
in cycles grows with it, the rest stays. Beyond them the nearest one is scaled by the compute share
of the operator's class (`platform.processor.Scaling`), and so is what was fitted or is nominal at
one frequency only. Shares lie between 0 and 1, so a higher frequency is never slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from parapipe.cost.profile import SCALED, STATED, Measurement
from parapipe.errors import CostError
from parapipe.graph.operator_graph import ITEM_BYTES, Work
from parapipe.platform.fields import Expression, file_value, largest, named_value, value_at
from parapipe.platform.processor import Processor, class_key


def nominal_time(
    processor: Processor, work: Work, dtype: str, operator_class: str, input_channels: int = 0
) -> Expression:
    """Return launch overhead + max(macs / peak, bytes / bandwidth) in seconds.

    Peak and bandwidth are those of the operator class, and input channels count in multiples, where
    the platform says so (`platform.sections.ClassRates`). An operator whose multiply-accumulates
    are not known (`work.modelled` is false) has none here: it is priced by its bytes.

    Parameters
    ----------
    input_channels
        Channels that each filter of a convolution reads; 0 of anything else, and of depthwise ones.

    Raises
    ------
    CostError
        If the platform lacks the peak of the data type; the message names both.
    """
    launch = file_value("launch", "s", processor, "launch", "overhead_s")
    bandwidth = file_value("bandwidth", "B/s", processor, "memory", "bandwidth_bytes_per_s")
    bandwidth = _of_class(bandwidth, processor, "bandwidth", operator_class)
    moved = named_value("bytes", work.read_bytes + work.written_bytes, "B") / bandwidth
    if not work.macs:
        return launch + moved
    own = processor.computing_type(dtype)
    if own not in processor.peak.macs_per_s:
        raise CostError(f"processor '{processor.name}' states no peak_macs_per_s for {dtype}")
    macs = named_value("MACs", work.macs, note=f"work by rules {work.rule}" if work.rule else "")
    peak = file_value("peak", "/s", processor, "peak", "macs_per_s", own)
    peak = _of_class(peak, processor, "compute", operator_class)
    return launch + largest(counted_macs(macs, processor, input_channels) / peak, moved)


def _of_class(rate: Expression, processor: Processor, kind: str, operator_class: str) -> Expression:
    """Return the rate of an operator class, `kind` being that of `ClassRates`."""
    if processor.rates is None:
        return rate
    key = class_key(value_at(processor.rates, kind), operator_class)
    return rate * file_value(f"{kind} of the class", "", processor, "rates", kind, key)


def counted_macs(macs: Expression, processor: Processor, input_channels: int) -> Expression:
    """Return the multiply-accumulates with the channels that are counted beside the real ones."""
    if processor.rates is None or not input_channels % processor.rates.input_channels:
        return macs
    block = processor.rates.input_channels
    counted = named_value(
        "channels counted",
        -(-input_channels // block) * block,
        note=f"in multiples of {block}",
    )
    return macs * (counted / named_value("input channels", input_channels))


def time_ratio(
    processor: Processor, dtype: str, other: str, *, products: bool
) -> Expression | None:
    """Return the nominal time of work in a data type over that in another; None if not known.

    Parameters
    ----------
    products
        Whether the work is that of products, which goes with the peaks; all else goes with the
        bytes of an element.
    """
    if not products:
        sizes = (named_value(f"bytes of {each}", ITEM_BYTES[each], "B") for each in (dtype, other))
        return next(sizes) / next(sizes)
    own_type, base_type = (processor.computing_type(each) for each in (dtype, other))
    peaks = processor.peak.macs_per_s
    if own_type not in peaks or base_type not in peaks:
        return None
    rates = (
        file_value(f"peak in {each}", "/s", processor, "peak", "macs_per_s", each)
        for each in (str(base_type), str(own_type))
    )
    return next(rates) / next(rates)


def time_at_clock(
    time: Expression, base_hz: float, operator_class: str, processor: Processor
) -> Expression:
    """Return what an operator that takes `time` at a frequency takes at the processor's point.

    Raises
    ------
    CostError
        If the frequencies differ and the platform says nothing of how times follow the clock.
    """
    if base_hz == processor.point.frequency_hz:
        return time
    factor = processor.slowdown(operator_class, base_hz)
    if factor is None:
        raise CostError(
            f"processor '{processor.name}' runs at {_mhz(processor.point.frequency_hz)}, its times "
            f"are known at {_mhz(base_hz)}, and it states no clock.scaling"
        )
    return time * factor


def time_at_point(
    sweep: Sequence[Measurement],
    operator_class: str,
    processor: Processor,
    file: str,
    note: Callable[[Measurement], str],
) -> tuple[Expression, str]:
    """Return the time of one signature at the processor's point, and how it was measured there.

    Parameters
    ----------
    sweep
        At least one measurement, by ascending frequency.
    file, note
        Where the measurements stand, and what there is to say of one.

    Returns
    -------
    Seconds; and in words between or beyond which measured frequencies, no words if it was measured
    at this very one.

    Raises
    ------
    CostError
        As for `time_at_clock`.
    """

    def measured(name: str, m: Measurement) -> Expression:
        name = m.method if m.method in {SCALED, STATED} else name
        return named_value(name, m.time_s, "s", file=file, line=m.line, note=partial(note, m))

    point_hz = processor.point.frequency_hz
    slower = [m for m in sweep if m.frequency_hz <= point_hz]
    faster = [m for m in sweep if m.frequency_hz >= point_hz]
    if slower and slower[-1].frequency_hz == point_hz:
        return measured("measured", slower[-1]), ""
    if not (slower and faster):
        nearest = slower[-1] if slower else faster[0]
        base_hz = nearest.frequency_hz
        time = time_at_clock(measured("measured", nearest), base_hz, operator_class, processor)
        return time, f"scaled from {_mhz(base_hz)}"
    low, high = slower[-1], faster[0]
    longest, shortest = measured("slower", low), measured("faster", high)
    low_hz = named_value("low", low.frequency_hz, "Hz", file=file, line=low.line)
    high_hz = named_value("high", high.frequency_hz, "Hz", file=file, line=high.line)
    weight = (1 / processor.frequency - 1 / high_hz) / (1 / low_hz - 1 / high_hz)
    interpolation = f"between {_mhz(low.frequency_hz)} and {_mhz(high.frequency_hz)}"
    return shortest + weight * (longest - shortest), interpolation


def _mhz(frequency_hz: float) -> str:
    return f"{frequency_hz / 1e6:g} MHz"
