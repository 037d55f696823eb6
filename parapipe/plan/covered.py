"""Rules on split operators: parts make every element of a result once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from parapipe.plan.mapped import producers
from parapipe.plan.schema import Operator, Plan


def cover_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the parts of a plan's split operators.

    The rules: a part has the size that the plan's rule for its operator gives it, or is cut to it,
    and the size of the whole result is the sum of all; what joins parts of a result takes them in
    their order, each once and none left out between, and makes as many elements as they have; the
    whole result is joined from the first part to the last.
    """
    if plan.model.split is None:
        return
    for rule in plan.model.split.rules:
        yield from _sizes(rule, plan)
    operators = {operator.id: operator for operator in plan.operators}
    maker = {name: operators[v] for name, v in producers(plan).items() if v in operators}
    for operator in plan.operators:
        if operator.type == "Concat":
            yield from _join(operator, [_part(name, maker) for name in operator.inputs], plan)


def _sizes(rule: str, plan: Plan) -> Iterator[str]:
    """Check the parts of a rule `FIRST..LAST:AXIS=SIZES`, as `map` writes them, AXIS a number."""
    selector, _, shares = rule.rpartition("=")
    run, _, axis = selector.rpartition(":")
    *_, whole = run.rpartition("..")
    numbers = [axis, *shares.split(",")]
    if ".." not in run or "," not in shares or not all(map(str.isdecimal, numbers)):
        return
    sizes = [int(share) for share in shares.split(",")]
    wanted = {f"{whole}/part{number}": size for number, size in enumerate(sizes)}
    cuts = [each for each in plan.operators if each.type == "Slice"]
    for name, size in {**wanted, whole: sum(sizes)}.items():
        cut = (each.outputs[0] for each in cuts if each.inputs[0] == name != whole)
        made = [plan.tensors[each].shape for each in (name, *cut) if each in plan.tensors]
        extents = [sum(shape[int(axis) : int(axis) + 1]) for shape in made]
        if extents and size not in extents:
            yield (
                f"'{name}' has {extents[0]} elements along axis {axis}, and rule '{rule}' gives "
                f"it {size}"
            )


def _part(name: str, maker: Mapping[str, Operator]) -> tuple[str, int] | None:
    """Return the result that a tensor is a part of, or is cut from one, and the part's number."""
    made_by = maker.get(name)
    for source in (name, *(made_by.inputs[:1] if made_by and made_by.type == "Slice" else ())):
        whole, _, number = source.rpartition("/part")
        if whole and number.isdecimal():
            return whole, int(number)
    return None


def _join(operator: Operator, parts: Sequence[tuple[str, int] | None], plan: Plan) -> Iterator[str]:
    wholes = {part[0] for part in parts if part}
    if None in parts or len(wholes) != 1:
        return  # it joins other things than parts of one result
    (whole,) = wholes
    result = operator.outputs[0]
    if result != whole and not result.startswith(f"{whole}/"):
        return
    numbers = [part[1] for part in parts if part]
    if numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        yield f"operator '{operator.id}' joins the parts {numbers} of '{whole}'"
    axis = operator.attributes.get("axis", 0)
    shapes = {n: plan.tensors[n].shape for n in (*operator.inputs, result) if n in plan.tensors}
    if not isinstance(axis, int) or any(not -len(s) <= axis < len(s) for s in shapes.values()):
        yield f"operator '{operator.id}' joins parts along axis {axis}, which they do not have"
        return
    taken, made = (
        sum(shapes[name][axis] for name in names if name in shapes)
        for names in (operator.inputs, operator.outputs)
    )
    if taken != made:
        yield (
            f"operator '{operator.id}' joins {taken} elements along axis {axis}, and its result "
            f"has {made}"
        )
