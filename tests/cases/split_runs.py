"""A model and the same model with operators split into parts, run on the same inputs."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from parapipe.parts.work import CutAxis, cuttable_axes

TOLERANCE = {"float16": 1e-3}  # else 1e-5


def feeds(model, seed=0, least=-1.0):
    """Random values up to 1 for all inputs that are no initializers; whole numbers are 0 or 1."""
    rng = np.random.default_rng(seed)
    stored = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: _random(rng, value.type.tensor_type, least)
        for value in model.graph.input
        if value.name not in stored
    }


def _random(rng, kind, least):
    shape = [dim.dim_value for dim in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if kind.elem_type == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.uniform(least, 1, shape).astype(dtype)


def run(model, inputs):
    """Run a model on ONNX Runtime, or where that has no kernel, on ONNX's reference."""
    import onnxruntime

    content = model if isinstance(model, str) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def equal(expected, got):
    """Whether results are equal to 1e-5 of the largest number."""
    for one, other in zip(map(np.asarray, expected), map(np.asarray, got), strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind not in "fc":
            if not np.array_equal(one, other):
                return False
            continue
        finite = one[np.isfinite(one)]
        scale = np.abs(finite).max(initial=1e-30)
        with np.errstate(invalid="ignore"):
            near = np.abs(one - other) <= TOLERANCE.get(one.dtype.name, 1e-5) * scale
        if not (near | (one == other) | (np.isnan(one) & np.isnan(other))).all():
            return False
    return True


def split(model, *rules, **options):
    """Split a model; where ONNX's checker takes the whole one, it takes the result."""
    made, found = split_proto(model, "test", [read_rule(each) for each in rules], **options)
    if _is_valid(model):
        onnx.checker.check_model(made, full_check=True)
    return made, found


def _is_valid(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def random_rules(graph, rng, *, most=4):
    """Rules for random runs of a graph: axes that apply, 2 to 5 unequal parts; and the runs."""
    rules, v = [], 0
    while v < len(graph.operators):
        run = _chain(graph, v, rng.randint(1, most))
        v = run[-1] + 1
        operators = [graph.operators[at] for at in run]
        axes = [n for n, at in cuttable_axes(graph, operators).items() if isinstance(at, CutAxis)]
        if not axes and len(run) > 1:
            operators = operators[-1:]
            axes = [
                n for n, at in cuttable_axes(graph, operators).items() if isinstance(at, CutAxis)
            ]
        if axes and rng.random() < 0.8:
            shares = ",".join(str(rng.randint(1, 9)) for _ in range(rng.randint(2, 5)))
            ends = operators[0].id, operators[-1].id
            named = "..".join(ends) if len(operators) > 1 else ends[0]
            rules.append(f"{named}:{rng.choice(axes)}={shares}")
    return rules


def _chain(graph, first, length):
    """Operators that follow each other in the graph, each the only reader of the one before."""
    run = [first]
    while len(run) < length:
        operator = graph.operators[run[-1]]
        reader = graph.sole_reader(operator.outputs[0]) if len(operator.outputs) == 1 else None
        if reader != run[-1] + 1:
            break
        run.append(reader)
    return run
