"""The memories of a platform: who shares one, how much of it there is, and what weights take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import Field

from parapipe.files.mistakes import did_you_mean, listed
from parapipe.platform.fields import Many, Name, Section

Capacity = Annotated[float, Field(ge=1024, le=1e15, allow_inf_nan=False)]
Alignment = Annotated[int, Field(ge=1, le=1 << 30)]
ASSUMED = "shared memory assumed"
"""Name of the memory of a platform that states none."""


class SharedMemory(Section):
    """A memory, and the processors that keep their tensors in it.

    Parameters
    ----------
    processors
        Their names; each processor stands in one memory.
    capacity_bytes
        All of it; not known if left out.
    free_bytes
        What is free for us, the system's own share deducted; all of it if left out.
    alignment_bytes
        Each tensor takes a multiple of this.
    """

    name: Name
    processors: Annotated[Many[Name], Field(min_length=1, max_length=32)]
    capacity_bytes: Capacity | None = None
    free_bytes: Capacity | None = None
    alignment_bytes: Alignment = 1

    @property
    def usable_bytes(self) -> float | None:
        """What is free for us; None if the platform does not say."""
        return self.capacity_bytes if self.free_bytes is None else self.free_bytes


class WeightStorage(Section):
    """How a processor keeps the weights of its operators.

    Parameters
    ----------
    own_copy
        Whether it needs a copy of its own, even of weights that others in its memory use too.
    packing
        Bytes that weights take once they are packed, per byte in the model; a factor other than 1
        makes a copy of its own.
    """

    own_copy: bool = False
    packing: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)] = 1.0


@dataclass(frozen=True, slots=True)
class MemorySystem:
    """The memories as plans need them.

    Parameters
    ----------
    names
        Of the memories.
    assumed
        Whether the platform states none, so that one is taken for all processors.
    memory_of
        Index of each processor's memory, by the processor's name.
    alignment_bytes, usable_bytes
        Of each memory; None where it is not known what is free.
    copying
        Pairs of processors in one memory that hand over a copy, since their link converts.
    packing
        Bytes of weights per byte in the model, of processors that keep a copy of their own.
    segment_bytes
        What each segment takes beside tensors and weights, of processors that say it.
    """

    names: tuple[str, ...]
    assumed: bool
    memory_of: Mapping[str, int]
    alignment_bytes: tuple[int, ...]
    usable_bytes: tuple[float | None, ...]
    copying: frozenset[tuple[str, str]]
    packing: Mapping[str, float]
    segment_bytes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def assumed_for(
        cls,
        processors: Iterable[str],
        copying: frozenset[tuple[str, str]] = frozenset(),
        packing: Mapping[str, float] = MappingProxyType({}),
        segment_bytes: Mapping[str, int] = MappingProxyType({}),
    ) -> Self:
        """Return the system of a platform that states no memories."""
        memory_of = dict.fromkeys(processors, 0)
        units, usable = (1,), (None,)
        return cls((ASSUMED,), True, memory_of, units, usable, copying, packing, segment_bytes)

    def size_bytes(self, memory: int, content_bytes: float) -> int:
        """Return what a tensor takes in a memory, whole multiples of the alignment."""
        unit = self.alignment_bytes[memory]
        return ceil(content_bytes / unit) * unit


def no_such_memory(unknown: Sequence[str], names: Sequence[str]) -> str:
    """Say that a platform has memories of other names only."""
    wrong, present = (listed([f"'{name}'" for name in each]) for each in (unknown, names))
    return f"the platform has no memory {wrong}; it has {present}{did_you_mean(unknown[0], names)}"
