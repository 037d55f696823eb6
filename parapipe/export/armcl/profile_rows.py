"""What a profile says of each operator, so that a runner's times can be imported again."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.cost.signature import signature_of
from parapipe.graph import operator_graph
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.graph.work import operator_class, work_of
from parapipe.plan.armcl_plan import ProfileRow
from parapipe.plan.schema import Operator, Plan


def profile_rows(plan: Plan) -> Iterator[tuple[str, ProfileRow]]:
    """Yield operators' ids and their rows; views, which take no time, have none."""
    graph = _tensors(plan)
    for operator in plan.operators:
        first, *others = (_single(part, graph) for part in operator.parts or (operator,))
        kind = operator_class(first, graph)
        if kind == "view":
            continue
        signature = signature_of(first, graph)
        yield (
            operator.id,
            ProfileRow.model_validate(
                {
                    "type": signature.type,
                    "kernel": signature.kernel,
                    "strides": signature.strides,
                    "attributes": signature.attributes,
                    "inputs": signature.inputs,
                    "output": signature.output,
                    "dtype": signature.dtype,
                    "class": kind,
                    "macs": first.work.macs,
                    "size_bytes": first.work.read_bytes + first.work.written_bytes,
                    "then": " ".join(part.type for part in others),
                }
            ),
        )


def _tensors(plan: Plan) -> OperatorGraph:
    """Return the tensors and constants of a plan, without operators."""
    constants = {
        constant.name: operator_graph.Constant(constant.name, constant.shape, constant.dtype)
        for operator in plan.operators
        for single in (operator, *operator.parts)
        for constant in single.constants
    }
    tensors = {
        name: operator_graph.Tensor(name, tensor.shape, tensor.dtype)
        for name, tensor in plan.tensors.items()
    }
    return OperatorGraph(ModelSource("", ""), "onnx", (), tensors, constants, plan.inputs, ())


def _single(operator: Operator, graph: OperatorGraph) -> operator_graph.Operator:
    work = work_of(
        operator.domain,
        operator.type,
        operator.attributes,
        operator.inputs,
        operator.outputs,
        known={**graph.constants, **graph.tensors},
    )
    return operator_graph.Operator(
        id=operator.id,
        name=operator.name,
        domain=operator.domain,
        type=operator.type,
        attributes=operator.attributes,
        inputs=operator.inputs,
        outputs=operator.outputs,
        work=work,
        members=operator.members,
    )
