"""Places of tensors in arenas: what waits before a place is written to, and what lies where.

Two tensors may have the same bytes one after the other, although different processors use them. The
plan's times keep them apart. In a run, whose times differ, a segment waits before it writes until
all have ended that use the same bytes and have ended by then in the plan. Since the plan itself
keeps to that, such waits never form a circle. They may be for later frames than the segment's own:
a place changes hands in the order of the plan, so these frames have to come, or the run to end.

This file needs NumPy only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .document import Outside, Place, SessionPlan
from .folder import CPU_PROVIDER, Folder
from .views import container_of, sources

if TYPE_CHECKING:
    from .sessions import ProviderUse

SOURCE = ""
"""Takes frames in: it writes graph inputs."""
PICOSECONDS = 1e12
Waits = Mapping[str, tuple[tuple[str, int], ...]]
"""By a segment's id: others, and how many frames ahead of its own they must have ended."""
_Point = tuple[int, int, int]
"""Picoseconds from the start of a period, phase, order of what takes no time."""


class Moments:
    """Starts and ends of segments as numbers of points, which follow each other on a circle.

    What ends at a time goes before what starts then; in between is what takes no time, in the order
    of the segments. A frame later, each number is larger by `period`.
    """

    def __init__(self, plan: SessionPlan) -> None:
        period_ps = max(1, round(plan.predicted.period_s * PICOSECONDS))
        spans: dict[str, tuple[tuple[int, _Point], tuple[int, _Point]]] = {}
        for i, each in enumerate(plan.segments):
            times_s = each.start_s, each.end_s
            begin_ps, end_ps = (round(t * PICOSECONDS) + each.lag * period_ps for t in times_s)
            lasts = end_ps > begin_ps
            begin, end = (divmod(at_ps, period_ps) for at_ps in (begin_ps, end_ps))
            spans[each.id] = (
                (begin[0], (begin[1], 2 if lasts else 1, 2 * i)),
                (end[0], (end[1], 0 if lasts else 1, 2 * i + 1)),
            )
        points = sorted({point for span in spans.values() for _, point in span})
        number = {point: i for i, point in enumerate(points)}
        self.period = len(points)
        self.begin, self.end = (
            {name: span[k][0] * self.period + number[span[k][1]] for name, span in spans.items()}
            for k in (0, 1)
        )
        self.begin[SOURCE] = min(self.begin.values(), default=0)


@dataclass(frozen=True)
class PlaceUse:
    """A place and the segments that use it.

    Parameters
    ----------
    makers
        Those that write to it; the source, for a graph input.
    readers
        Those that read it, or a range of it.
    """

    place: Place
    size_bytes: int
    makers: tuple[str, ...]
    readers: tuple[str, ...]

    @cached_property
    def frames(self) -> int:
        """After so many frames, one lies where an earlier one was, or on a part of it."""
        offsets = self.place.offset_bytes
        there = (
            distance
            for distance in range(1, len(offsets))
            for i, at in enumerate(offsets)
            if abs(at - offsets[(i + distance) % len(offsets)]) < self.size_bytes
        )
        return next(there, len(offsets))

    @cached_property
    def users(self) -> tuple[str, ...]:
        """The segments among makers and readers."""
        return tuple(each for each in dict.fromkeys((*self.makers, *self.readers)) if each)

    def span(self, moments: Moments) -> tuple[int, int]:
        """Return when it is first written to, and when all its users have ended."""
        begin = min(moments.begin[each] for each in self.makers)
        return begin, max((moments.end[each] for each in self.users), default=begin)


def used_places(plan: SessionPlan) -> Iterator[PlaceUse]:
    """Yield the places of a plan with their users; of what is made of ranges, together."""
    containers = container_of(plan)
    makers: dict[str, list[str]] = {name: [SOURCE] for name in plan.inputs}
    readers: dict[str, list[str]] = {}
    read = sources(plan)
    for segment in plan.segments:
        for name in segment.outputs:
            makers.setdefault(containers.get(name, name), []).append(segment.id)
        for name in read[segment.id]:
            readers.setdefault(containers.get(name, name), []).append(segment.id)
    for each in plan.places:
        yield PlaceUse(
            each,
            plan.tensors[each.tensor].size_bytes,
            tuple(dict.fromkeys(makers.get(each.tensor, ()))),
            tuple(dict.fromkeys(readers.get(each.tensor, ()))),
        )


def arena_waits(plan: SessionPlan) -> Waits:
    """Return what each segment, and the source, waits for before it writes; {} without places.

    Of what must have ended of a frame on a processor, the last stands for all.
    """
    used = [*used_places(plan)]
    if not used:
        return {}
    moments, rows = Moments(plan), _Rows(plan, used)
    end = np.array([moments.end[name] for name in rows.names])[rows.user]
    latest: dict[str, dict[tuple[int, int], tuple[int, str]]] = {}
    for i, each in enumerate(used):
        overlapping, own = rows.overlapping(i), rows.owner == i
        for maker in each.makers:
            others = overlapping & rows.may_run_beside(maker)
            ahead = (moments.begin[maker] - end) // moments.period
            ahead[own] = -each.frames
            last = latest.setdefault(maker, {})
            rank = np.lexsort((end, ahead, rows.order))
            rank = rank[others[rank]]
            for row in rank[_run_ends(rows.order[rank], ahead[rank])]:
                key = int(rows.order[row]), int(ahead[row])
                one = int(end[row]), rows.names[rows.user[row]]
                last[key] = max(last.get(key, one), one)
    return {
        maker: tuple((name, ahead) for (_, ahead), (_, name) in last.items())
        for maker, last in latest.items()
    }


def _run_ends(*columns: Any) -> Any:  # noqa: ANN401 - arrays of numbers
    """Return the last row of each run of equal ones."""
    changes = np.ones(len(columns[0]), dtype=bool)
    changes[:-1] = np.any([each[1:] != each[:-1] for each in columns], axis=0)
    return np.nonzero(changes)[0]


class _Rows:
    """A row for each offset of each place and each segment that uses it.

    Segments with the same number in `order` run one after the other, as the plan has it: those of a
    processor, but each by itself where processors take turns.
    """

    def __init__(self, plan: SessionPlan, used: list[PlaceUse]) -> None:
        turns = {each.name: each.turn[1] for each in plan.processors}
        self.names = [each.id for each in plan.segments]
        number = {name: i for i, name in enumerate(self.names)}
        self._taking_turns = {each.id for each in plan.segments if turns[each.processor] > 1}
        processors = [*turns]
        self._order_of = {
            each.id: len(processors) + i
            if each.id in self._taking_turns
            else processors.index(each.processor)
            for i, each in enumerate(plan.segments)
        }
        arenas = {each.name: i for i, each in enumerate(plan.arenas)}
        rows = [
            (i, arenas[each.place.arena], offset, offset + each.size_bytes, number[name])
            for i, each in enumerate(used)
            for offset in each.place.offset_bytes
            for name in each.users
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
        self.owner, self._arena, self._low, self._high, self.user = columns
        order = [self._order_of[name] for name in self.names]
        self.order = np.array(order, dtype=np.int64)[self.user]
        self._used, self._arenas = used, arenas

    def overlapping(self, i: int) -> Any:  # noqa: ANN401 - an array of bool
        """Tell which rows have a byte in common with a place."""
        each = self._used[i]
        overlaps = np.zeros(len(self.owner), dtype=bool)
        for offset in each.place.offset_bytes:
            overlaps |= (self._low < offset + each.size_bytes) & (offset < self._high)
        return overlaps & (self._arena == self._arenas[each.place.arena])

    def may_run_beside(self, name: str) -> Any:  # noqa: ANN401 - an array of bool
        """Tell of which rows the segments are not in one order with a segment, by their thread."""
        if name in self._taking_turns or name == SOURCE:
            return np.ones(len(self.owner), dtype=bool)
        return self.order != self._order_of[name]


@dataclass(frozen=True, slots=True)
class ArenaUse:
    """Arenas and the tensors of one frame.

    Parameters
    ----------
    size_bytes
        Of each arena, by the name of its memory.
    inside_bytes
        Of all tensors of a frame that lie in them, each by itself.
    outside
        Of all others between segments: how many they are and their bytes, by the reason.
    """

    size_bytes: Mapping[str, int]
    inside_bytes: int
    outside: Mapping[str, tuple[int, int]]

    def sentence(self) -> str:
        """Return how much lies where."""
        arenas = sum(self.size_bytes.values()) / 1e6
        text = (
            f"of a frame's tensors between sessions, {self.inside_bytes / 1e6:.2f} MB lie in "
            f"{'an arena' if len(self.size_bytes) == 1 else 'arenas'} of {arenas:.2f} MB"
        )
        others = (f"{size / 1e6:.2f} MB, since {why}" for why, (_, size) in self.outside.items())
        return f"{text}; elsewhere {'; '.join(others)}" if self.outside else text


def in_arenas(plan: SessionPlan) -> ArenaUse:
    """Return what lies in the arenas of a plan, if it runs with them."""
    within = container_of(plan)
    outside: defaultdict[str, list[int]] = defaultdict(list)
    for each in plan.outside:
        outside[each.why].append(plan.tensors[each.tensor].size_bytes)
    return ArenaUse(
        {each.name: each.size_bytes for each in plan.arenas},
        sum(
            plan.tensors[each.tensor].size_bytes
            for each in plan.places
            if each.tensor not in within
        ),
        {why: (len(sizes), sum(sizes)) for why, sizes in sorted(outside.items())},
    )


def restrict_places(
    folder: Folder, sessions: Mapping[tuple[str, str], Any], used: Iterable[ProviderUse]
) -> Folder:
    """Return a folder whose places are those that ONNX Runtime takes.

    It writes into memory of ours if the CPU's provider runs the segment and if it knows the
    tensor's shape before it runs.

    Parameters
    ----------
    sessions
        By processor and segment.
    used
        What runs each processor.
    """
    provider_of = {each.processor: each.provider for each in used}
    containers = container_of(folder)
    why: dict[str, str] = {}
    for (processor, name), session in sessions.items():
        segment = next(each for each in folder.segments if each.id == name)
        shapes = {each.name: each.shape for each in session.get_outputs()}
        for tensor in segment.outputs:
            container = containers.get(tensor, tensor)
            if provider_of[processor] != CPU_PROVIDER:
                why[container] = f"{provider_of[processor]} makes them"
            elif tuple(shapes[tensor]) != folder.tensors[tensor].shape:
                why[container] = "ONNX Runtime knows their shapes when it has made them"
    places = tuple(each for each in folder.places if each.tensor not in why)
    left = (Outside(each.tensor, why[each.tensor]) for each in folder.places if each.tensor in why)
    return replace(folder, places=places, outside=(*folder.outside, *left))
