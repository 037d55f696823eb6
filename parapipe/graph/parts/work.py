"""What the parts of an operator, or of several in a row, compute and move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from parapipe.graph.operator_graph import (
    AttributeValue,
    Constant,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.graph.parts.axes import axis_names
from parapipe.graph.parts.part import Ranges, WholeError, cut_shape
from parapipe.graph.parts.run import Run, Step, joined
from parapipe.graph.work import work_of


@dataclass(frozen=True, slots=True)
class CutAxis:
    """An axis along which an operator can be cut.

    Parameters
    ----------
    names
        What it is called; empty where it has a number only.
    extent
        Elements along it.
    step
        Parts begin and end at multiples of it.
    """

    names: tuple[str, ...]
    extent: int
    step: int


def run_of(graph: OperatorGraph, operators: Operator | Sequence[Operator]) -> Run:
    """Return operators of a graph, each with all its singles, as a run.

    Parameters
    ----------
    operators
        One, or several in topological order.
    """
    listed = (operators,) if isinstance(operators, Operator) else operators
    singles = tuple(single for operator in listed for single in operator.singles)
    names = {name for single in singles for name in (*single.inputs, *single.outputs) if name}
    known = {n: at for n in names if (at := graph.tensors.get(n) or graph.constants.get(n))}
    return Run(singles, known, graph.opsets)


def cuttable_axes(
    graph: OperatorGraph, operators: Operator | Sequence[Operator]
) -> dict[int, CutAxis | str]:
    """Return for each axis of a result how it can be cut, or why it cannot be.

    Parameters
    ----------
    operators
        One operator of the graph, or a run: several in topological order, of which nothing outside
        reads a result but that of the last one.
    """
    run = run_of(graph, operators)
    names = axis_names(run.last.type, len(run.shape))
    found: dict[int, CutAxis | str] = {}
    for axis, extent in enumerate(run.shape):
        try:
            step = run.step(axis)
        except WholeError as error:
            found[axis] = str(error)
        else:
            named = tuple(name for name, at in names.items() if at == axis)
            found[axis] = CutAxis(named, extent, step)
    return found


def work_in(step: Step, run: Run) -> Work:
    """Return the work of one operator in a part; in proportion where a rule of the user gave it."""
    operator, made = step.operator, step.made
    if operator.work.rule:
        extent = run.known[operator.outputs[0]].shape[made.axis]
        whole = operator.work
        macs, read, written = (
            ceil(number * made.size / extent)
            for number in (whole.macs, whole.read_bytes, whole.written_bytes)
        )
        return replace(whole, macs=macs, read_bytes=read, written_bytes=written)
    return work_of(
        operator.domain,
        operator.type,
        changed(operator.attributes, step.part.attributes),
        inputs_in(step),
        operator.outputs,
        known=_sliced(step, run.known),
    )


def inputs_in(step: Step) -> list[str]:
    """Return what an operator reads in a part, by position; "" for what it does not read."""
    return [
        "" if step.part.of(position) is None else name
        for position, name in enumerate(step.operator.inputs)
    ]


def changed(
    before: Mapping[str, AttributeValue], changes: Mapping[str, AttributeValue | None]
) -> dict[str, AttributeValue]:
    """Return attributes with some changed, and without those whose change is None."""
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


def _sliced(step: Step, known: Mapping[str, Tensor | Constant]) -> dict[str, Tensor | Constant]:
    """Return what an operator reads and makes in a part, with its shapes there."""
    ranges: dict[str, Ranges] = {}
    for position, name in enumerate(step.operator.inputs):
        read = step.part.of(position)
        if name and read is not None:
            ranges[name] = joined(ranges[name], read) if name in ranges else read
    ranges |= {name: (step.made,) for name in step.operator.outputs if name}
    return {
        name: replace(known[name], shape=cut_shape(known[name].shape, of_it))
        for name, of_it in ranges.items()
    }
