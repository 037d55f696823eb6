"""Kernels of ONNX Runtime that write their result over one of their operands, by I/O binding."""

from itertools import product

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from parapipe.export.onnxruntime.arena import READ_AGAIN
from parapipe.parts.elementwise import ANY_AXIS

SHAPE = (3, 9999)
OTHER_TYPES = {"Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Where"}
WITHOUT = {"BitShift", *OTHER_TYPES}
"""Types of which there is no kernel for these tensors."""


def opened(kind, names, dtype):
    """A session of one operator, None if there is none for the type."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    *read, made = (helper.make_tensor_value_info(name, number, SHAPE) for name in (*names, "y"))
    said = {"to": number} if kind == "Cast" else {}
    graph = helper.make_graph([helper.make_node(kind, names, ["y"], **said)], "g", read, [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 2
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - ONNX Runtime raises many kinds
        return None


def is_equal_over(kind, count, dtype, over):
    """Whether an operator makes the same over an operand; None if it makes nothing of the kind."""
    rng, names = np.random.default_rng(0), [f"x{i}" for i in range(count)]
    session = opened(kind, names, dtype)
    if session is None or over >= count:
        return None
    arrays = [rng.uniform(1, 3, SHAPE).astype(dtype) for _ in names]
    try:
        (wanted,) = session.run(None, dict(zip(names, arrays, strict=True)))
    except Exception:  # noqa: BLE001 - bounds that are no numbers, remainders of fractions
        return None
    if wanted.dtype != dtype:
        return None
    binding, into = session.io_binding(), arrays[over]
    for name, array in zip(names, arrays, strict=True):
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu", 0, into.dtype, into.shape, into.ctypes.data)
    session.run_with_iobinding(binding)
    return np.array_equal(into, wanted, equal_nan=True)


@pytest.mark.parametrize("kind", sorted(ANY_AXIS - READ_AGAIN - WITHOUT))
def test_what_may_be_written_over_an_operand_is_what_is_made_elsewhere(kind):
    types = (np.float32, np.int64, np.bool_)
    found = [is_equal_over(kind, *each) for each in product((1, 2, 3), types, (0, 1))]
    assert True in found
    assert False not in found


SIZES = {
    1: (np.bool_, np.int8, np.uint8),
    2: (np.float16, np.int16, np.uint16),
    4: (np.float32, np.int32, np.uint32),
    8: (np.float64, np.int64, np.uint64),
}


@pytest.mark.parametrize(
    ("source", "target"), [pair for types in SIZES.values() for pair in product(types, types)]
)
def test_a_cast_may_be_written_over_elements_of_the_same_size(source, target):
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(each)) for each in (source, target)]
    x, y = (helper.make_tensor_value_info(n, k, SHAPE) for n, k in zip("xy", kinds, strict=True))
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=kinds[1])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    array = np.random.default_rng(0).uniform(0, 100, SHAPE).astype(source)
    (wanted,) = session.run(None, {"x": array})
    binding = session.io_binding()
    binding.bind_cpu_input("x", array)
    binding.bind_output("y", "cpu", 0, target, SHAPE, array.ctypes.data)
    session.run_with_iobinding(binding)
    assert np.array_equal(array.view(target), wanted)
