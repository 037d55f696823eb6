"""States of a model as a front states them."""

from __future__ import annotations

from functools import partial
from typing import Literal

from parapipe.files.record import Row
from parapipe.graph.operator_graph import OperatorGraph, State


class StateRow(Row):
    """An input that the step before has made."""

    input: str
    """Name of the graph input."""
    output: str
    """Name of the graph output."""
    kind: Literal["state", "token"]
    """state: the same tensor. token: chosen of the output outside of the model, as the next word
    of the logits."""
    size_bytes: int
    """Bytes of the input for one sequence."""
    grows_bytes: int
    """By how many bytes the output is larger: a cache grows with every step."""

    @classmethod
    def of_graph(cls, graph: OperatorGraph) -> tuple[StateRow, ...] | None:
        """Return the states of a graph; None if it has none."""
        return tuple(map(partial(_state_row, graph), graph.states)) or None


def _state_row(graph: OperatorGraph, state: State) -> StateRow:
    read, made = graph.tensors[state.input], graph.tensors[state.output]
    return StateRow.of(
        state,
        size_bytes=read.size_bytes,
        grows_bytes=made.size_bytes - read.size_bytes if state.kind == "state" else 0,
    )
