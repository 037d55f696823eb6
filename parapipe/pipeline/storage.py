"""What the tensors and weights of a graph take in the memories of a platform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Self

from parapipe.cost.cost_table import CostTable
from parapipe.cost.precision import type_there
from parapipe.graph.operator_graph import OperatorGraph, size_in_bytes
from parapipe.pipeline.mapping import Mapping
from parapipe.platform.memories import MemorySystem

_Copy = tuple[str, str, int, int | None]
"""A weight, its data type, its memory, and the processor whose own copy it is."""


@dataclass(frozen=True)
class Storage:
    """What the tensors of a graph take, wherever they are.

    Parameters
    ----------
    processors
        Names, by the indices of mappings.
    working
        By processor: the type that it keeps converted tensors in, None for the model's own.
    """

    graph: OperatorGraph
    system: MemorySystem
    processors: tuple[str, ...]
    working: tuple[str | None, ...]
    _sizes: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    _weights: dict[tuple[int, int], dict[_Copy, int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, graph: OperatorGraph, costs: CostTable) -> Self:
        """Return the storage of a graph on the platform of its costs."""
        names = costs.processors
        system = costs.memory_system or MemorySystem.assumed_for(names)
        return cls(graph, system, names, costs.working or (None,) * len(names))

    def memory_of(self, p: int) -> int:
        """Return the memory of a processor."""
        return self.system.memory_of[self.processors[p]]

    def copies(self, name: str, p: int, q: int) -> bool:
        """Tell whether a tensor that goes from one processor to another is copied."""
        pair = self.processors[p], self.processors[q]
        return (
            self.memory_of(p) != self.memory_of(q)
            or pair in self.system.copying
            or self.type_of(name, p) != self.type_of(name, q)
        )

    def type_of(self, name: str, p: int) -> str:
        """Return the type that a processor keeps a tensor in."""
        return type_there(self.graph.tensors[name].dtype, self.working[p])

    def tensor_bytes(self, name: str, p: int) -> int:
        """Return what a tensor takes where a processor keeps it."""
        if (known := self._sizes.get((name, p))) is None:
            size_bytes = size_in_bytes(self.graph.tensors[name].shape, self.type_of(name, p)) or 0
            known = self._sizes[name, p] = self.system.size_bytes(self.memory_of(p), size_bytes)
        return known

    def weights_bytes(self, mapping: Mapping) -> list[int]:
        """Return what the weights take in each memory, once for each copy."""
        kept: dict[_Copy, int] = {}
        for at in mapping.placements:
            for p in mapping.replicas.get(at.processor, (at.processor,)):
                where = (at.operator, p)
                if where not in self._weights:
                    self._weights[where] = dict(self._weights_of(*where))
                kept.update(self._weights[where])
        total = [0] * len(self.system.names)
        for (_, _, memory, _), size_bytes in kept.items():
            total[memory] += size_bytes
        return total

    def _weights_of(self, v: int, p: int) -> Iterator[tuple[_Copy, int]]:
        """Yield the weights that an operator needs on a processor."""
        operator, memory = self.graph.operators[v], self.memory_of(p)
        own = self.system.packing.get(self.processors[p])
        for name in (name for each in (operator, *operator.parts) for name in each.inputs):
            if constant := self.graph.constants.get(name):
                dtype = constant.stored or type_there(constant.dtype, self.working[p])
                content_bytes = (size_in_bytes(constant.shape, dtype) or 0) * (own or 1)
                size_bytes = self.system.size_bytes(memory, content_bytes)
                yield (name, dtype, memory, None if own is None else p), size_bytes

    def least_bytes(self, costs: CostTable) -> int:
        """Return what any mapping needs: each weight once, and the operator with the most beside.

        Parameters
        ----------
        costs
            Say which processors run an operator.
        """
        weights: dict[str, int] = {}
        most = 0
        for v, operator in enumerate(self.graph.operators):
            runs = [p for p in range(len(self.processors)) if costs.time_s(v, p) < inf]
            for (name, *_), size_bytes in (each for p in runs for each in self._weights_of(v, p)):
                weights[name] = min(size_bytes, weights.get(name, size_bytes))
            names = {*self.graph.reads(operator), *filter(None, operator.outputs)}
            beside = (sum(self.tensor_bytes(name, p) for name in names) for p in runs)
            most = max(most, min(beside))
        return sum(weights.values()) + most
