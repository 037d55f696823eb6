"""Runs an exported folder without the library: as an ONNX model, built from nothing but the folder.

It follows the stages as a runner does: operators run in the order of their processors, and one that
reads what another processor made must find a transfer.
"""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from parapipe.targets.native.library_plan import LibraryPlan

OPSET = 18
_SAME = {
    *("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
    *("MatMul", "Add", "Sub", "Mul", "Div", "Max", "Min", "Concat", "BatchNormalization", "LRN"),
    *("PRelu", "Transpose", "Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"),
    *("LeakyRelu", "Elu", "Exp", "Log", "Neg"),
}


def load(folder):
    """The folder's plan, as its schema reads it."""
    return LibraryPlan.model_validate_json((Path(folder) / "plan.json").read_text())


def session_of(model):
    """A session of ONNX Runtime on one thread, for a file or the bytes of a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # old opsets are meant to be here
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(folder, inputs):
    """Outputs of the folder for one frame, by name."""
    document = load(folder)
    check_order(document)
    session = session_of(onnx_of(document, folder).SerializeToString())
    shapes = {name: document.tensors[name].shape for name in document.inputs}
    fed = {name: inputs[name].reshape(shape) for name, shape in shapes.items()}
    return dict(zip(document.outputs, session.run(list(document.outputs), fed), strict=True))


def check_order(document):
    """Every processor finds what it reads: made by itself before, or handed over."""
    moved = {(t.tensor, t.target) for t in document.transfers}
    operators = {operator.id: operator for operator in document.operators}
    placed = [
        (stage.index, processor.name, name)
        for stage in document.stages
        for processor in stage.processors
        for name in processor.operators
    ]
    assert sorted(name for _, _, name in placed) == sorted(operators)
    made_by = {name: processor for _, processor, name in placed}
    needed = {
        (read, processor)
        for _, processor, name in placed
        for read in operators[name].inputs
        if made_by.get(read, processor) != processor
    }
    assert needed == moved
    for transfer in document.transfers:
        assert transfer.source == made_by[transfer.tensor]
    seen = set(document.inputs) | {n for n, t in document.tensors.items() if t.offset is not None}
    for operator in document.operators:
        assert seen.issuperset(operator.inputs), operator.id
        seen.update(operator.outputs)
    used = {name for o in document.operators for name in o.inputs} | set(document.outputs)
    assert used == set(document.tensors), used ^ set(document.tensors)


def onnx_of(document, folder):
    """The folder as one ONNX model."""
    content = (Path(folder) / document.weights.file).read_bytes()
    assert len(content) == document.weights.size_bytes
    constants = []
    for name, tensor in document.tensors.items():
        if tensor.offset is not None:
            assert tensor.offset % 4 == 0
            count = math.prod(tensor.shape)
            values = np.frombuffer(content, "<f4", count, tensor.offset).reshape(tensor.shape)
            constants.append(numpy_helper.from_array(values, name))
    nodes = [node for o in document.operators for node in _nodes(o, document, constants)]
    graph = helper.make_graph(
        nodes,
        "folder",
        [_value(name, document) for name in document.inputs],
        [_value(name, document) for name in document.outputs],
        constants,
    )
    # Every shape that the folder says is held against what ONNX infers.
    graph.value_info.extend(_value(o.id, document) for o in document.operators)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def _value(name, document):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, document.tensors[name].shape)


def _nodes(operator, document, constants):
    """An operator and its activation as ONNX nodes; what is an input there goes to constants."""
    shape = document.tensors[operator.id].shape
    made = operator.id if operator.activation is None else f"{operator.id}//before"
    writer = _Writer(made, shape, constants)
    yield from writer.nodes(operator.type, list(operator.inputs), dict(operator.attributes))
    if operator.activation is not None:
        writer = _Writer(operator.id, shape, constants)
        activation = operator.activation
        yield from writer.nodes(activation.type, [made], dict(activation.attributes))


class _Writer:
    def __init__(self, output, shape, constants):
        self.output, self.shape, self.constants = output, shape, constants

    def nodes(self, kind, inputs, attributes):
        write = getattr(self, f"_{kind.lower()}", None)
        if write is not None:
            yield from write(inputs, **attributes)
        elif kind in _SAME:
            yield helper.make_node(kind, inputs, [self.output], **attributes)
        else:
            raise AssertionError(kind)

    def _constant(self, values, dtype):
        name = f"{self.output}//{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def _integers(self, values):
        return self._constant(values, np.int64)

    def _node(self, kind, inputs, **attributes):
        return helper.make_node(kind, inputs, [self.output], **attributes)

    def _softmax(self, inputs):
        yield self._node("Softmax", inputs, axis=-1)

    def _logsoftmax(self, inputs):
        yield self._node("LogSoftmax", inputs, axis=-1)

    def _gemm(self, inputs, *, transB):  # noqa: N803 - ONNX's name
        flat = f"{self.output}//flat"
        yield helper.make_node("Flatten", inputs[:1], [flat], axis=1)
        yield self._node("Gemm", [flat, *inputs[1:]], transB=transB)

    def _reshape(self, inputs):
        yield self._node("Reshape", [*inputs, self._integers(self.shape)])

    def _clip(self, inputs, *, min, max):
        bounds = [self._constant(bound, np.float32) for bound in (min, max)]
        yield self._node("Clip", [*inputs, *bounds])

    def _pad(self, inputs, *, mode, pads, value):
        filling = [self._constant(value, np.float32)] if mode == "constant" else []
        yield self._node("Pad", [*inputs, self._integers(pads), *filling], mode=mode)

    def _slice(self, inputs, *, starts, ends, steps):
        given = (starts, ends, range(len(starts)), steps)
        yield self._node("Slice", [*inputs, *map(self._integers, map(list, given))])

    def _reducemean(self, inputs, *, axes, keepdims):
        yield self._node("ReduceMean", [*inputs, self._integers(axes)], keepdims=keepdims)

    def _resize(self, inputs, *, mode, coordinates):
        rest = {"nearest_mode": "floor"} if mode == "nearest" else {}
        yield self._node(
            "Resize",
            [*inputs, "", "", self._integers(self.shape)],
            mode=mode,
            coordinate_transformation_mode=coordinates,
            **rest,
        )
