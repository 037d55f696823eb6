"""What a plan says of memory: arenas, and where in them each buffer lies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from parapipe.files.record import Record
from parapipe.plan.fields import Name, OneOrMore
from parapipe.platform.memories import MemorySystem

Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
"""So that sums of two stay whole numbers of 64 bits."""


class Arena(Record):
    """The arena of one memory: activations, copies and queues of all frames on their way."""

    name: Name
    """Name of the memory, as in the platform."""
    processors: OneOrMore[Name]
    """Processors that keep their tensors in it, those that the plan does not use included."""
    alignment_bytes: PositiveInt
    """All sizes and offsets are multiples of this."""
    size_bytes: Bytes
    """Bytes of the arena."""
    bound_bytes: Bytes
    """No arena does with less while this schedule is kept and buffers share bytes so: their peak,
    or more if that is proven."""
    proven: bool
    """Whether the arena has the size of that bound."""


class MemoryLayout(Record):
    """The memories of a plan."""

    assumed: bool
    """Whether the platform states no memories, so that one shared by all processors is assumed."""
    arenas: OneOrMore[Arena]
    """One for each memory, in the platform's order."""
    copying: tuple[tuple[Name, Name], ...] = ()
    """Pairs of processors in one memory that hand over a copy, since their link converts."""

    @property
    def system(self) -> MemorySystem:
        """The memory system that this tells of, without what it says of weights."""
        return MemorySystem(
            names=tuple(each.name for each in self.arenas),
            assumed=self.assumed,
            memory_of={p: m for m, each in enumerate(self.arenas) for p in each.processors},
            alignment_bytes=tuple(each.alignment_bytes for each in self.arenas),
            usable_bytes=(None,) * len(self.arenas),
            copying=frozenset(self.copying),
            packing={},
        )


class PlacedBuffer(Record):
    """A tensor's place in the arena of the memory that its processor uses.

    Frame n lies at the offset number n modulo their count. Whoever writes there waits until those
    that read what lay there before have ended: in the predicted schedule they have.
    """

    tensor: Name
    """Name of the tensor."""
    content: Literal["tensor", "copy", "queue"]
    """tensor: where it was made or loaded; copy: of a tensor that came from another processor;
    queue: the slots between processors that work on different frames, of a tensor or a copy."""
    processors: OneOrMore[Name]
    """The processor that makes it, gets the copy, or reads the graph input first; then the others
    that read it there."""
    size_bytes: Bytes
    """Bytes of one frame, a multiple of the alignment."""
    offset_bytes: OneOrMore[Bytes]
    """Where it lies, from the start of the arena."""
    over: Name | None = None
    """The tensor whose bytes it takes over: its operator is element-wise and the last to read that
    one. Left out if there is none."""
    within: Name | None = None
    """The tensor that it is a range of, in the same bytes: a part of what a Concat joins, or what a
    Slice or a Reshape makes. Then that operator has nothing to copy. Left out if there is none."""
