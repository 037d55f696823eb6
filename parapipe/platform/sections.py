"""Sections of a processor in a platform file: its clock, launches, peak, memory and power."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from parapipe.files.yaml_file import Strict
from parapipe.platform.fields import (
    BytesPerSecond,
    DataType,
    Hertz,
    MacsPerSecond,
    Many,
    Name,
    Seconds,
    Section,
    Shares,
    Travel,
    Volts,
    WattsPerV2Hz,
    WattsPerVolt,
)


class OperatingPoint(Strict):
    """A frequency and the voltage it needs."""

    frequency_hz: Hertz
    voltage_v: Volts


class Scaling(Section):
    """How times follow the clock: t(f) = t(f₀)·(s·f₀/f + 1 − s).

    Parameters
    ----------
    compute_share
        s: share of an operator's time at the default frequency f₀ that is counted in the
        processor's cycles, the rest being that of the memory; by operator class, `default` for the
        classes that are not listed.
    """

    compute_share: Shares


class Switching(Section):
    """Seconds from asking for another operating point until the clock has it, median over pairs."""

    up_s: Seconds
    down_s: Seconds


class Clock(Section):
    """The operating points, and the one that times and powers are given for.

    Parameters
    ----------
    voltage_source
        Key of the entry under `sources` that the voltages come from, if it is not `source`.
    scaling
        Without it, only what was measured at a frequency, or on both sides of it, is known there.
    switching
        Reported only: a processor keeps its point while a configuration runs.
    """

    default_frequency_hz: Hertz
    points: Annotated[Many[OperatingPoint], Field(min_length=1, max_length=1000)]
    voltage_source: Name | None = None
    scaling: Scaling | None = None
    switching: Switching | None = None


class Launch(Section):
    """Seconds to start one operator, whatever its size."""

    overhead_s: Seconds


class Peak(Section):
    """Multiply-accumulates per second at the default operating point, by data type."""

    macs_per_s: dict[DataType, MacsPerSecond]


class Memory(Section):
    """Bytes per second, reads and writes together."""

    bandwidth_bytes_per_s: BytesPerSecond


class Port(Section, Travel):
    """Time to load a frame, or to read the result."""


class Power(Section):
    """Coefficients of equation (8) of Para-Pipe: P = αV²f·U + βV.

    Parameters
    ----------
    alpha_w_per_v2_hz
        α: dynamic power at full utilisation, in W per V²·Hz.
    beta_w_per_v
        β: static power of a processor in use, in W per V.
    utilisation
        Share of the full dynamic power that each operator class draws while it runs; `default`
        stands for the classes that are not listed.
    """

    alpha_w_per_v2_hz: WattsPerV2Hz
    beta_w_per_v: WattsPerVolt
    utilisation: Shares
