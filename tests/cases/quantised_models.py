"""Quantised models: small ones in ONNX's textual form, and what ONNX Runtime's quantiser makes."""

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

from tests.cases.small_models import parsed

SCALES = {
    "s": np.float32(0.02), "t": np.float32(0.03), "z": np.uint8(128), "zero": np.uint8(0),
}  # fmt: skip
RNG = np.random.default_rng(3)
WEIGHTS = {
    "wq": RNG.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8),
    "ws": np.linspace(0.01, 0.02, 4, dtype=np.float32),
    "wz": np.zeros(4, np.int8),
    "bq": np.array([50, -30, 7, 0], np.int32),
    "bs": np.float32(0.02) * np.linspace(0.01, 0.02, 4, dtype=np.float32),
    "vq": RNG.integers(-100, 100, (4, 4, 1, 1)).astype(np.int8),
    "mq": RNG.integers(-100, 100, (4, 5)).astype(np.int8),
    "m_s": np.float32(0.01),
}


def small_qdq():
    """Per-channel weights, a clamp, a tensor with two readers, a float border at either end."""
    return parsed(
        """
        net (float[1, 3, 8, 8] x) => (float[1, 5] y, float[1, 4, 8, 8] seen) {
          xq = QuantizeLinear (x, s, z)
          xd = DequantizeLinear (xq, s, z)
          w = DequantizeLinear <axis = 0> (wq, ws, wz)
          b = DequantizeLinear <axis = 0> (bq, bs)
          c = Conv <pads = [1, 1, 1, 1]> (xd, w, b)
          r = Relu (c)
          rq = QuantizeLinear (r, t, zero)
          rd = DequantizeLinear (rq, t, zero)
          v = DequantizeLinear (vq, m_s)
          e = Conv (rd, v)
          eq = QuantizeLinear (e, t, z)
          ed = DequantizeLinear (eq, t, z)
          a = Add (rd, ed)
          aq = QuantizeLinear (a, t, z)
          seen = DequantizeLinear (aq, t, z)
          p = GlobalAveragePool (seen)
          pq = QuantizeLinear (p, t, z)
          pd = DequantizeLinear (pq, t, z)
          f = Flatten (pd)
          fq = QuantizeLinear (f, t, z)
          fd = DequantizeLinear (fq, t, z)
          m = DequantizeLinear (mq, m_s)
          g = MatMul (fd, m)
          y = Softmax (g)
        }
        """,
        **SCALES, **WEIGHTS,
    )  # fmt: skip


class _Frames(CalibrationDataReader):
    def __init__(self, name, shape, count=2):
        rng = np.random.default_rng(0)
        self._frames = iter([{name: rng.random(shape, np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self._frames, None)


def quantise(model, folder, form):
    """Quantise a model of one input as a user would: fold its constants, calibrate, per channel."""
    plain, folded, found = (folder / f"{name}.onnx" for name in ("plain", "folded", form))
    onnx.save(model, plain)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
    (given,) = model.graph.input
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    quantize_static(
        folded,
        found,
        _Frames(given.name, shape),
        quant_format=QuantFormat[form],
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return found
