"""Rules on what a plan says of the network: names, tensors, constants and what makes what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from parapipe.files.listing import listed
from parapipe.graph.operator_graph import size_in_bytes
from parapipe.plan.mapped import producers
from parapipe.plan.schema import Constant, Operator, Plan


def structure_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the operators and tensors of a plan.

    The rules: names are unique; tensors have a known type and the bytes of their shape; every
    input of an operator is a tensor, declared and made before it (a graph input always is), or a
    constant, declared by the operator; a constant is the same wherever it is declared; a tensor
    is made once, and graph inputs by no operator; every graph output is made; a fused operator's
    parts make what it makes, from what it reads.
    """
    yield from _names(plan)
    yield from _sizes(plan)
    yield from _order(plan)
    yield from _boundary(plan)
    for operator in plan.operators:
        yield from _operator(operator, plan)
        yield from _parts(operator, plan)
        yield from _folded(operator)
    yield from _constants(plan)


def repeated(names: Iterable[str]) -> list[str]:
    """Names that stand more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _names(plan: Plan) -> Iterator[str]:
    named = {
        "operators have the id": (operator.id for operator in plan.operators),
        "graph inputs have the name": plan.inputs,
        "graph outputs have the name": plan.outputs,
    }
    for what, names in named.items():
        for name in repeated(names):
            yield f"two {what} '{name}'"
    outputs = (name for operator in plan.operators for name in operator.outputs if name)
    for name in repeated(outputs):
        yield f"tensor '{name}' is made twice"


def _sizes(plan: Plan) -> Iterator[str]:
    for name, tensor in plan.tensors.items():
        size_bytes = size_in_bytes(tensor.shape, tensor.dtype)
        if size_bytes is None:
            yield f"tensor '{name}' is of the unknown type '{tensor.dtype}'"
            continue
        if tensor.size_bytes != size_bytes:
            yield (
                f"tensor '{name}' has {size_bytes} bytes by its shape and type, and the plan says "
                f"{tensor.size_bytes}"
            )


def _order(plan: Plan) -> Iterator[str]:
    """Operators stand in topological order: a runtime may set them up one by one."""
    made = producers(plan)
    seen = set(plan.inputs)
    for operator in plan.operators:
        for name in dict.fromkeys(operator.inputs):
            if name in plan.tensors and name not in seen:
                why = f"which only '{made[name]}' makes" if name in made else "which nothing makes"
                yield f"operator '{operator.id}' reads '{name}', {why}"
        seen.update(operator.outputs)


def _boundary(plan: Plan) -> Iterator[str]:
    made = producers(plan)
    for name in plan.inputs:
        if name not in plan.tensors:
            yield f"graph input '{name}' is no tensor of the plan"
        if name in made:
            yield f"graph input '{name}' is made by operator '{made[name]}'"
    for name in plan.outputs:
        if name not in plan.tensors:
            yield f"graph output '{name}' is no tensor of the plan"
        elif name not in made and name not in plan.inputs:
            yield f"graph output '{name}' is made by no operator"


def _operator(operator: Operator, plan: Plan) -> Iterator[str]:
    first = next((name for name in operator.outputs if name), None)
    if operator.id != first:
        yield f"operator '{operator.id}' should have its first output, '{first}', for an id"
    for name in operator.outputs:
        if name and name not in plan.tensors:
            yield f"operator '{operator.id}' makes '{name}', which is no tensor of the plan"
    yield from _inputs(operator, f"'{operator.id}'", plan)


def _inputs(operator: Operator, called: str, plan: Plan) -> Iterator[str]:
    """Every input is a tensor or a declared constant, not both; no constant is idle."""
    constants = [constant.name for constant in operator.constants]
    for name in repeated(constants):
        yield f"operator {called} declares constant '{name}' twice"
    for name in dict.fromkeys(constants):
        if name not in operator.inputs:
            yield f"operator {called} declares constant '{name}' and does not read it"
        if name in plan.tensors:
            yield f"operator {called} declares constant '{name}', which is a tensor of the plan"
    for name in dict.fromkeys(operator.inputs):
        if name and name not in plan.tensors and name not in constants:
            yield (
                f"operator {called} reads '{name}', which is neither a tensor of the plan nor a "
                "constant that it declares"
            )


def _parts(operator: Operator, plan: Plan) -> Iterator[str]:
    if not operator.parts:
        return
    available = set(operator.inputs)
    for part in operator.parts:
        called = f"'{part.id}' within '{operator.id}'"
        yield from _inputs(part, called, plan)
        for name in dict.fromkeys(part.inputs):
            if name in plan.tensors and name not in available:
                yield (
                    f"operator {called} reads '{name}', which is neither made by a part before "
                    "it nor read by the whole"
                )
        for name in part.outputs:
            if name and name not in plan.tensors:
                yield f"operator {called} makes '{name}', which is no tensor of the plan"
        available.update(part.outputs)
    made = {name for part in operator.parts for name in part.outputs}
    for name in operator.outputs:
        if name and name not in made:
            yield f"operator '{operator.id}' makes '{name}', which none of its parts makes"


def _folded(operator: Operator) -> Iterator[str]:
    """Only one input of a folded operator may be an activation: all else is known beforehand."""
    for single in (operator, *operator.parts):
        for folded in single.folded:
            declared = {constant.name for constant in folded.constants}
            unknown = [name for name in folded.inputs if name and name not in declared]
            if len(unknown) > 1:
                names = listed([f"'{name}'" for name in unknown])
                yield (
                    f"operator '{folded.id}', folded into '{operator.id}', reads {names}: all but "
                    "one must be constants that it declares"
                )


def _constants(plan: Plan) -> Iterator[str]:
    known: dict[str, Constant] = {}
    for operator in plan.operators:
        for constant in _declared(operator):
            if known.setdefault(constant.name, constant) != constant:
                yield (
                    f"constant '{constant.name}' of operator '{operator.id}' is declared "
                    "differently elsewhere"
                )


def _declared(operator: Operator) -> Iterator[Constant]:
    yield from operator.constants
    for inner in (*operator.parts, *operator.folded):
        yield from _declared(inner)
