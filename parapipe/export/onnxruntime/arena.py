"""Which tensors between sessions can lie at the plan's offsets, for runs with arenas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from parapipe.cost.precision import type_there
from parapipe.export.onnxruntime.boundary import Handovers
from parapipe.graph.operator_graph import ITEM_BYTES, size_in_bytes
from parapipe.parts.elementwise import ANY_AXIS
from parapipe.plan.records import PlacedBuffer
from parapipe.plan.schema import Operator, Plan
from parapipe.runtime.arena import Moments, PlaceUse, used_places
from parapipe.runtime.document import Arena, Outside, Place, Segment, SessionPlan
from parapipe.runtime.views import container_of, ranges_of, sources

READ_AGAIN = frozenset({"Gelu", "Mish", "Swish", "HardSwish", "Celu"})
"""Types whose kernels may read an element again when they have written what becomes of it."""
NUMBERS = frozenset(
    {
        *("float64", "float32", "float16", "bool"),
        *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    }
)
"""Types of which NumPy has arrays."""
RESULTS = "they are results, which are the caller's"
COPIES = "the plan has them in several memories or data types"
OTHER_TYPE = "they are of another data type here than in the plan"
NO_SIZE = "their elements have no fixed size"
NO_BINDING = "ONNX Runtime binds no memory where a session reads or makes such elements"
ODD = "their offset is no multiple of an element"
IN_PLACE = "what makes them may read again what it would write over"
AT_WORK = "sessions of several operators still use the bytes that single operators would have left"


def with_places(document: SessionPlan, plan: Plan, handovers: Handovers) -> SessionPlan:
    """Return what a folder says of itself, with the places of tensors in arenas.

    The plan's offsets are of operators, and a session may run several: it reads and writes all the
    while. So a tensor has no place where its bytes would then be in use twice.

    Parameters
    ----------
    plan
        With offsets; without them nothing is added.
    handovers
        What segments hand to each other.
    """
    if plan.memory is None:
        return document
    located = _Places(document, plan, handovers)
    arenas = tuple(Arena(each.name, each.size_bytes) for each in plan.memory.arenas)
    return replace(document, arenas=arenas, places=located.places, outside=located.outside)


class _Places:
    def __init__(self, document: SessionPlan, plan: Plan, handovers: Handovers) -> None:
        self._document, self._plan, self._handovers = document, plan, handovers
        self._buffers: dict[str, list[PlacedBuffer]] = {}
        for each in plan.buffers:
            self._buffers.setdefault(each.tensor, []).append(each)
        self._maker_of = {name: each for each in plan.operators for name in each.outputs}
        self._ranges = ranges_of(document)
        self._maker_segments: dict[str, list[Segment]] = {}
        for segment in document.segments:
            for name in segment.outputs:
                self._maker_segments.setdefault(name, []).append(segment)
        self._alone = {v.operators[0] for v in document.segments if len(v.operators) == 1}
        obstacles = {name: self._obstacle(name) for name in self._tensors_between()}
        requested = tuple(self._place_of(name) for name, why in obstacles.items() if why is None)
        self.places = tuple(
            each.place for each in _compatible_places(replace(document, places=requested))
        )
        placed = {each.tensor for each in self.places}
        self.outside = tuple(
            Outside(name, why or AT_WORK) for name, why in obstacles.items() if name not in placed
        )

    def _tensors_between(self) -> list[str]:
        """Return what is read or made by segments; of what is made of ranges, the whole."""
        document = self._document
        containers = container_of(document)
        read = {name for names in sources(document).values() for name in names}
        outputs = {name for each in document.segments for name in each.outputs}
        loaded = read.intersection(document.inputs)
        return sorted({containers.get(name, name) for name in outputs | loaded})

    def _obstacle(self, name: str) -> str | None:
        """Return why a tensor cannot have a place; None if it can."""
        tensor = self._document.tensors[name]
        buffers = self._buffers.get(self._planned_name(name), [])
        if name in {each.tensor for each in self._document.outputs}:
            return RESULTS
        if tensor.dtype not in NUMBERS:
            return NO_SIZE
        if not self._bound_by_makers(name):
            return NO_BINDING
        if len(buffers) != 1:
            return COPIES
        (buffer,) = buffers
        if size_in_bytes(tensor.shape, self._planned_type(buffer)) != tensor.size_bytes:
            return OTHER_TYPE
        if any(offset % ITEM_BYTES[tensor.dtype] for offset in buffer.offset_bytes):
            return ODD
        if buffer.over is not None and not self._writes_over(self._maker_of[buffer.tensor]):
            return IN_PLACE
        return None

    def _bound_by_makers(self, name: str) -> bool:
        """Whether whatever the sessions that make a tensor read and make are arrays of numbers."""
        parts = {name, *(each.tensor for each in self._ranges.get(name, ()))}
        return all(
            self._document.tensors[each].dtype in NUMBERS
            for part in parts
            for segment in self._maker_segments.get(part, ())
            for each in (*segment.inputs, *segment.outputs)
        )

    def _planned_name(self, name: str) -> str:
        return self._handovers.tensor_and_type[name][0]

    def _writes_over(self, operator: Operator) -> bool:
        """Whether a session may write an operator's result over one of its operands."""
        singles = operator.parts or (operator,)
        kinds = {each.type for each in singles}
        return (
            operator.id in self._alone
            and all(not each.domain for each in singles)
            and kinds <= ANY_AXIS - READ_AGAIN
        )

    def _planned_type(self, buffer: PlacedBuffer) -> str:
        """Return the type that the plan keeps a tensor in."""
        keeper = next(p for p in self._plan.processors if p.name == buffer.processors[0])
        return type_there(self._plan.tensors[buffer.tensor].dtype, keeper.data_type)

    def _place_of(self, name: str) -> Place:
        assert self._plan.memory is not None
        (buffer,) = self._buffers[self._planned_name(name)]
        arenas = self._plan.memory.arenas
        arena = next(each.name for each in arenas if buffer.processors[0] in each.processors)
        return Place(name, arena, buffer.offset_bytes, buffer.over, buffer.within)


def _compatible_places(requested: SessionPlan) -> list[PlaceUse]:
    """Return places whose tensors are never in one another's way, the largest first."""
    moments, retained = Moments(requested), list[PlaceUse]()
    used = sorted(used_places(requested), key=lambda each: (-each.size_bytes, each.place.tensor))
    root_of = _roots(requested)
    occupied = _OccupiedPlaces(moments)
    for each in used:
        if occupied.is_free_for(each, root_of):
            retained.append(each)
            occupied.add(each)
    return retained


def _roots(plan: SessionPlan) -> dict[str, str]:
    """Return what each tensor with a place is in the end a range of; itself if of nothing."""
    within = {each.tensor: each.within or each.tensor for each in plan.places}
    roots = {}
    for name in within:
        at, seen = name, {name}
        while (up := within.get(at, at)) not in seen:
            seen.add(up)
            at = up
        roots[name] = at
    return roots


class _OccupiedPlaces:
    """Places that are taken: a row for each offset, with when its tensor of frame 0 lives."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._used: list[PlaceUse] = []
        self._rows: list[tuple[int, ...]] = []
        self._arenas: dict[str, int] = {}

    def add(self, used: PlaceUse) -> None:
        """Take a place."""
        self._rows += self._rows_of(used)
        self._used.append(used)

    def is_free_for(self, used: PlaceUse, root_of: Mapping[str, str]) -> bool:
        """Whether no tensor that has a place lives in the same bytes at the same time."""
        period, (begin, end) = self._moments.period, used.span(self._moments)
        if end - begin > len(used.place.offset_bytes) * period:
            return False
        if not self._rows:
            return True
        owner, arena, low, high, count, number, first, last = np.array(self._rows).T
        for _, own_arena, own_low, own_high, own_count, own_number, *_ in self._rows_of(used):
            step = np.gcd(count, own_count)
            # The other one is so many frames ahead when both live.
            least, most = (begin - last) // period + 1, -((first - end) // period) - 1
            ahead = least + (number - own_number - least) % step
            met = (arena == own_arena) & (low < own_high) & (own_low < high) & (ahead <= most)
            for row in np.nonzero(met)[0]:
                same = ahead[row] == 0 and ahead[row] + step[row] > most[row]
                if not (same and self._may_overlap(used, self._used[owner[row]], root_of)):
                    return False
        return True

    def _rows_of(self, used: PlaceUse) -> list[tuple[int, ...]]:
        offsets, span = used.place.offset_bytes, used.span(self._moments)
        arena = self._arenas.setdefault(used.place.arena, len(self._arenas))
        return [
            (len(self._used), arena, at, at + used.size_bytes, len(offsets), number, *span)
            for number, at in enumerate(offsets)
        ]

    def _may_overlap(self, one: PlaceUse, other: PlaceUse, root_of: Mapping[str, str]) -> bool:
        """Whether one is a range of the other, or written over it by the last that uses it."""
        if root_of[one.place.tensor] == root_of[other.place.tensor]:
            return True
        return self._is_written_over(one, other) or self._is_written_over(other, one)

    def _is_written_over(self, one: PlaceUse, other: PlaceUse) -> bool:
        end, begin = self._moments.end, self._moments.begin
        return one.place.over == other.place.tensor and all(
            each in one.makers or end[each] <= begin[one.makers[0]] for each in other.users
        )
