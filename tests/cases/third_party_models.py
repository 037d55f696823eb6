"""Networks of other people, as PyTorch's exporter writes them: structures, and random weights.

SOURCES.md beside the files says where they come from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

FOLDER = Path(__file__).with_name("third_party")
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.onnx")))


def structure(name):
    """Return the path of a model whose weights are zeros that nodes make."""
    return FOLDER / f"{name}.onnx"


def with_random_weights(name, folder):
    """Write a model with weights, as an exporter writes it; return its path."""
    model, rng = onnx.load(structure(name)), np.random.default_rng(0)
    extents = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in extents:
            shape = extents[node.input[0]]
            dtype = numpy_helper.to_array(helper.get_attribute_value(node.attribute[0])).dtype
            numbers = rng.normal(0, 1 / np.sqrt(max(np.prod(shape[1:]), 4)), shape)
            drawn = numpy_helper.from_array(numbers.astype(dtype), node.output[0])
            model.graph.initializer.append(drawn)
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path
