"""Subgraphs and units: where a network can be cut into stages (Para-Pipe, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

# A series is run step by step: an operator, or parallel branches, each a series again.
Series = tuple["int | Parallel", ...]
Parallel = tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest run of operators between two places where stages may be cut.

    Parameters
    ----------
    operators
        Indices into the graph's operators, in topological order.
    structure
        The same operators as series and parallel branches, nested ones included.
    """

    operators: tuple[int, ...]
    structure: Series


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A subgraph of the paper: a linear run, or parallel branches with their join.

    Parameters
    ----------
    units
        Its units in order; a linear run has one unit per operator.
    parallelism
        Size of the largest set of operators none of which waits for another.
    branches
        Number of parallel branches that leave its first fork (1 for a linear run).
    """

    units: tuple[Unit, ...]
    parallelism: int
    branches: int

    @property
    def operators(self) -> tuple[int, ...]:
        """Indices of all its operators, in topological order."""
        return tuple(v for unit in self.units for v in unit.operators)


@dataclass(frozen=True, slots=True)
class Partition:
    """All subgraphs in topological order; together they hold every operator once.

    Parameters
    ----------
    boundaries
        `boundaries[i]`: names of the activation tensors that are live before unit i (made by an
        earlier unit and still to be read, graph outputs that were made earlier excluded), sorted;
        graph inputs do not count. One more entry than units, the first and the last empty.
    """

    subgraphs: tuple[Subgraph, ...]
    boundaries: tuple[tuple[str, ...], ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in order."""
        return tuple(unit for subgraph in self.subgraphs for unit in subgraph.units)

    @property
    def order(self) -> tuple[int, ...]:
        """All operators in the partition's topological order."""
        return tuple(v for subgraph in self.subgraphs for v in subgraph.operators)
