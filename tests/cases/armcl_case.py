"""A model of one operator, or of several that are exported as one, and ways to write it down."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


@dataclass
class Case:
    """An operator, or several that are exported as one.

    `nodes` are (type, inputs, outputs, attributes); constants by name are arrays; `x` is the input
    unless `inputs` says more. The last node's first output is the graph's.
    """

    name: str
    nodes: list
    shape: tuple = (1, 4, 9, 11)
    constants: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)
    outputs: tuple = ()
    opset: int = OPSET
    domain: str = ""

    def model(self):
        """The ONNX model."""
        nodes = [
            helper.make_node(kind, list(reads), list(writes), **attributes)
            for kind, reads, writes, attributes in self.nodes
        ]
        inputs = {"x": self.shape, **self.inputs}
        outputs = self.outputs or (self.nodes[-1][2][0],)
        graph = helper.make_graph(
            nodes,
            self.name,
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        onnx.checker.check_model(inferred)
        return inferred


def floats(*shape, seed=1, low=-1.0):
    """Random numbers, at least `low` and at most 1."""
    return np.random.default_rng(seed).uniform(low, 1, shape).astype(np.float32)


def ints(*values):
    """A list of integers."""
    return np.array(values, np.int64)


def one(name, kind, shape=(1, 4, 9, 11), *, constants=None, inputs=None, opset=OPSET, **attributes):
    """One node that reads x, further inputs and constants, in this order."""
    constants, inputs = constants or {}, inputs or {}
    reads = ("x", *inputs, *constants)
    return Case(name, [(kind, reads, ("y",), attributes)], shape, constants, inputs, opset=opset)
