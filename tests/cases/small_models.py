"""Small ONNX models, written down in ONNX's textual form or node by node."""

import hashlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource


def parsed(text, *, opset=17, domains=(), **arrays):
    """Return the model of a graph in ONNX's textual form; `arrays` become initializers."""
    imports = [("", opset), *((domain, 1) for domain in domains)]
    header = ", ".join(f'"{domain}" : {version}' for domain, version in imports)
    model = onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{header}]>\n{text}")
    for name, array in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return model


def imported(model, *, granularity="onnx", **options):
    """Import a model of a test."""
    return import_proto(
        model, source=ModelSource("test.onnx", ""), granularity=granularity, **options
    )


def graph_of(text, *, granularity="onnx", opset=17, domains=(), dims=None, shapes=None, **arrays):
    """Parse and import at one go."""
    model = parsed(text, opset=opset, domains=domains, **arrays)
    return imported(model, granularity=granularity, dims=dims, shapes=shapes)


def types_of(graph):
    return [operator.type for operator in graph.operators]


def floats(*shape):
    return np.ones(shape, np.float32)


def value(name, shape, element_type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def sha256(content):
    return hashlib.sha256(content).hexdigest()
