"""Small models with states, as ONNX files: a recurrent one, and a decoder with a cache."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
WIDTH, HEADS, WORDS = 32, 2, 40


class Writer:
    """Collects nodes and weights."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.stored, self.inputs, self.outputs = [], [], [], []

    def weights(self, *shape):
        name = f"w{len(self.stored)}"
        array = (self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, *numbers):
        name = f"w{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def add(self, kind, reads, made=None, **said):
        made = made or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, reads, [made], made, **said))
        return made

    def input(self, name, *shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, *shape, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def save(self, path):
        graph = helper.make_graph(self.nodes, "steps", self.inputs, self.outputs, self.stored)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return path


def write_recurrent(path, *, layers=2):
    """Write layers of h' = tanh(x W + h U), between products of their own; h0 and hn are states."""
    write = Writer()
    x = write.input("x", 1, WIDTH)
    for layer in range(layers):
        h = write.input(f"layer{layer}.h0", 1, WIDTH)
        x = write.add("Relu", [write.add("MatMul", [x, write.weights(WIDTH, WIDTH)])])
        a = write.add("MatMul", [x, write.weights(WIDTH, WIDTH)])
        b = write.add("MatMul", [h, write.weights(WIDTH, WIDTH)])
        made = write.output(f"layer{layer}.hn", 1, WIDTH)
        x = write.add("Tanh", [write.add("Add", [a, b])], made)
    write.output("y", 1, WIDTH)
    write.add("MatMul", [x, write.weights(WIDTH, WIDTH)], "y")
    return write.save(path)


def write_decoder(path, *, layers=2, past=8, grows=True):
    """Write a decoder that reads one token and a cache of so many slots; greedy if it is fed back.

    Parameters
    ----------
    grows
        Whether the new slot is put behind the cache; else the oldest one goes.
    """
    write, size = Writer(1), WIDTH // HEADS
    ids = write.input("input_ids", 1, 1, dtype=TensorProto.INT64)
    x = write.add("Gather", [write.weights(WORDS, WIDTH), ids])
    shape = write.constant(1, 1, HEADS, size)
    joined = write.constant(1, 1, WIDTH)
    for layer in range(layers):
        heads = {}
        for what in ("query", "key", "value"):
            each = write.add("MatMul", [x, write.weights(WIDTH, WIDTH)])
            each = write.add("Reshape", [each, shape])
            heads[what] = write.add("Transpose", [each], perm=[0, 2, 1, 3])
        cached = {}
        for what in ("key", "value"):
            old = write.input(f"past_key_values.{layer}.{what}", 1, HEADS, past, size)
            made = f"present.{layer}.{what}"
            if not grows:
                ends = [write.constant(1), write.constant(past), write.constant(2)]
                old = write.add("Slice", [old, *ends])
            cached[what] = write.add("Concat", [old, heads[what]], made, axis=2)
            write.output(made, 1, HEADS, past + grows, size)
        turned = write.add("Transpose", [cached["key"]], perm=[0, 1, 3, 2])
        scores = write.add("Softmax", [write.add("MatMul", [heads["query"], turned])], axis=-1)
        read = write.add("MatMul", [scores, cached["value"]])
        read = write.add("Reshape", [write.add("Transpose", [read], perm=[0, 2, 1, 3]), joined])
        read = write.add("MatMul", [read, write.weights(WIDTH, WIDTH)])
        x = write.add("Add", [x, read])
    write.output("logits", 1, 1, WORDS)
    write.add("MatMul", [x, write.weights(WIDTH, WORDS)], "logits")
    return write.save(path)


def write_any_shape(path, *, layers=1):
    """Write a decoder of any number of tokens behind any cache: dimensions sequence and past."""
    write = Writer(2)
    ids = write.input("input_ids", 1, "sequence", dtype=TensorProto.INT64)
    x = write.add("Gather", [write.weights(WORDS, WIDTH), ids])
    for layer in range(layers):
        made = {
            what: write.add("MatMul", [x, write.weights(WIDTH, WIDTH)])
            for what in ("query", "key", "value")
        }
        for what in ("key", "value"):
            old = write.input(f"past_key_values.{layer}.{what}", 1, "past", WIDTH)
            name = write.output(f"present.{layer}.{what}", 1, "total", WIDTH)
            made[what] = write.add("Concat", [old, made[what]], name, axis=1)
        turned = write.add("Transpose", [made["key"]], perm=[0, 2, 1])
        shares = write.add("Softmax", [write.add("MatMul", [made["query"], turned])], axis=-1)
        x = write.add("MatMul", [shares, made["value"]])
    write.output("logits", 1, "sequence", WORDS)
    write.add("MatMul", [x, write.weights(WIDTH, WORDS)], "logits")
    return write.save(path)
