"""What front.json says of memory."""

from __future__ import annotations

from typing import Self

from parapipe.files.record import Figure, Row
from parapipe.pipeline.memory import AliveRow, MemoryPeak
from parapipe.platform.memories import MemorySystem


class MemoryRow(Row):
    """What a configuration needs of one memory."""

    name: str
    """As in `memory.memories`."""
    peak_bytes: int
    """The most at one moment."""
    weights_bytes: int
    """Of these, weights, which are there at any time."""
    at_s: Figure
    """First moment of the peak, from the start of the period."""
    alive: tuple[AliveRow, ...]
    """Activations at that moment, the largest first."""

    @classmethod
    def of_peak(cls, peak: MemoryPeak) -> Self:
        """Return the row of a peak."""
        return cls.of(peak, peak_bytes=peak.size_bytes)


class MemoryEntry(Row):
    """A memory of the platform."""

    name: str
    """Name; `shared memory assumed` if the platform states none."""
    processors: tuple[str, ...]
    """Those that keep their tensors in it."""
    usable_bytes: Figure | None
    """What is free for a plan; none if the platform does not say."""
    alignment_bytes: int
    """Each tensor takes a multiple of this."""


class MemorySystemRow(Row):
    """The memories of the platform, and who keeps copies."""

    assumed: bool
    """Whether the platform states no memories, so that one shared by all processors is assumed."""
    memories: tuple[MemoryEntry, ...]
    """In the platform's order."""
    copying: tuple[tuple[str, str], ...]
    """Pairs of processors in one memory that hand over a copy, since their link converts."""
    packing: dict[str, float]
    """Processors with a copy of the weights of their own: its bytes per byte in the model."""

    @classmethod
    def of_system(cls, system: MemorySystem) -> Self:
        """Return the row of a memory system."""
        memories = tuple(
            MemoryEntry(
                name=name,
                processors=tuple(p for p, own in system.memory_of.items() if own == m),
                usable_bytes=system.usable_bytes[m],
                alignment_bytes=system.alignment_bytes[m],
            )
            for m, name in enumerate(system.names)
        )
        pairs = tuple(sorted(system.copying))
        return cls.of(system, memories=memories, copying=pairs, packing=dict(system.packing))

    @property
    def system(self) -> MemorySystem:
        """The memory system that this is the row of."""
        return MemorySystem(
            names=tuple(each.name for each in self.memories),
            assumed=self.assumed,
            memory_of={p: m for m, each in enumerate(self.memories) for p in each.processors},
            alignment_bytes=tuple(each.alignment_bytes for each in self.memories),
            usable_bytes=tuple(each.usable_bytes for each in self.memories),
            copying=frozenset(self.copying),
            packing=self.packing,
        )
