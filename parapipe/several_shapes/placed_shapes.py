"""A placement of one shape of a model: what it takes, and what ties it to those of other shapes.

A request has steps of each shape, one shape behind the other. So a placement of one shape concerns
those of others in three ways: the weights that both have in a memory are there once; a state that
both know moves from where the one writes it to where the other reads it; and whoever waits for that
draws static power.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import PeakMemory, peak_memory


class SharedWeight(NamedTuple):
    """A copy of a weight as all shapes name it.

    Parameters
    ----------
    memory
        Index of its memory.
    processor
        Name of the processor whose own copy it is; "" if all in the memory use it.
    size_bytes
        What it takes there. What is computed from a shape may have one name and several sizes.
    """

    name: str
    dtype: str
    memory: int
    processor: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of a model, and how many steps of it a request has.

    Parameters
    ----------
    name
        What the user calls it.
    tables
        Its cost tables, as configurations number them; all know the same memories.
    steps
        Of a request; 0 if the mix has none.
    follows
        Whether a request goes on from the shape before to this one; buckets serve others.
    """

    name: str
    graph: OperatorGraph
    tables: tuple[CostTable, ...]
    steps: int = 1
    follows: bool = True


@dataclass(frozen=True)
class PlacedShape:
    """A shape and its configuration: a placement of it.

    Parameters
    ----------
    costs
        Those that it rests on.
    number
        Among those of its shape.
    """

    shape: Shape
    configuration: Configuration
    costs: CostTable = field(repr=False)
    storage: Storage = field(repr=False)
    number: int = 0

    @property
    def graph(self) -> OperatorGraph:
        """The graph that it maps."""
        return self.configuration.graph_of(self.shape.graph)

    @property
    def latency_s(self) -> float:
        """One step."""
        return self.configuration.objectives[0]

    @property
    def steps_s(self) -> float:
        """Seconds from the begin of a request's first step to the end of its last one.

        One follows the other at the period, and the last takes its latency.
        """
        latency_s, period_s, _ = self.configuration.objectives
        return latency_s + (self.shape.steps - 1) * period_s if self.shape.steps else 0.0

    @cached_property
    def energy_j(self) -> float:
        """Joules of a request's steps: static power counts from their begin to their end."""
        _, period_s, energy_j = self.configuration.objectives
        steps = self.shape.steps
        extra_s = max(0.0, self.steps_s - steps * period_s)
        return steps * energy_j + extra_s * sum(self.static_power_w.values())

    @cached_property
    def static_power_w(self) -> Mapping[str, float]:
        """Watts of each processor that it uses, busy or not, by name."""
        used = self.configuration.mapping.processors
        return {self.costs.processors[p]: self.costs.static_power_w[p] for p in used}

    @cached_property
    def peak(self) -> PeakMemory:
        """What it needs by itself."""
        mapping, period_s = self.configuration.mapping, self.configuration.evaluated.period_s
        return self.configuration.peak or peak_memory(mapping, self.storage, period_s)

    @cached_property
    def weights(self) -> frozenset[SharedWeight]:
        """The copies of weights that it needs."""
        names = self.costs.processors
        copies = self.storage.weight_copies(self.configuration.mapping)
        return frozenset(
            SharedWeight(
                each.name,
                each.dtype,
                each.memory,
                "" if each.processor is None else names[each.processor],
                size_bytes,
            )
            for each, size_bytes in copies.items()
        )

    @cached_property
    def segments_bytes(self) -> tuple[int, ...]:
        """What its segments take by themselves, in each memory: they are of this shape alone."""
        return tuple(each.segments_bytes for each in self.peak.memories)

    @cached_property
    def working_bytes(self) -> tuple[int, ...]:
        """What else it needs at most: in each memory, and last in all together at one moment."""
        peaks = (*self.peak.memories, self.peak.total)
        return tuple(each.size_bytes - each.weights_bytes - each.segments_bytes for each in peaks)

    @cached_property
    def writers(self) -> Mapping[str, tuple[str, ...]]:
        """Processors that write each state, several if they take turns, by its input's name."""
        graph = self.graph
        return {
            each.input: self._processors_of([graph.producer[each.output]])
            for each in graph.states
            if each.kind == "state" and each.output in graph.producer
        }

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Processors that read each state, by its input's name."""
        graph = self.graph
        return {
            each.input: self._processors_of(graph.consumers.get(each.input, ()))
            for each in graph.states
            if each.kind == "state"
        }

    def _processors_of(self, operators: Iterable[int]) -> tuple[str, ...]:
        mapping = self.configuration.mapping
        on = (mapping.at[v].processor for v in operators)
        every = {q for p in on for q in mapping.replicas.get(p, (p,))}
        return tuple(self.costs.processors[p] for p in sorted(every))

    @cached_property
    def processor_of(self) -> Mapping[str, str]:
        """Name of each operator's processor, by the operator's id."""
        at, operators = self.configuration.mapping.at, self.graph.operators
        return {each.id: self.costs.processors[at[v].processor] for v, each in enumerate(operators)}

    @cached_property
    def ends(self) -> tuple[object, ...]:
        """Where states are written and read: what moves to and from other shapes' placements."""
        return self.written, tuple(sorted(self.readers.items()))

    @cached_property
    def written(self) -> tuple[object, ...]:
        """Where states are written, of those that it writes."""
        return tuple(sorted(self.writers.items()))

    def is_as_good_as(self, other: PlacedShape, *, energy: bool, memory: bool) -> bool:
        """Tell whether it may take another one's place whatever the other shapes' placements are.

        Then it takes no more of any figure, moves the same states the same ways, and needs no
        weight and no processor that the other one does not.

        Parameters
        ----------
        energy, memory
            Whether they matter.
        """
        return (
            self.latency_s <= other.latency_s
            and self.steps_s <= other.steps_s
            and self.ends == other.ends
            and (not energy or self._saves_energy(other))
            and (not memory or self._saves_memory(other))
        )

    def _saves_energy(self, other: PlacedShape) -> bool:
        return self.energy_j <= other.energy_j and self.draws_no_more(other)

    def draws_no_more(self, other: PlacedShape) -> bool:
        """Tell whether it uses no processor that another one does not, nor one at more watts."""
        others_w = other.static_power_w
        return all(watts <= others_w.get(p, -1) for p, watts in self.static_power_w.items())

    def _saves_memory(self, other: PlacedShape) -> bool:
        mine = (*self.working_bytes, *self.segments_bytes)
        others = (*other.working_bytes, *other.segments_bytes)
        no_more = all(a <= b for a, b in zip(mine, others, strict=True))
        return no_more and self.weights <= other.weights


def placed_shapes_of(
    shape: Shape, configurations: Iterable[Configuration]
) -> Iterator[PlacedShape]:
    """Yield the placements of a shape, in the order of its configurations.

    Those on a part of a cluster are left out: other shapes may not know it.
    """
    storages: dict[int, Storage] = {}
    for number, each in enumerate(configurations):
        costs = each.split.costs if each.split else shape.tables[each.table]
        names = {costs.processors[p] for p in each.mapping.processors}
        if not names <= {*shape.tables[0].processors}:
            continue
        if each.split:
            storage = Storage.of(each.split.graph, costs)
        else:
            storage = storages.setdefault(each.table, Storage.of(shape.graph, costs))
        yield PlacedShape(shape, each, costs, storage, number)
