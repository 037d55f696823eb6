"""What a processor's segments cost: how many it may have, and what each takes to load and to keep.

A segment is what its compiler makes one file of: operators that it runs at one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from parapipe.platform.fields import Seconds, Section

if TYPE_CHECKING:
    from parapipe.platform.processor import Processor

SegmentCount = Annotated[int, Field(ge=1, le=100_000)]
SegmentBytes = Annotated[int, Field(ge=0, le=1 << 40)]


class Segments(Section):
    """Limits and costs of a processor's segments; what is left out is not known.

    Parameters
    ----------
    most
        Segments that may be loaded at the same time.
    load_s
        Seconds to load one, before the first frame.
    memory_bytes
        What one takes in the processor's memory beside its weights and tensors.
    """

    most: SegmentCount | None = None
    load_s: Seconds | None = None
    memory_bytes: SegmentBytes | None = None

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.most is None and self.load_s is None and self.memory_bytes is None:
            raise ValueError("says nothing; give most, load_s or memory_bytes, or delete it")
        return self


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """What the processors of a platform say of segments; parts of one have what it has.

    Parameters
    ----------
    whole
        By processor: the name of the one that it is, or is a part of.
    sections
        By these names, of those that say anything.
    """

    whole: tuple[str, ...]
    sections: Mapping[str, Segments]

    @classmethod
    def of(cls, processors: Sequence[Processor]) -> Self:
        """Return the rules of processors, in their order."""
        whole = tuple(p.whole.name if p.whole else p.name for p in processors)
        pairs = zip(whole, processors, strict=True)
        return cls(whole, {name: p.segments for name, p in pairs if p.segments})

    @property
    def most(self) -> dict[str, int]:
        """The most segments of each processor that has a limit."""
        pairs = ((name, each.most) for name, each in self.sections.items())
        return {name: most for name, most in pairs if most is not None}

    def load_s(self, segments: Mapping[int, int]) -> float | None:
        """Return the seconds to load so many segments of each processor, one after the other.

        Of processors that say how long it takes; None if none of them does.
        """
        times_s = [count * each.load_s for count, each in self._of(segments) if each.load_s]
        known = any(each.load_s is not None for _, each in self._of(segments))
        return sum(times_s) if known else None

    def figures(self, segments: Mapping[int, int]) -> dict[str, float | None]:
        """Return what a front states of so many segments of each processor; nothing of none."""
        return {
            "most_segments": max(segments.values(), default=None),
            "load_s": self.load_s(segments),
        }

    def memory_bytes(self, processor: int) -> int:
        """Return what one segment takes; 0 if the platform does not say, as of scratch memory."""
        section = self.sections.get(self.whole[processor])
        return (section.memory_bytes or 0) if section else 0

    def _of(self, segments: Mapping[int, int]) -> Iterator[tuple[int, Segments]]:
        for processor, count in segments.items():
            if section := self.sections.get(self.whole[processor]):
                yield count, section
