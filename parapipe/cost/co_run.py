"""The law of co-runs: how many times as long operators take that run at the same time.

One law holds on a platform: a table of slowdowns, memory that is shared by what each processor
draws, or a lengthening in proportion to what the others move. Each is a pure function of what runs;
whoever evaluates or simulates asks it again whenever something begins or ends. In all of them, the
more runs, the longer each takes, and what runs alone takes its own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from parapipe.platform.co_run import MEMORY_SHARE, Boundedness, Slowdown
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class Running:
    """An operator, or a segment, that runs.

    Parameters
    ----------
    processor
        Name of the processor; of a part of a divided cluster or of a stream, that of the whole.
    moved_bytes
        Bytes that it reads and writes.
    time_s
        Seconds that it takes alone.
    """

    processor: str
    moved_bytes: float
    time_s: float

    @property
    def bytes_per_s(self) -> float:
        """Bytes that it moves a second, alone; 0 of what takes no time."""
        return self.moved_bytes / self.time_s if self.time_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Draw:
    """What a processor draws from the memory, as of `ProcessorMemory`.

    Parameters
    ----------
    most_bytes_per_s
        At most.
    cache_bytes
        What moves no more draws nothing.
    """

    most_bytes_per_s: float
    cache_bytes: float = 0.0

    def bytes_per_s(self, running: Running) -> float:
        """Return what an operator draws from the memory when it runs alone."""
        if running.moved_bytes <= self.cache_bytes:
            return 0.0
        return min(running.bytes_per_s, self.most_bytes_per_s)


class CoRunLaw(Protocol):
    """How many times as long operators take."""

    def slowdowns(self, running: Sequence[Running]) -> tuple[float, ...]:
        """Return the factor of each, at least 1, while exactly these run."""
        ...


@dataclass(frozen=True, slots=True)
class LinearContention:
    """Lengthening in proportion to what the others move: 1 + c Σ b.

    Parameters
    ----------
    s_per_byte
        c: as a share of the own time, for each byte a second that the others move when they run
        alone.
    """

    s_per_byte: float

    def slowdowns(self, running: Sequence[Running]) -> tuple[float, ...]:
        """Return the factor of each, at least 1, while exactly these run."""
        rates = [each.bytes_per_s for each in running]
        total = sum(rates)
        return tuple(1 + self.s_per_byte * (total - own) for own in rates)


@dataclass(frozen=True, slots=True)
class SharedMemoryLaw:
    """Memory that serves processors in proportion to what each draws at most.

    With d the bytes a second that an operator draws alone, and w the most that its processor draws,
    both at most B, a memory of B bytes a second gives it min(d, s w), where s is the largest share
    up to 1 for which all together get no more than B. It then takes d / min(d, s w) times as long.
    That is weighted max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2): who
    asks for little gets it, and all that draw their most are slowed down by the same factor.

    Parameters
    ----------
    bandwidth_bytes_per_s
        Of the memory.
    draws
        By processor's name.
    """

    bandwidth_bytes_per_s: float
    draws: Mapping[str, Draw]

    def slowdowns(self, running: Sequence[Running]) -> tuple[float, ...]:
        """Return the factor of each, at least 1, while exactly these run."""
        have = self.bandwidth_bytes_per_s
        asked = [min(self.draws[each.processor].bytes_per_s(each), have) for each in running]
        most = [min(self.draws[each.processor].most_bytes_per_s, have) for each in running]
        needs = [d / w for d, w in zip(asked, most, strict=True)]
        share = self._share(needs, most)
        return tuple(max(1.0, need / share) for need in needs)

    def _share(self, needs: Sequence[float], most: Sequence[float]) -> float:
        """Return the share of its most that each may draw: those that need less leave the rest."""
        left, weight = self.bandwidth_bytes_per_s, sum(most)
        for need, own in sorted(zip(needs, most, strict=True)):
            if need * weight >= left:
                return left / weight
            left -= need * own
            weight -= own
        return 1.0


@dataclass(frozen=True, slots=True)
class SlowdownTable:
    """Factors as a platform states them, by processor, busy others and classes.

    An operator takes the largest factor stated for a set of which all are busy beside it, with
    operators of the class that the row names; 1 if there is none. Operators of the same processor,
    on parts or streams of it, are no others.

    Parameters
    ----------
    rows
        The table.
    draws
        By processor's name.
    memory_share
        An operator is memory-bound if it moves, alone, at least this share of what its processor
        draws at most, and more bytes than its caches serve.
    """

    rows: tuple[Slowdown, ...]
    draws: Mapping[str, Draw]
    memory_share: float = MEMORY_SHARE

    def boundedness(self, running: Running) -> Boundedness:
        """Return the class of an operator: by what it moves a second, alone."""
        draw = self.draws[running.processor]
        if running.moved_bytes <= draw.cache_bytes:
            return "compute"
        least = self.memory_share * draw.most_bytes_per_s
        return "memory" if running.bytes_per_s >= least else "compute"

    def slowdowns(self, running: Sequence[Running]) -> tuple[float, ...]:
        """Return the factor of each, at least 1, while exactly these run."""
        kinds = [(each.processor, self.boundedness(each)) for each in running]
        busy = frozenset(kinds)
        return tuple(
            max((row.factor for row in self.rows if _applies(row, own, kind, busy)), default=1.0)
            for own, kind in kinds
        )


def _applies(
    row: Slowdown, own: str, kind: Boundedness, busy: frozenset[tuple[str, Boundedness]]
) -> bool:
    """Whether a row of the table is about an operator of a processor beside what is busy."""
    if row.processor != own or row.operator_class not in (None, kind):
        return False
    classes: tuple[Boundedness, ...] = ("compute", "memory")
    beside = classes if row.busy_class is None else (row.busy_class,)
    return all(any((other, each) in busy for each in beside) for other in row.busy)


def draws_of(platform: Platform) -> dict[str, Draw]:
    """Return what each processor of a platform draws from the memory, by its name."""
    return {
        p.name: Draw(p.memory.most_bytes_per_s, p.memory.cache_bytes)
        for p in platform.processors
        if p.whole is None
    }


def memory_share_of(platform: Platform) -> float:
    """Return the share of its draw from which on an operator is memory-bound."""
    share = platform.co_run.memory_share if platform.co_run else None
    return MEMORY_SHARE if share is None else share


def co_run_law(platform: Platform) -> CoRunLaw | None:
    """Return the law of a platform; None if it states none, so that nothing is slowed down."""
    section = platform.co_run
    if section is None:
        return LinearContention(platform.contention) if platform.contention else None
    if section.slowdowns:
        return SlowdownTable(section.slowdowns, draws_of(platform), memory_share_of(platform))
    return SharedMemoryLaw(platform.memory.bandwidth_bytes_per_s, draws_of(platform))
