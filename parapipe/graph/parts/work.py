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
from parapipe.graph.parts.part import Range, Ranges, WholeError, cut_shape
from parapipe.graph.parts.run import Run, Step, joined, read_of
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


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """A part of an operator, or of several in a row.

    Parameters
    ----------
    asked
        Its range of the last operator's outputs.
    reads
        What it reads of tensors and constants, by name; of those that it reads nothing of, none is
        there, and `()` stands for everything.
    work
        The sum over all its single operators, halos that it computes itself included.
    """

    asked: Range
    reads: Mapping[str, Ranges]
    work: Work


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


def parts_of(
    graph: OperatorGraph, operators: Operator | Sequence[Operator], ranges: Sequence[Range]
) -> tuple[OperatorPart, ...]:
    """Return parts of an operator or a run.

    Parameters
    ----------
    operators
        As for `cuttable_axes`.
    ranges
        Ranges of the result, such as those of `shared_out`.

    Raises
    ------
    WholeError
        If it cannot be cut so.
    """
    run = run_of(graph, operators)
    found = []
    for asked in ranges:
        part = run.part(asked)
        works = [work_in(step, run) for step in part.steps]
        total = Work(
            sum(work.macs for work in works),
            sum(work.read_bytes for work in works),
            sum(work.written_bytes for work in works),
            modelled=all(work.modelled for work in works),
            rule=next((work.rule for work in works if work.rule), ""),
            runs_on=run.last.work.runs_on,
        )
        found.append(OperatorPart(asked, read_of(part), total))
    return tuple(found)


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
    inputs = [
        "" if step.part.of(position) is None else name
        for position, name in enumerate(operator.inputs)
    ]
    return work_of(
        operator.domain,
        operator.type,
        changed(operator.attributes, step.part.attributes),
        inputs,
        operator.outputs,
        known=_sliced(step, run.known),
    )


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
