"""Parts of many operators side by side in one graph, so that they can be priced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parapipe.graph.operator_graph import Constant, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.parts.part import Range, cut_shape
from parapipe.graph.parts.run import Run, RunPart, Step, read_of
from parapipe.graph.parts.work import changed, inputs_in, run_of, work_in


class PartsAlone:
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

    def add(self, operators: Sequence[Operator], asked: Range) -> tuple[range, RunPart]:
        """Add a part of a run; return the places of its operators, and the part.

        Raises
        ------
        WholeError
            If it cannot be cut so.
        """
        run = run_of(self._graph, operators)
        part = run.part(asked)
        tag = f"@{len(self._operators)}"
        self._keep(run, part, tag)
        begin = len(self._operators)
        steps = {step.operator.id: step for step in part.steps}
        for operator in operators:
            own = [steps[each.id] for each in operator.singles if each.id in steps]
            if own:
                self._operators.append(_operator(operator, own, run, tag))
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

    def _keep(self, run: Run, part: RunPart, tag: str) -> None:
        for name, ranges in read_of(part).items():
            known = run.known[name]
            shaped = replace(known, name=name + tag, shape=cut_shape(known.shape, ranges))
            if isinstance(shaped, Tensor):
                self._tensors[shaped.name] = shaped
                self._inputs.append(shaped.name)
            else:
                self._constants[shaped.name] = shaped
        for step in part.steps:
            for name in filter(None, step.operator.outputs):
                known = run.known[name]
                if isinstance(known, Tensor):
                    shape = cut_shape(known.shape, (step.made,))
                    self._tensors[name + tag] = Tensor(name + tag, shape, known.dtype)


def _operator(operator: Operator, steps: Sequence[Step], run: Run, tag: str) -> Operator:
    """Return a part of an operator that may be a fused one, by its steps."""
    singles = tuple(_single(step, run, tag) for step in steps)
    if len(singles) == 1:
        return singles[0]
    return replace(
        operator,
        id=operator.id + tag,
        attributes=singles[0].attributes,
        inputs=_tagged(operator.inputs, tag),
        outputs=_tagged(operator.outputs, tag),
        work=Work.total([single.work for single in singles]),
        parts=singles,
    )


def _single(step: Step, run: Run, tag: str) -> Operator:
    return replace(
        step.operator,
        id=step.operator.id + tag,
        attributes=changed(step.operator.attributes, step.part.attributes),
        inputs=_tagged(inputs_in(step), tag),
        outputs=_tagged(step.operator.outputs, tag),
        work=work_in(step, run),
    )


def _tagged(names: Sequence[str], tag: str) -> tuple[str, ...]:
    return tuple(name and name + tag for name in names)
