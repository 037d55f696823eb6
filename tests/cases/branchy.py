"""A small network with branches, whose operators may have any names."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HOSTILE = ("</script><script>window.hit = 1</script>", '"><img src=x onerror="hit()">', "a'b`${1}")


def branchy(
    path: Path, names: tuple[str, str, str] = ("left", "right", "join"), *, joins: int = 2
) -> Path:
    """Write forks of two convolutions that an addition joins, one behind the other; or a Relu."""
    left, right, join = names
    weight = helper.make_tensor("w", TensorProto.FLOAT, (8, 8, 3, 3), [0.01] * 576)
    nodes, tensor = [], "data"
    if joins == 0:
        nodes, tensor = [helper.make_node("Relu", ["data"], ["y"], name="relu")], "y"
    for i in range(joins):
        made = [f"{name}{i}" for name in (left, right, join)]
        nodes += [
            helper.make_node("Conv", [tensor, "w"], [name], name=name, pads=[1, 1, 1, 1])
            for name in made[:2]
        ]
        nodes.append(helper.make_node("Add", made[:2], [made[2]], name=made[2]))
        tensor = made[2]
    shape = (1, 8, 96, 96)
    graph = helper.make_graph(
        nodes,
        "branchy",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape)],
        [weight],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path
