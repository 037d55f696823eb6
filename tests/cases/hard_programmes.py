"""Programmes that keep CP-SAT busy for longer than any test takes, and quick ones."""

from __future__ import annotations

import random

import onnx
from onnx import TensorProto, helper
from ortools.sat.python import cp_model


def balanced(items: int, processors: int, seed: int = 0) -> cp_model.CpModel:
    """The least greatest load of items that take other times on each processor."""
    rng, model = random.Random(seed), cp_model.CpModel()
    greatest = model.new_int_var(0, 2000 * items, "")
    loads: list[list[cp_model.LinearExpr]] = [[] for _ in range(processors)]
    for _ in range(items):
        runs = [model.new_bool_var("") for _ in loads]
        model.add_exactly_one(runs)
        for load, here in zip(loads, runs, strict=True):
            load.append(rng.randint(1000, 2000) * here)
    for load in loads:
        model.add(sum(load) <= greatest)
    model.minimize(greatest)
    return model


def hard() -> cp_model.CpModel:
    return balanced(60, 7)


def entangled() -> onnx.ModelProto:
    """Sums in a row, each of the one before and any other: which to make again is hard to say."""
    rng, names, nodes = random.Random(0), ["x"], []
    for i in range(29):
        other = rng.choice(names[:-1] or names)
        kind = rng.choice(["Add", "Mul", "Sub"])
        nodes.append(helper.make_node(kind, [names[-1], other], [f"t{i}"], f"n{i}"))
        names.append(f"t{i}")
    first, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16, 64, 64])
        for name in (names[0], names[-1])
    )
    graph = helper.make_graph(nodes, "entangled", [first], [last])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
