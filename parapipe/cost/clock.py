"""Times at operating points that were not measured.

Between two measured frequencies a time runs straight over 1/f, the time of a cycle: what is counted
in cycles grows with it, the rest stays. Beyond them the nearest one is scaled by the compute share
of the operator's class (`platform.processor.Scaling`), and so is what was fitted or is nominal at
one frequency only. Shares lie between 0 and 1, so a higher frequency is never slower.
"""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.cost.profile import Measurement
from parapipe.errors import CostError
from parapipe.platform.processor import Processor


def moved_time_s(time_s: float, base_hz: float, operator_class: str, processor: Processor) -> float:
    """Return what an operator that takes `time_s` at a frequency takes at the processor's point.

    Raises
    ------
    CostError
        If the frequencies differ and the platform says nothing of how times follow the clock.
    """
    factor = processor.slowdown(operator_class, base_hz)
    if factor is None:
        raise CostError(
            f"processor '{processor.name}' runs at {_mhz(processor.point.frequency_hz)}, its times "
            f"are known at {_mhz(base_hz)}, and it states no clock.scaling"
        )
    return time_s * factor


def time_at_point(
    sweep: Sequence[Measurement], operator_class: str, processor: Processor
) -> tuple[float, str, tuple[Measurement, ...]]:
    """Return the time of one signature at the processor's point, and how it was measured there.

    Parameters
    ----------
    sweep
        At least one measurement, by ascending frequency.

    Returns
    -------
    Seconds; in words between or beyond which measured frequencies, no words if it was measured at
    this very one; and the measurements used, of two that of the lower frequency first.

    Raises
    ------
    CostError
        As for `moved_time_s`.
    """
    point_hz = processor.point.frequency_hz
    slower = [m for m in sweep if m.frequency_hz <= point_hz]
    faster = [m for m in sweep if m.frequency_hz >= point_hz]
    if slower and faster:
        low, high = slower[-1], faster[0]
        if low is high:
            return low.time_s, "", (low,)
        cycle_s, longest_s, shortest_s = 1 / point_hz, 1 / low.frequency_hz, 1 / high.frequency_hz
        weight = (cycle_s - shortest_s) / (longest_s - shortest_s)
        told = f"between {_mhz(low.frequency_hz)} and {_mhz(high.frequency_hz)}"
        return high.time_s + weight * (low.time_s - high.time_s), told, (low, high)
    nearest = slower[-1] if slower else faster[0]
    time_s = moved_time_s(nearest.time_s, nearest.frequency_hz, operator_class, processor)
    return time_s, f"scaled from {_mhz(nearest.frequency_hz)}", (nearest,)


def _mhz(frequency_hz: float) -> str:
    return f"{frequency_hz / 1e6:g} MHz"
