"""Random networks in which tensors are joined, cut and reshaped, and written in place."""

from __future__ import annotations

from dataclasses import replace

from parapipe.graph.operator_graph import Tensor
from tests.cases.plan_cases import graph_of, operator


def moving_graph(rng, count):
    """Operators of all kinds that move elements, beside element-wise ones and others."""
    shapes = {"x": (1, 4, 3), "y": (2, 2, 3)}
    made = []
    for v in range(count):
        kind = rng.choice(KINDS)
        reads, shape, attributes = _drawn(kind, shapes, rng)
        name = f"t{v}"
        parts = ()
        if kind == "Add" and rng.random() < 0.4:
            inner = operator(f"i{v}", " ".join(reads), kind=kind)
            parts = (inner, operator(name, f"i{v}"))
            shapes[f"i{v}"] = shape
        shapes[name] = shape
        made.append(operator(name, " ".join(reads), kind=kind, parts=parts, attributes=attributes))
    outputs = sorted({made[-1].id, rng.choice(made).id})
    graph = graph_of(made, inputs=["x", "y"], outputs=outputs)
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    return replace(graph, tensors={name: tensors[name] for name in graph.tensors})


KINDS = ("Relu", "Relu", "Add", "Add", "Conv", "Concat", "Concat", "Slice", "Reshape")


def _drawn(kind, shapes, rng):
    """What an operator reads, the shape that it makes, and its attributes."""
    known = [name for name in shapes if not name.startswith("i")]
    first = rng.choice(known[-4:])
    shape = shapes[first]
    if kind == "Add":
        equal = [name for name in known if shapes[name] == shape]
        return [first, rng.choice(equal)], shape, {}
    if kind == "Conv":
        return [first], (rng.choice([1, 1, 2]), rng.randint(1, 5), 3), {}
    if kind == "Concat":
        others = [n for n in known if shapes[n][0::2] == shape[0::2]]
        reads = [first, *(rng.choice(others) for _ in range(rng.randint(0, 2)))]
        return reads, (shape[0], sum(shapes[n][1] for n in reads), 3), {"axis": rng.choice([1, -2])}
    if kind == "Slice" and shape[1] > 1:
        start = rng.randint(0, shape[1] - 1)
        end = rng.randint(start + 1, shape[1])
        attributes = {"starts": (start,), "ends": (end,), "axes": (1,)}
        return [first], (shape[0], end - start, 3), attributes
    if kind == "Reshape":
        return [first], (1, shape[0] * shape[1], 3), {}
    if kind == "Slice":
        return [first], shape, {"starts": (0,), "ends": (1,), "axes": (1,)}
    return [first], shape, {}
