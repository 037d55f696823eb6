"""Limits of memory, and configurations that keep them; the memory of all of these is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf

from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.files.listing import listed
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.memory import MemoryPeak
from parapipe.platform.memories import MemorySystem, no_such_memory


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

    def share(self, found: Configuration) -> float:
        """Return what is needed of what is allowed, where that is most; 0 without a limit."""
        asked = self._asked(found)
        return max((each.size_bytes / most for each, most in asked), default=0.0)

    def left_bytes(self, found: Configuration) -> float:
        """Return what is left of what is allowed, less than 0 if it is exceeded."""
        return min((most - each.size_bytes for each, most in self._asked(found)), default=inf)

    def fits(self, found: Configuration) -> bool:
        """Tell whether a configuration keeps the limit."""
        return self.share(found) <= 1

    def nearest(self, candidates: Iterable[Configuration]) -> Configuration:
        """Return the configuration that comes nearest to the limit."""
        return min(candidates, key=lambda each: (self.share(each), each.nano_objectives))

    def told(self, found: Configuration) -> str:
        """Say what is needed in place of what is allowed."""
        return "; ".join(
            f"{megabytes(each.size_bytes, ROUND_CEILING)} instead of {megabytes(most)}"
            + (f" in '{each.name}'" if isinstance(self.size_bytes, Mapping) else "")
            for each, most in self._asked(found)
            if each.size_bytes > most
        )

    def _asked(self, found: Configuration) -> list[tuple[MemoryPeak, float]]:
        peak = found.peak
        assert peak is not None
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

    def worst(self, found: Configuration) -> MemoryPeak:
        """Return the memory that exceeds its limit most, or all of them."""
        return max(self._asked(found), key=lambda asked: asked[0].size_bytes / asked[1])[0]


def unfit(
    model: str,
    limit: MemoryLimit,
    nearest: Configuration,
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
    worst = limit.worst(nearest)
    weights = megabytes(worst.weights_bytes)
    alive = [f"{each.name} {megabytes(each.size_bytes)}" for each in worst.alive[:3]]
    where = " │ ".join(
        "+".join(names[p] for p in stage.processors) for stage in nearest.mapping.stages
    )
    return (
        f"no mapping of '{model}' was found that fits: the least, on {where}, needs "
        f"{limit.told(nearest)}; {weights} of it are weights, and at its peak "
        f"{listed(alive)} are alive; {bound}; allow more with `max_memory_bytes`"
    )


def megabytes(size_bytes: float, rounding: str = ROUND_FLOOR) -> str:
    """Return bytes as MB with four digits.

    What is needed is rounded up, so that a limit of that is kept; limits and bounds are not.
    """
    found = Context(prec=4, rounding=rounding).create_decimal(size_bytes)
    return f"{plain(float(found) / 1e6)} MB"
