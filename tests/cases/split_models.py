"""Small ONNX models with what is hard to split, and random plans for them."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from tests.cases.plan_cases import Costs, configured, cut_into_stages, platform_of
from tests.cases.small_models import parsed

RNG = np.random.default_rng(0)


def weights(*shape):
    return RNG.uniform(-0.5, 0.5, shape).astype(np.float32)


def folded():
    """Batch-norms and scales to fold, a Dropout, a Flatten into a Gemm, an Identity at the end."""
    return parsed(
        """
        net (float[1, 3, 8, 8] x) => (float[1, 5] out, float[1, 4, 8, 8] early) {
          a = Conv <pads = [1, 1, 1, 1]> (x, w)
          b = BatchNormalization (a, scale, bias, mean, var)
          early = Relu (b)
          c = Conv <pads = [1, 1, 1, 1]> (early, v)
          d = Mul (c, factor)
          e = Dropout (d)
          f = Concat <axis = 1> (early, e)
          g = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (f)
          h = Flatten (g)
          i = Dropout (h)
          j = Gemm <transB = 1> (i, m, k)
          k2 = Softmax (j)
          out = Identity (k2)
        }
        """,
        w=weights(4, 3, 3, 3), v=weights(4, 4, 3, 3), m=weights(5, 128), k=weights(5),
        scale=weights(4), bias=weights(4), mean=weights(4), var=np.abs(weights(4)) + 1,
        factor=weights(1, 4, 1, 1),
    )  # fmt: skip


def many_inputs():
    """An input read late, an unused one of unknown size, integers and truth values in between."""
    return parsed(
        """
        net (float[2, 4] x, float[2, 4] late, float[N, 7] unused)
          => (int64[2] best, float[2, 4] out, float[2, 4] same) {
          a = Relu (x)
          best = ArgMax <axis = 1, keepdims = 0> (a)
          mask = Greater (a, half)
          b = Tanh (x)
          c = Where (mask, b, late)
          row = Unsqueeze (best, one)
          d = Cast <to = 1> (row)
          out = Add (c, d)
          same = Identity (out)
          dead = Exp (unused)
        }
        """,
        half=np.float32(0.1), one=np.array([1], np.int64),
    )  # fmt: skip


def recurrent():
    """Optional inputs and outputs that are left out."""
    return parsed(
        """
        net (float[5, 1, 3] x) => (float[1, 1, 4] last, float[5, 1, 1, 4] all) {
          s = Sigmoid (x)
          all, , last = LSTM <hidden_size = 4> (s, w, r, "", "", "", "")
        }
        """.replace('""', ""),
        w=weights(1, 16, 3), r=weights(1, 16, 4),
    )  # fmt: skip


def control_flow():
    """An If and a Loop, whose bodies read tensors and weights from outside."""
    return parsed(
        """
        net (float[2, 3] x, bool[1] flag) => (float[2, 3] out, float[2, 3] sum) {
          a = Relu (x)
          same = Dropout (a)
          b = Tanh (x)
          out = If (flag) <
            then_branch = one () => (float[2, 3] p) { q = Add (same, w)  p = Mul (q, b) },
            else_branch = two () => (float[2, 3] r) { r = Sub (b, w) }
          >
          sum = Loop (three, yes, b) <
            body = again (int64 i, bool c, float[2, 3] t) => (bool c2, float[2, 3] u) {
              c2 = Identity (c)
              u = Add (t, same)
            }
          >
        }
        """,
        w=weights(2, 3), three=np.array(3, np.int64), yes=np.array(True),
    )  # fmt: skip


def settled():
    """An If whose condition is known, with weights of its own; the old name of ONNX's domain."""
    model = parsed(
        """
        net (float[2, 24] x) => (float[2, 24] y) {
          a = Relu (x)
          b = If (flag) <
            then_branch = one () => (float[2, 24] p) { q = MatMul (a, w)  p = Tanh (q) },
            else_branch = two () => (float[2, 24] r) { r = Sub (a, a) }
          >
          y = Add (b, a)
        }
        """,
        flag=np.array(True),
    )
    branch = next(each.g for each in model.graph.node[1].attribute if each.name == "then_branch")
    branch.initializer.append(numpy_helper.from_array(weights(24, 24), "w"))
    model.opset_import[0].domain = "ai.onnx"
    for node in model.graph.node:
        node.domain = "ai.onnx"
    return model


def functions():
    """A function of the model's own, used twice."""
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        net (float[2, 3] x) => (float[2, 3] y) {
          a = own.twice (x)
          b = Relu (a)
          y = own.twice (b)
        }
        <domain: "own", opset_import: ["" : 17]>
        twice (p) => (q) { r = Add (p, p)  q = Tanh (r) }
        """
    )
    assert model.functions
    return model


def shapes():
    """Shapes computed from an activation, and constants that are computed from others."""
    return parsed(
        """
        net (float[2, 3, 4] x) => (float[6, 16] y, float[2, 40] z) {
          a = Relu (x)
          s = Shape (a)
          n = Gather (s, zero)
          m = Gather (s, oneth)
          nm = Mul (n, m)
          t = Concat <axis = 0> (nm, minus)
          b = Reshape (a, t)
          wide = Transpose (w)
          c = MatMul (b, wide)
          big = ConstantOfShape <value = float[1] {0.25}> (extent)
          d = MatMul (c, big)
          e = Expand (held, u)
          y = Add (d, e)
          f = ReduceMean <axes = [1], keepdims = 0> (a)
          z = MatMul (f, big2)
          held = Constant <value = float[1] {0.5}> ()
        }
        """,
        zero=np.array([0], np.int64), oneth=np.array([1], np.int64),
        minus=np.array([4], np.int64), w=weights(16, 4), extent=np.array([16, 16], np.int64),
        u=np.array([6, 16], np.int64), big2=weights(4, 40),
    )  # fmt: skip


def shared():
    """Weights that several layers read, one of them in an attribute and large."""
    model = parsed(
        """
        net (float[2, 24] x) => (float[2, 24] y) {
          a = MatMul (x, w)
          b = Relu (a)
          c = MatMul (b, w)
          d = MatMul (b, v)
          e = Add (c, d)
          f = MatMul (e, v)
          y = Tanh (f)
        }
        """,
        w=weights(24, 24),
    )
    held = numpy_helper.from_array(weights(24, 24), "whatever")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["v"], value=held))
    return model


def old():
    """IR version 3: initializers are inputs too; typed data instead of raw; old operators."""
    model = parsed(
        """
        net (float[1, 2, 4, 4] x) => (float[1, 4] y) {
          a = Conv (x, w)
          b = Relu (a)
          c = GlobalAveragePool (b)
          d = Reshape (c, flat)
          e = Gemm (d, m, k)
          y = Add (e, e)
        }
        """,
        opset=8, flat=np.array([1, 3], np.int64),
    )  # fmt: skip
    for name, values in {
        "w": weights(3, 2, 3, 3),
        "m": weights(3, 4),
        "k": weights(4),
    }.items():
        model.graph.initializer.append(
            helper.make_tensor(name, TensorProto.FLOAT, values.shape, values.flatten())
        )
    for tensor in model.graph.initializer:
        model.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    model.ir_version = 3
    return model


def sequences():
    """A sequence of tensors between operators."""
    return parsed(
        """
        net (float[4, 6] x) => (float[4, 2] y) {
          a = Relu (x)
          s = SplitToSequence <axis = 1> (a, two)
          b = SequenceAt (s, zero)
          c = SequenceAt (s, second)
          y = Sub (b, c)
        }
        """,
        two=np.array(2, np.int64), zero=np.array(0, np.int64), second=np.array(1, np.int64),
    )  # fmt: skip


def sparse():
    """A sparse initializer."""
    model = parsed("net (float[2, 4] x) => (float[2, 4] y) { a = Relu (x) y = MatMul (a, w) }")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "w"),
            numpy_helper.from_array(np.array([3, 9], np.int64), "w_at"),
            [4, 4],
        )
    )
    return model


MODELS = {
    each.__name__: each
    for each in (
        folded, many_inputs, recurrent, control_flow, settled, functions, shapes, shared, old,
        sequences, sparse,
    )
}  # fmt: skip


def written(model, folder, *, external=False, least_bytes=90):
    """Write a model, its weights beside it if wanted: those of so many bytes and more."""
    path = folder / "model.onnx"
    if external:
        onnx.save(
            model,
            path,
            save_as_external_data=True,
            location="weights.data",
            size_threshold=least_bytes,
        )
    else:
        onnx.save(model, path)
    return path


def random_plan(path, seed, *, granularity="fused", shapes=None, dims=None):
    """A valid plan with any cut into stages and any processors in them."""
    rng = random.Random(seed)
    graph = import_model(path, granularity=granularity, shapes=shapes, dims=dims)
    processors = rng.randint(1, 4)
    costs = Costs([[rng.choice([0.1, 0.7, 1.5])] * 5 for _ in graph.operators], {})
    stages = (
        cut_into_stages(rng, len(graph.operators), processors)
        if len(graph.operators) > 1
        else [[(0, 0)]]
    )
    configuration = configured(graph, costs, stages)
    return build_plan(graph, platform_of(processors), costs, configuration)


def placed_plan(path, place):
    """A plan whose operator v of so many runs in the stage, on the processor, that `place` says."""
    graph = import_model(path)
    count = len(graph.operators)
    costs = Costs([[1.0] * 5] * count, {})
    stages = {}
    for v in range(count):
        stage, processor = place(v, count)
        stages.setdefault(stage, []).append((v, processor))
    return build_plan(
        graph, platform_of(3), costs, configured(graph, costs, [stages[i] for i in sorted(stages)])
    )
