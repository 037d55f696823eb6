"""Placements of all shapes of a model together, with what ties them counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from parapipe.several_shapes.placed_shapes import PlacedShape, Shape, SharedWeight


@dataclass(frozen=True, slots=True)
class StateMove:
    """A state on its way from the shape that wrote it to the next one that reads it.

    Parameters
    ----------
    state
        Name of its input.
    begin, end
        Numbers of the shapes.
    source, target
        Names of processors.
    """

    state: str
    begin: int
    end: int
    source: str
    target: str
    size_bytes: int
    time_s: float


@dataclass(frozen=True)
class Combination:
    """A placement for each shape.

    Parameters
    ----------
    names
        That it has of its own; empty before it is chosen.
    """

    placements: tuple[PlacedShape, ...]
    names: tuple[str, ...] = ()
    pareto: bool = False

    @cached_property
    def moves(self) -> tuple[StateMove, ...]:
        """What moves in a request, one after the other."""
        return tuple(_moves(self.placements))

    @property
    def move_s(self) -> float:
        """Seconds in which states move."""
        return sum(each.time_s for each in self.moves)

    @cached_property
    def request_s(self) -> float:
        """Seconds of a request: all steps of all shapes, and what moves between them."""
        return sum(each.steps_s for each in self.placements) + self.move_s

    @cached_property
    def energy_j(self) -> float:
        """Joules of a request; while a state moves, processors of both its ends draw power."""
        return sum(each.energy_j for each in self.placements) + sum(self.moves_j)

    @cached_property
    def moves_j(self) -> tuple[float, ...]:
        """Joules of both ends while states move before each shape's steps."""
        waiting_j = [0.0] * len(self.placements)
        for each in self.moves:
            ends_w = (self.placements[at].static_power_w for at in (each.begin, each.end))
            waiting_j[each.end] += each.time_s * sum(_most_of_each(*ends_w).values())
        return tuple(waiting_j)

    @cached_property
    def weights(self) -> frozenset[SharedWeight]:
        """Copies of weights that some shape needs."""
        return frozenset().union(*(each.weights for each in self.placements))

    @cached_property
    def weights_bytes(self) -> tuple[int, ...]:
        """What they take in each memory, each copy once."""
        total = [0] * len(self.placements[0].segments_bytes)
        for each in self.weights:
            total[each.memory] += each.size_bytes
        return tuple(total)

    @cached_property
    def memories_bytes(self) -> tuple[int, ...]:
        """What each memory needs: weights, segments of all shapes, and the most of one shape."""
        working = zip(*(each.working_bytes[:-1] for each in self.placements), strict=True)
        segments = zip(*(each.segments_bytes for each in self.placements), strict=True)
        parts = zip(self.weights_bytes, segments, working, strict=True)
        return tuple(own + sum(some) + max(most) for own, some, most in parts)

    @cached_property
    def memory_bytes(self) -> int:
        """The most at one moment, in all memories."""
        segments_bytes = sum(sum(each.segments_bytes) for each in self.placements)
        working_bytes = max(each.working_bytes[-1] for each in self.placements)
        return sum(self.weights_bytes) + segments_bytes + working_bytes

    def objectives(self, *, energy: bool, memory: bool) -> tuple[float, ...]:
        """Return the latency of each shape, seconds of a request, and what else is asked for."""
        latencies_s = (each.latency_s for each in self.placements)
        figures: tuple[float, ...] = (*latencies_s, self.request_s)
        return (*figures, *(self.energy_j,) * energy, *(self.memory_bytes,) * memory)


def state_hand_overs(shapes: Sequence[Shape]) -> Iterator[tuple[str, int, int]]:
    """Yield each state that goes from one shape to another, with their numbers.

    A shape reads what the last one before it wrote, of those that a request has steps of.
    """
    last: dict[str, int] = {}
    for number, shape in enumerate(shapes):
        if not shape.follows:
            last.clear()
        if shape.steps:
            names = [each.input for each in shape.graph.states if each.kind == "state"]
            yield from ((name, last[name], number) for name in names if name in last)
            last |= dict.fromkeys(names, number)


def _moves(placements: Sequence[PlacedShape]) -> Iterator[StateMove]:
    """Yield what moves between placements; of processors in turn, from that which takes longest."""
    for state, begin, end in state_hand_overs([each.shape for each in placements]):
        writer, reader = placements[begin], placements[end]
        output = next(each.output for each in writer.graph.states if each.input == state)
        if state not in writer.writers:
            continue  # the model hands its own input on
        size_bytes = writer.graph.tensors[output].size_bytes
        index = {name: p for p, name in enumerate(writer.costs.processors)}
        for target in reader.readers[state]:
            sources = [name for name in writer.writers[state] if name != target]
            times_s = {
                name: writer.costs.transfer_s(output, index[name], index[target])
                for name in sources
            }
            if sources:
                source = max(sources, key=times_s.__getitem__)
                yield StateMove(state, begin, end, source, target, size_bytes, times_s[source])


def _most_of_each(*some: Mapping[str, float]) -> dict[str, float]:
    every: dict[str, float] = {}
    for each in some:
        for name, number in each.items():
            every[name] = max(number, every.get(name, number))
    return every
