"""What parts of operators compute and move, alone or side by side in one graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from parapipe.graph.operator_graph import (
    AttributeValue,
    Constant,
    NamedTensors,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.graph.work import work_of
from parapipe.parts.part import NotCuttableError, Range, Ranges, axis_names, cut_shape
from parapipe.parts.run import Run, RunPart, Step, merge_ranges, outside_reads


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
    tensors = {n: at for n in names if (at := graph.tensors.get(n) or graph.constants.get(n))}
    return Run(singles, tensors, graph.opsets)


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
    axes: dict[int, CutAxis | str] = {}
    for axis, extent in enumerate(run.shape):
        try:
            step = run.step(axis)
        except NotCuttableError as error:
            axes[axis] = str(error)
        else:
            labels = tuple(name for name, at in names.items() if at == axis)
            axes[axis] = CutAxis(labels, extent, step)
    return axes


def part_work(step: Step, run: Run) -> Work:
    """Return the work of one operator in a part; in proportion where a rule of the user gave it."""
    operator, computed = step.operator, step.computed
    if operator.work.rule:
        extent = run.tensors[operator.outputs[0]].shape[computed.axis]
        work = operator.work
        macs, read, written = (
            ceil(number * computed.size / extent)
            for number in (work.macs, work.read_bytes, work.written_bytes)
        )
        return replace(work, macs=macs, read_bytes=read, written_bytes=written)
    return work_of(
        operator.domain,
        operator.type,
        change_attributes(operator.attributes, step.part.attributes),
        part_inputs(step),
        operator.outputs,
        known=_tensors(step, run.tensors),
    )


def part_inputs(step: Step) -> list[str]:
    """Return what an operator reads in a part, by position; "" for what it does not read."""
    return [
        "" if step.part.of(position) is None else name
        for position, name in enumerate(step.operator.inputs)
    ]


def change_attributes(
    before: Mapping[str, AttributeValue], changes: Mapping[str, AttributeValue | None]
) -> dict[str, AttributeValue]:
    """Return attributes with some changed, and without those whose change is None."""
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


def _tensors(step: Step, tensors: NamedTensors) -> dict[str, Tensor | Constant]:
    """Return what an operator reads and makes in a part, with its shapes there."""
    ranges: dict[str, Ranges] = {}
    for position, name in enumerate(step.operator.inputs):
        read = step.part.of(position)
        if name and read is not None:
            ranges[name] = merge_ranges(ranges[name], read) if name in ranges else read
    ranges |= {name: (step.computed,) for name in step.operator.outputs if name}
    return {
        name: tensors[name].part(cut_shape(tensors[name].shape, own_ranges))
        for name, own_ranges in ranges.items()
    }


class PartCollector:
    """Collects parts, each of which reads inputs of its own.

    Parameters
    ----------
    graph
        Whose operators are cut.
    """

    def __init__(self, graph: OperatorGraph) -> None:
        self._graph = graph
        self._operators: list[Operator] = []
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Constant] = {}
        self._inputs: list[str] = []

    def add(self, operators: Sequence[Operator], requested: Range) -> tuple[range, RunPart]:
        """Add a part of a run; return the places of its operators, and the part.

        Raises
        ------
        WholeError
            If it cannot be cut so.
        """
        run = run_of(self._graph, operators)
        part = run.part(requested)
        tag = f"@{len(self._operators)}"
        self._add_tensors(run, part, tag)
        begin = len(self._operators)
        steps = {step.operator.id: step for step in part.steps}
        for operator in operators:
            own = [steps[each.id] for each in operator.singles if each.id in steps]
            if own:
                self._operators.append(_part_operator(operator, own, run, tag))
        return range(begin, len(self._operators)), part

    def graph(self) -> OperatorGraph:
        """Return all parts as one graph."""
        return replace(
            self._graph,
            operators=tuple(self._operators),
            tensors=self._tensors,
            constants=self._constants,
            inputs=tuple(self._inputs),
            outputs=tuple(op.outputs[0] for op in self._operators),
        )

    def _add_tensors(self, run: Run, part: RunPart, tag: str) -> None:
        for name, ranges in outside_reads(part).items():
            tensor = run.tensors[name]
            shaped = replace(tensor.part(cut_shape(tensor.shape, ranges)), name=name + tag)
            if isinstance(shaped, Tensor):
                self._tensors[shaped.name] = shaped
                self._inputs.append(shaped.name)
            else:
                self._constants[shaped.name] = shaped
        for step in part.steps:
            for name in filter(None, step.operator.outputs):
                tensor = run.tensors[name]
                if isinstance(tensor, Tensor):
                    shape = cut_shape(tensor.shape, (step.computed,))
                    self._tensors[name + tag] = Tensor(name + tag, shape, tensor.dtype)


def _part_operator(operator: Operator, steps: Sequence[Step], run: Run, tag: str) -> Operator:
    """Return a part of an operator that may be a fused one, by its steps."""
    singles = tuple(_part_single(step, run, tag) for step in steps)
    if len(singles) == 1:
        return singles[0]
    return replace(
        operator,
        id=operator.id + tag,
        attributes=singles[0].attributes,
        inputs=_tag_names(operator.inputs, tag),
        outputs=_tag_names(operator.outputs, tag),
        work=Work.total([single.work for single in singles]),
        parts=singles,
    )


def _part_single(step: Step, run: Run, tag: str) -> Operator:
    return replace(
        step.operator,
        id=step.operator.id + tag,
        attributes=change_attributes(step.operator.attributes, step.part.attributes),
        inputs=_tag_names(part_inputs(step), tag),
        outputs=_tag_names(step.operator.outputs, tag),
        work=part_work(step, run),
    )


def _tag_names(names: Sequence[str], tag: str) -> tuple[str, ...]:
    return tuple(name and name + tag for name in names)
