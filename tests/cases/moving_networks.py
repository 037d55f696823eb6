"""Random networks in which tensors are joined, cut and reshaped, and written in place."""

from __future__ import annotations

from dataclasses import replace

from parapipe.graph.operator_graph import Tensor
from tests.cases.plan_cases import graph_of, operator


def moving_graph(rng, count, *, casts=False):
    """Operators of all kinds that move elements, beside element-wise ones and others.

    With casts, tensors have elements of 1 to 8 bytes.
    """
    shapes, types = {"x": (1, 4, 3), "y": (2, 2, 3)}, {"x": "float32", "y": "float32"}
    made = []
    for v in range(count):
        kind = rng.choice(KINDS + CASTS if casts else KINDS)
        reads, shape, attributes = _drawn(kind, shapes, types, rng)
        name = f"t{v}"
        dtype = rng.choice(TYPES) if kind == "Cast" else types[reads[0]]
        parts = ()
        if kind == "Add" and rng.random() < 0.4:
            inner = operator(f"i{v}", " ".join(reads), kind=kind)
            parts = (inner, operator(name, f"i{v}"))
            shapes[f"i{v}"], types[f"i{v}"] = shape, dtype
        shapes[name], types[name] = shape, dtype
        made.append(operator(name, " ".join(reads), kind=kind, parts=parts, attributes=attributes))
    outputs = sorted({made[-1].id, rng.choice(made).id})
    graph = graph_of(made, inputs=["x", "y"], outputs=outputs)
    tensors = {name: Tensor(name, shape, types[name]) for name, shape in shapes.items()}
    return replace(graph, tensors={name: tensors[name] for name in graph.tensors})


KINDS = ("Relu", "Relu", "Add", "Add", "Conv", "Concat", "Concat", "Slice", "Reshape")
CASTS = ("Cast",) * 4
TYPES = ("bool", "int8", "float16", "int16", "float32", "int32", "float64", "int64")


def _drawn(kind, shapes, types, rng):
    """What an operator reads, the shape that it makes, and its attributes."""
    known = [name for name in shapes if not name.startswith("i")]
    first = rng.choice(known[-4:])
    shape = shapes[first]
    if kind == "Add":
        equal = [n for n in known if shapes[n] == shape and types[n] == types[first]]
        return [first, rng.choice(equal)], shape, {}
    if kind == "Conv":
        return [first], (rng.choice([1, 1, 2]), rng.randint(1, 5), 3), {}
    if kind == "Concat":
        others = [n for n in known if shapes[n][0::2] == shape[0::2] and types[n] == types[first]]
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
