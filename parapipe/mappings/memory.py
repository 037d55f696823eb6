"""How much memory a mapping needs at most, when and what for, and limits of memory.

What counts:

- Tensors, copies and queues, for as long as they live (`parapipe.mappings.lifetimes`).
- Weights, once in each memory where they are used, or for each processor that needs its own copy.
- What segments take by themselves, where the platform says it.

Each tensor has memory of its own: operators that work in place may need less. Scratch memory of
operators is not known. So the peak is the least that an arena can do with that keeps this schedule.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.files.mistakes import listed
from parapipe.files.record import Row
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.event_graph import picoseconds
from parapipe.mappings.lifetimes import Content, Life, Lives, Point, Storage
from parapipe.mappings.mapping import Mapping
from parapipe.platform.memories import MemorySystem, no_such_memory
from parapipe.solvers.memory.orders import LiveTensor, OrderProblem

SECONDS = 1e-12


class AliveRow(Row):
    """A tensor that takes memory at the moment of the peak."""

    name: str
    """Of the tensor."""
    content: Content
    """tensor: where it was made or loaded; copy: of a tensor that came from another processor;
    queue: the slots between processors that work on different frames."""
    frames: int
    """How many frames of it are there; of a queue, its slots."""
    size_bytes: int
    """Of all of them."""


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """What one memory, or all together, needs.

    Parameters
    ----------
    size_bytes
        The most at one moment: activations, weights and segments.
    weights_bytes
        Of these, weights, which are there at any time.
    segments_bytes
        Of these, what segments take by themselves, which is there at any time.
    at_s
        First moment of the peak, from the start of the period.
    alive
        Activations at that moment, the largest first.
    usage
        (seconds, bytes) from the start of the period: what there is from then on.
    """

    name: str
    size_bytes: int
    weights_bytes: int
    at_s: float
    alive: tuple[AliveRow, ...]
    usage: tuple[tuple[float, int], ...]
    segments_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """What a mapping needs of all memories at one moment, and of each by itself."""

    total: MemoryPeak
    memories: tuple[MemoryPeak, ...]


def peak_memory(mapping: Mapping, storage: Storage, period_s: float) -> PeakMemory:
    """Return the most memory that a mapping needs while frames enter once per period.

    Parameters
    ----------
    storage
        Of the graph and the processors that the mapping is of.
    period_s
        That of the mapping.
    """
    lives = [*Lives(mapping, storage, picoseconds(period_s)).all()]
    weights_bytes = storage.weights_bytes(mapping)
    segments_bytes = storage.segments_bytes(mapping)
    names = storage.system.names
    memories = tuple(
        _peak(name, [b for b in lives if b.memory == m], weights_bytes[m], segments_bytes[m])
        for m, name in enumerate(names)
    )
    total = memories[0]
    if len(names) > 1:
        total = _peak("all", lives, sum(weights_bytes), sum(segments_bytes))
    return PeakMemory(total, memories)


def peaks_of(
    graph: OperatorGraph, costs: Callable[[Configuration], CostTable]
) -> Callable[[Configuration], PeakMemory]:
    """Return what gives the most memory that a configuration of a model needs.

    Parameters
    ----------
    costs
        Gives those that a configuration rests on.
    """
    storage_of: dict[int, Storage] = {}  # of a model that is not split, by the cost table

    def peak_of(configuration: Configuration) -> PeakMemory:
        if configuration.split:
            storage = Storage.of(configuration.split.graph, configuration.split.costs)
        else:
            if configuration.table not in storage_of:
                storage_of[configuration.table] = Storage.of(graph, costs(configuration))
            storage = storage_of[configuration.table]
        return peak_memory(configuration.mapping, storage, configuration.evaluated.period_s)

    return peak_of


def _peak(name: str, lives: Sequence[Life], weights_bytes: int, segments_bytes: int) -> MemoryPeak:
    constant_bytes = weights_bytes + segments_bytes
    present_bytes = constant_bytes + sum(each.frames * each.size_bytes for each in lives)
    at: Point = (0, -1, 0, 0)
    peak_bytes, usage = -1, {0: present_bytes}
    moving = [each for each in lives if each.content != "queue"]
    begins = [(each.begin[1], each.size_bytes) for each in moving]
    ends = [(each.end[1], -each.size_bytes) for each in moving]
    for point, change in sorted(begins + ends):
        present_bytes += change
        if present_bytes > peak_bytes:
            peak_bytes, at = present_bytes, point
        usage[point[0]] = present_bytes
    peak_bytes = max(peak_bytes, present_bytes)
    alive = [
        AliveRow(name=b.name, content=b.content, frames=frames, size_bytes=frames * b.size_bytes)
        for b in lives
        if (frames := b.alive(at))
    ]
    return MemoryPeak(
        name,
        peak_bytes,
        weights_bytes,
        at[0] * SECONDS,
        tuple(sorted(alive, key=lambda a: (-a.size_bytes, a.name))),
        tuple((at_ps * SECONDS, size_bytes) for at_ps, size_bytes in usage.items()),
        segments_bytes,
    )


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The most that configurations may need.

    Parameters
    ----------
    size_bytes
        Of all memories together, or of some by their names; None for no limit.
    """

    size_bytes: float | abc.Mapping[str, float] | None

    def check(self, system: MemorySystem) -> None:
        """Refuse limits of memories that there are not.

        Raises
        ------
        MappingError
            Names all of them.
        """
        if isinstance(self.size_bytes, abc.Mapping):
            unknown = [name for name in self.size_bytes if name not in system.names]
            if unknown:
                raise MappingError(no_such_memory(unknown, system.names))

    def share(self, configuration: Configuration) -> float:
        """Return what is needed of what is allowed, where that is most; 0 without a limit."""
        limited = self._limited_peaks(configuration)
        return max((each.size_bytes / most for each, most in limited), default=0.0)

    def left_bytes(self, configuration: Configuration) -> float:
        """Return what is left of what is allowed, less than 0 if it is exceeded."""
        return min(
            (most - each.size_bytes for each, most in self._limited_peaks(configuration)),
            default=inf,
        )

    def fits(self, configuration: Configuration) -> bool:
        """Tell whether a configuration keeps the limit."""
        return self.share(configuration) <= 1

    def nearest(self, candidates: Iterable[Configuration]) -> Configuration:
        """Return the configuration that comes nearest to the limit."""
        return min(candidates, key=lambda each: (self.share(each), each.nano_objectives))

    def told(self, configuration: Configuration) -> str:
        """Say what is needed in place of what is allowed."""
        return "; ".join(
            f"{megabytes(each.size_bytes, ROUND_CEILING)} instead of {megabytes(most)}"
            + (f" in '{each.name}'" if isinstance(self.size_bytes, abc.Mapping) else "")
            for each, most in self._limited_peaks(configuration)
            if each.size_bytes > most
        )

    def _limited_peaks(self, configuration: Configuration) -> list[tuple[MemoryPeak, float]]:
        peak = configuration.peak
        assert peak is not None
        match self.size_bytes:
            case None:
                return []
            case abc.Mapping() as by_name:
                return [(m, by_name[m.name]) for m in peak.memories if m.name in by_name]
            case most:
                return [(peak.total, most)]

    def scarcity(self, names: Sequence[str]) -> tuple[float, ...]:
        """Return how scarce each memory is beside the scarcest, which is 1; 0 is no limit of it."""
        if not isinstance(self.size_bytes, abc.Mapping):
            return (1.0,) * len(names)
        least = min(self.size_bytes.values())
        return tuple(least / self.size_bytes[n] if n in self.size_bytes else 0.0 for n in names)

    def worst(self, configuration: Configuration) -> MemoryPeak:
        """Return the memory that exceeds its limit most, or all of them."""
        return max(
            self._limited_peaks(configuration), key=lambda each: each[0].size_bytes / each[1]
        )[0]


def no_fit_message(
    model: str, limit: MemoryLimit, nearest: Configuration, names: tuple[str, ...], bound: str
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
    weights = f"{megabytes(worst.weights_bytes)} of it are weights"
    if worst.segments_bytes:
        weights += f", {megabytes(worst.segments_bytes)} what segments take by themselves"
    alive = [f"{each.name} {megabytes(each.size_bytes)}" for each in worst.alive[:3]]
    where = " │ ".join(
        "+".join(names[p] for p in stage.processors) for stage in nearest.mapping.stages
    )
    return (
        f"no mapping of '{model}' was found that fits: the least, on {where}, needs "
        f"{limit.told(nearest)}; {weights}, and at its peak "
        f"{listed(alive)} are alive; {bound}; allow more with `max_memory_bytes`"
    )


def megabytes(size_bytes: float, rounding: str = ROUND_FLOOR) -> str:
    """Return bytes as MB with four digits.

    What is needed is rounded up, so that a limit of that is kept; limits and bounds are not.
    """
    rounded = Context(prec=4, rounding=rounding).create_decimal(size_bytes)
    return f"{plain(float(rounded) / 1e6)} MB"


def order_problem(
    graph: OperatorGraph, operators: Sequence[int], size_bytes: Callable[[str], int] | None = None
) -> OrderProblem:
    """Return the problem of an order for these operators of a graph, numbered as they stand there.

    Parameters
    ----------
    operators
        Of a stage, each once. What others read, and graph outputs, stay alive; what others make,
        and graph inputs, is there from the start.
    size_bytes
        Gives what a tensor takes; as in the model if not given.
    """
    place = {v: i for i, v in enumerate(operators)}
    names = (
        name
        for v in operators
        for name in (*graph.reads(graph.operators[v]), *graph.operators[v].outputs)
        if name
    )
    tensors: list[LiveTensor] = []
    for name in dict.fromkeys(names):
        maker = graph.producer.get(name, -1)
        readers = graph.consumers.get(name, ())
        tensors.append(
            LiveTensor(
                size_bytes(name) if size_bytes else graph.tensors[name].size_bytes,
                place.get(maker),
                frozenset(place[v] for v in readers if v in place),
                name in graph.outputs or any(v not in place for v in readers),
            )
        )
    return OrderProblem(len(place), tuple(tensors))
