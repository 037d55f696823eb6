"""How far costs may be from what they are said to be, and which of them err together.

Every cost is taken as log-normal: its median is the stated value, and spreads are standard
deviations of the natural logarithm, so that 0.05 stands for about 5 %. What an operator's time is
off by has three parts: its own, that of a cause which it shares (the fit, or the roofline, of its
class on its processor), and the state of its processor (heat, clock), which all share that run
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p, pi, sqrt
from statistics import NormalDist

from parapipe.cost.fitted import KindFit
from parapipe.cost.measured_rows import APPORTIONED
from parapipe.cost.measured_source import FitRecord
from parapipe.cost.profile import COMPILED, RUN, STATED, UNPRICED, Measurement
from parapipe.platform.platform import Platform

REPEATED = 0.0525
"""Root mean square of the logarithm of the ratio between two runs of one order on the A311D; nine
orders of whole networks ran twice (`end_to_end_calibration.csv`), and differ by up to 14 %."""

NOMINAL_SHARED, NOMINAL_OWN = 0.9, 0.3
"""Nominal against measured times on the A311D (AlexNet, GoogLeNet, Inception-v3, MobileNet-v1,
ResNet-50; weighted by time): root mean square of the mean logarithm of their ratio in each class on
each processor, and of the rest. docs/doubt.md."""

COMPILED_SHARED = 0.094
"""Root mean square of the logarithm of the ratio between times of whole networks by the cycles of
Rockchip's compiler and published ones, each left out of the fit in turn (docs/compiler-costs.md).
What single operators are off by beside is not known: NOMINAL_OWN is taken."""

STATED_SHARED = 0.153
"""Of times that a chip's maker states. An assumption: as far as the Para-Pipe paper's predictions
of latency miss its runs on the A311D; on the A1000, whose stated times it takes, it has no runs."""

NOT_MEASURED = log(2) / NormalDist().inv_cdf(0.95)
"""Of hand-overs on links that were not measured, and of nominal power. An assumption: within a
factor of two in nine of ten cases."""

FITTED_POWER = 0.034
"""Energies on the A311D are off by 0.041 with each network left out in turn (docs/accuracy.md); of
that, times bring 0.023, which are drawn by themselves: the root of the difference of the squares.
"""

_OF_MEAN = sqrt(pi / 2)  # a normal deviation, from the mean of its absolute values
_OF_MEDIAN = 1 / NormalDist().inv_cdf(0.75)  # from their median


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a time may be off, beside the state of the processor.

    Parameters
    ----------
    own
        Of this operator alone.
    shared, cause
        Of all times with the same cause on the same processor; none if the cause is empty.
    """

    own: float = 0.0
    shared: float = 0.0
    cause: str = ""

    def moved(self, how: str) -> Spread:
        """Return that of a time from another clock, another state of the board, or more cores."""
        return Spread(self.own, sqrt(self.shared**2 + REPEATED**2), self.cause or how)


@dataclass(frozen=True, slots=True)
class PlatformSpread:
    """What a platform's numbers may be off by.

    Parameters
    ----------
    transfers
        All transfers together.
    power
        Power of each processor.
    state
        Each processor's state.
    states
        Whose state each processor has: its own name, or what it is a part of.
    common
        What the state of all processors together moves by; `state` contains it.
    """

    transfers: float
    power: tuple[float, ...]
    state: float
    states: tuple[str, ...]
    common: float = 0.0

    @property
    def own_state(self) -> float:
        """What each processor's state moves by on its own."""
        return sqrt(self.state**2 - self.common**2)


OTHER_STATE = "another state of the board"
"""What times share that are scaled from one state of a board to another."""

SEGMENTS = "runs of whole segments"
"""What times share that were taken out of segments' times."""

CERTAIN = Spread()
ONCE = Spread(own=REPEATED)  # of what was measured once


def measurement_spread(m: Measurement) -> Spread:
    """Return the spread of a measured time, by its rows; as repeated runs differ if there is one.

    The range of n normal values is on average 2 Φ⁻¹((n − 3/8) / (n + 1/4)) of their standard
    deviations (Blom, 1958); that of the logarithms is taken as if the median was the shortest row.
    Shares of blocks may be off by more than their rows differ.

    Out of runs, an operator has several times: in the whole model that a processor ran alone or
    beside others, and in stages. Half of their range is a standard deviation, so that the stated
    time, wherever it lies among them, is two away from each at most. Operators share this, as what
    runs beside them does it; and each one's share of its segment may be off by as much.

    What the chip's maker states may all be off together. By a compiler's cycles, all operators
    share the error of the fit to published rates; what the compiler does not price is as uncertain
    as nominal times are.
    """
    if m.method == COMPILED:
        return Spread(NOMINAL_OWN, COMPILED_SHARED, "cycles of the compiler")
    if m.method == STATED:
        return Spread(REPEATED, STATED_SHARED, "times that the maker states")
    if m.method == UNPRICED:
        return nominal_spread(m.operator_class)
    if m.rows < 2:
        return ONCE
    if m.method == RUN:
        half = log1p(m.spread) / 2
        return Spread(half, half, SEGMENTS)
    ranges = 2 * NormalDist().inv_cdf((m.rows - 0.375) / (m.rows + 0.25))
    own = log1p(m.spread) / ranges
    return Spread(own=max(own, REPEATED) if m.method == APPORTIONED else own)


def fit_spread(fit: KindFit, record: FitRecord | None) -> Spread:
    """Return the spread of a fitted time.

    What all times of the fit share is the error of what was left out, if that is stored beside the
    profile, else the fit's own error; what each has of its own is how far measurements lie from the
    fit.
    """
    scatter = fit.mean_error * _OF_MEAN
    errors = record.error_of(fit.processor) if record else None
    shared = errors.median * _OF_MEDIAN if errors else scatter
    return Spread(scatter, shared, f"fit of {fit.kind}")


def nominal_spread(kind: str) -> Spread:
    """Return the spread of a nominal time of a class of operators."""
    return Spread(NOMINAL_OWN, NOMINAL_SHARED, f"nominal rates of {kind}")


def platform_spread(platform: Platform) -> PlatformSpread:
    """Return what a platform's links, powers and states may be off by.

    What the platform does not state is taken from the A311D. Transfers are then as uncertain as the
    worst known link.
    """
    links = {platform.sources[link.source].provenance for link in platform.links}
    nominal = set(platform.nominal_power)
    names, stated = platform.names, platform.spread
    transfers = stated.hand_overs if stated else None
    if transfers is None:
        transfers = REPEATED if links <= {"measured"} else NOT_MEASURED
    return PlatformSpread(
        transfers=transfers,
        power=tuple(NOT_MEASURED if name in nominal else FITTED_POWER for name in names),
        state=stated.state if stated else REPEATED,
        states=tuple(names[platform.whole(p)] for p in range(len(names))),
        common=stated.common if stated else 0.0,
    )
