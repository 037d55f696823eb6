"""Configurations whose memory is known, and limits that they keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf

from parapipe.errors import MappingError
from parapipe.files.listing import listed
from parapipe.mapping.units import NANO
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.mapping import Kind
from parapipe.pipeline.memory import MemoryPeak, PeakMemory
from parapipe.platform.memories import MemorySystem, no_such_memory


@dataclass(frozen=True, slots=True)
class SizedCandidate:
    """A configuration with its memory, as candidates of the searches are."""

    configuration: Configuration
    peak: PeakMemory

    @property
    def cost_table(self) -> int:
        """Number of the cost table that it rests on."""
        return self.configuration.table

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return self.configuration.processors

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return self.configuration.kind

    @property
    def objectives(self) -> tuple[float, float, float]:
        """Latency, period, energy."""
        made = self.configuration.evaluated
        # whole numbers, so that sums of times do not depend on their order
        return (
            round(made.latency_s * NANO), round(made.period_s * NANO), round(made.energy_j * NANO)
        )  # fmt: skip

    @property
    def memory_bytes(self) -> int:
        """The most at one moment, in all memories."""
        return self.peak.total.size_bytes

    def configured(self) -> Configuration:
        """Return the configuration."""
        return self.configuration


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The most that configurations may need.

    Parameters
    ----------
    size_bytes
        Of all memories together, or of some by their names; None for no limit.
    """

    size_bytes: float | Mapping[str, float] | None

    def check(self, system: MemorySystem) -> None:
        """Refuse limits of memories that there are not.

        Raises
        ------
        MappingError
            Names all of them.
        """
        if isinstance(self.size_bytes, Mapping):
            unknown = [name for name in self.size_bytes if name not in system.names]
            if unknown:
                raise MappingError(no_such_memory(unknown, system.names))

    def share(self, peak: PeakMemory) -> float:
        """Return what is needed of what is allowed, where that is most; 0 without a limit."""
        asked = self._asked(peak)
        return max((each.size_bytes / most for each, most in asked), default=0.0)

    def left_bytes(self, peak: PeakMemory) -> float:
        """Return what is left of what is allowed, less than 0 if it is exceeded."""
        return min((most - each.size_bytes for each, most in self._asked(peak)), default=inf)

    def fits(self, each: SizedCandidate) -> bool:
        """Tell whether a configuration keeps the limit."""
        return self.share(each.peak) <= 1

    def nearest(self, candidates: Iterable[SizedCandidate]) -> SizedCandidate:
        """Return the configuration that comes nearest to the limit."""
        return min(candidates, key=lambda each: (self.share(each.peak), each.objectives))

    def told(self, peak: PeakMemory) -> str:
        """Say what is needed in place of what is allowed."""
        return "; ".join(
            f"{megabytes(each.size_bytes, ROUND_CEILING)} instead of {megabytes(most)}"
            + (f" in '{each.name}'" if isinstance(self.size_bytes, Mapping) else "")
            for each, most in self._asked(peak)
            if each.size_bytes > most
        )

    def _asked(self, peak: PeakMemory) -> list[tuple[MemoryPeak, float]]:
        match self.size_bytes:
            case None:
                return []
            case Mapping() as by_name:
                return [(m, by_name[m.name]) for m in peak.memories if m.name in by_name]
            case most:
                return [(peak.total, most)]

    def scarcity(self, names: Sequence[str]) -> tuple[float, ...]:
        """Return how scarce each memory is beside the scarcest, which is 1; 0 is no limit of it."""
        if not isinstance(self.size_bytes, Mapping):
            return (1.0,) * len(names)
        least = min(self.size_bytes.values())
        return tuple(least / self.size_bytes[n] if n in self.size_bytes else 0.0 for n in names)

    def worst(self, peak: PeakMemory) -> MemoryPeak:
        """Return the memory that exceeds its limit most, or all of them."""
        return max(self._asked(peak), key=lambda asked: asked[0].size_bytes / asked[1])[0]


def unfit(
    model: str,
    limit: MemoryLimit,
    nearest: SizedCandidate,
    names: tuple[str, ...],
    bound: str,
) -> str:
    """Say that nothing fits, how little would do, and what stands in the way.

    Parameters
    ----------
    names
        Of the processors.
    bound
        What no mapping does without, in words.
    """
    worst = limit.worst(nearest.peak)
    weights = megabytes(worst.weights_bytes)
    alive = [f"{each.name} {megabytes(each.size_bytes)}" for each in worst.alive[:3]]
    where = " │ ".join(
        "+".join(names[p] for p in stage.processors)
        for stage in nearest.configuration.mapping.stages
    )
    return (
        f"no mapping of '{model}' was found that fits: the least, on {where}, needs "
        f"{limit.told(nearest.peak)}; {weights} of it are weights, and at its peak "
        f"{listed(alive)} are alive; {bound}; allow more with `max_memory_bytes`"
    )


def megabytes(size_bytes: float, rounding: str = ROUND_FLOOR) -> str:
    """Return bytes as MB with four digits.

    What is needed is rounded up, so that a limit of that is kept; limits and bounds are not.
    """
    found = Context(prec=4, rounding=rounding).create_decimal(size_bytes)
    return f"{float(found) / 1e6:.4g} MB"
