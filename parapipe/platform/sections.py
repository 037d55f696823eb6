"""Sections of a processor in a platform file: clock, launches, peak, memory, power, divisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from parapipe.files.yaml_file import Strict
from parapipe.platform.fields import (
    BytesPerSecond,
    DataType,
    Hertz,
    MacsPerSecond,
    Many,
    Name,
    OperatorType,
    Ratios,
    Seconds,
    Section,
    Share,
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


class BlockRuns(Section):
    """What a frame takes, besides its operators, where each block runs at a clock of its own.

    Parameters
    ----------
    blocks_of
        Folder of the profile whose measured networks are divided into these blocks.
    cpu_start_s
        Seconds that each block on a CPU takes on top, whatever its clock and the one before.
    change_share
        By which share of its time a block takes longer if the one before ran on another processor;
        the transfer is part of it, and that of the link does not count.
    host_cycles
        Cycles of its host that a block on a processor with a host takes; its times at the host's
        default clock hold them.
    loading_compute_share
        Share of the time to load a frame, at the default clock of the CPU that loads it, that is
        counted in that CPU's cycles: a host loads for what it hosts.
    fused_activations
        Types of operators that take nothing there: they are computed with the operator before.
    """

    blocks_of: Name
    cpu_start_s: Seconds
    change_share: Share
    host_cycles: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 0.0
    loading_compute_share: Share = 1.0
    fused_activations: Many[OperatorType] = ()


class Clock(Section):
    """The operating points, and the one that times and powers are given for.

    Parameters
    ----------
    voltage_source
        Key of the entry under `sources` that the voltages come from, if it is not `source`.
    sustained_frequency_hz
        What the clock falls to in long runs, one of the points; it stays if left out.
    scaling
        Without it, only what was measured at a frequency, or on both sides of it, is known there.
    switching
        Reported only: a processor keeps its point while a configuration runs.
    """

    default_frequency_hz: Hertz
    sustained_frequency_hz: Hertz | None = None
    points: Annotated[Many[OperatingPoint], Field(min_length=1, max_length=1000)]
    voltage_source: Name | None = None
    scaling: Scaling | None = None
    switching: Switching | None = None


class Launch(Section):
    """Seconds to start work, whatever its size.

    Parameters
    ----------
    overhead_s
        Of one operator. It is part of the operator's time.
    graph_s
        Of a captured graph: operators that are recorded once and then started together, as a CUDA
        graph or a command buffer. Operators in it have no launch of their own. None if the
        processor captures no graphs.
    """

    overhead_s: Seconds
    graph_s: Seconds | None = None


class CompilerTarget(Strict):
    """The compiler that makes files for the processor, and how it calls the chip."""

    name: Name
    target: Name


class Compiled(Section):
    """How what the processor's compiler tells becomes seconds; see docs/compiler-costs.md.

    Parameters
    ----------
    cycle_factor
        Time of a row that the compiler prices, over its cycles / default frequency.
    row_start_s
        Seconds that each row on the processor takes beside its work if the compiler does not price
        it.
    own_share
        Time of what the compiler does not price, over the time that it has without a compiler.
    """

    cycle_factor: Annotated[float, Field(gt=0, le=1000)]
    row_start_s: Seconds
    own_share: Annotated[float, Field(ge=0, le=1000)]


class Peak(Section):
    """Multiply-accumulates per second at the default operating point, by data type."""

    macs_per_s: dict[DataType, MacsPerSecond]


class Memory(Section):
    """Bytes per second, reads and writes together."""

    bandwidth_bytes_per_s: BytesPerSecond


class ProcessorMemory(Memory):
    """What a processor reads and writes of the memory.

    Parameters
    ----------
    draw_bytes_per_s
        The most that it draws from the memory, for the law of co-runs; `bandwidth_bytes_per_s` if
        left out.
    cache_bytes
        Operators that move no more bytes are served by its caches: they are compute-bound there,
        and draw nothing from the memory.
    """

    draw_bytes_per_s: BytesPerSecond | None = None
    cache_bytes: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 0.0

    @property
    def most_bytes_per_s(self) -> float:
        """The most that it draws from the memory."""
        return self.draw_bytes_per_s or self.bandwidth_bytes_per_s


class ClassRates(Section):
    """Nominal rates of operator classes; `default` stands for the classes that are not listed.

    Parameters
    ----------
    compute
        Multiply-accumulates per second of a class, over those of `peak`.
    bandwidth
        Bytes per second of a class, over those of `memory`.
    input_channels
        The channels of a convolution's input are counted in multiples of it: an array that takes 32
        at once needs as long for 3. Depthwise ones are counted as they are.
    """

    compute: Ratios
    bandwidth: Ratios
    input_channels: Annotated[int, Field(ge=1, le=1024)] = 1


class SharedBandwidth(Memory):
    """What the memory gives all processors together.

    Parameters
    ----------
    lower_bound
        Whether the memory may give more, as where one core alone was measured: then no plan is held
        to it.
    """

    lower_bound: bool = False


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


CoreCount = Annotated[int, Field(ge=1, le=1024)]


class Divisions(Section):
    """How a CPU's cores may be divided, and what its parts take.

    Where a part was not measured itself, one of c of the C cores takes t(c) = t(C)·(s·C/c + 1 − s),
    as by Amdahl's law. It draws c/C of the power.

    Parameters
    ----------
    into
        Divisions to choose from, each as the numbers of cores of its parts, in the order of the
        processor's `cores`: `[2, 2]` are the first two and the last two of four.
    parallel_share
        s: share of an operator's time on all the cores that grows as there are fewer; by operator
        class, `default` for the classes that are not listed.
    hand_over
        Time to hand a tensor from a part to another one, synchronisation included.
    """

    into: Annotated[
        Many[Annotated[Many[CoreCount], Field(min_length=2)]], Field(min_length=1, max_length=64)
    ]
    parallel_share: Shares
    hand_over: Travel


def part_cores(name: str, cores: Sequence[int], sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each part of a division, by the part's name.

    A part is called by its first and last core: `big-4-5`, or `big-4` of a single one.
    """
    bounds = pairwise((0, *accumulate(sizes)))
    runs = [tuple(cores[first:last]) for first, last in bounds]
    return {"-".join([name, *map(str, dict.fromkeys((run[0], run[-1])))]): run for run in runs}


Factor = Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]


def _check_law(factors: tuple[float, ...]) -> tuple[float, ...]:
    if factors[0] != 1:
        raise ValueError(
            f"begins with {factors[0]:g}: one operator by itself takes 1 times as long"
        )
    if any(more < fewer for fewer, more in pairwise(factors)):
        raise ValueError("falls: with more operators at once, none takes less time")
    return factors


class Streams(Section):
    """How many operators a processor runs at once, and how much they slow each other down.

    With k streams, an operator takes as many times as long as by itself as the k-th factor says,
    and draws 1/k of the power: as if the others were always at work too. So no time is too short.
    The streams of a CPU share its cores: each has a k-th of its threads, at least one.

    Parameters
    ----------
    slowdown
        The law: the time of an operator when 1, 2, … run at once, over its time by itself. There
        are at most as many streams as factors.
    hand_over
        Time to hand a tensor from a stream to another one, synchronisation included.
    """

    slowdown: Annotated[
        Many[Factor], Field(min_length=2, max_length=64), AfterValidator(_check_law)
    ]
    hand_over: Travel

    @property
    def into(self) -> tuple[tuple[int, ...], ...]:
        """Ways to open streams, as divisions are written: so many of one processor's each."""
        return tuple((1,) * count for count in range(2, len(self.slowdown) + 1))


def stream_names(name: str, count: int) -> tuple[str, ...]:
    """Return what the streams of a processor are called: `gpu-1of2` and `gpu-2of2`."""
    return tuple(f"{name}-{number}of{count}" for number in range(1, count + 1))
