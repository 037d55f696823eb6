"""Models of the zoo with their batch left open, which parapipe's own builders fix at 1."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import numpy_helper

from parapipe.zoo.registry import write

BATCH = "batch"


def write_open(name: str, path: Path) -> Path:
    """Write a model of the zoo whose first dimension is open: that of inputs and of results."""
    write(name, path)
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = BATCH
    del model.graph.value_info[:]
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor in model.graph.initializer:
        if tensor.name in shapes and (shape := numpy_helper.to_array(tensor).copy())[0] == 1:
            shape[0] = 0  # as that of what is reshaped
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    onnx.save(model, path)
    return path
