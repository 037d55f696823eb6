"""A stand-in compiler: its files are the ONNX models, and its simulator is ONNX Runtime.

It refuses the node types that RKNN_REFUSES names, leaves those of RKNN_ON_CPU to the CPU, and adds
RKNN_NOISE times random numbers to what it simulates. In int8, it wants samples of the inputs'
shapes.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

HEAD = "ID OpType DataType Target InputShape OutputShape Cycles(DDR/NPU/Total) RW(KB) FullName"


def _say(line):
    sys.stdout.write(f"{line}\n")


class RKNN:
    """As that of rknn-toolkit2."""

    def __init__(self, verbose=False):
        assert verbose

    def config(self, target_platform, optimization_level):
        """Take the chip."""
        assert optimization_level == 3
        return 0 if target_platform in ("rk3588", "rk3568") else -1

    def load_onnx(self, model):
        """Load the model."""
        self.path, self.model = model, onnx.load(model)
        return 0

    def build(self, do_quantization, dataset):
        """Print the table, or refuse."""
        if do_quantization:
            self._check_samples(dataset)
        refused = os.environ.get("RKNN_REFUSES", "").split()
        odd = [node for node in self.model.graph.node if node.op_type in refused]
        for node in odd:
            _say(f"E RKNN: [00:00:00.000] op '{node.name}' ({node.op_type}) is not supported")
        if odd:
            return -1
        _say(f"D RKNN: [00:00:00.000] {HEAD}")
        _say("D RKNN: [00:00:00.000] -----")
        on_cpu = os.environ.get("RKNN_ON_CPU", "").split()
        for number, node in enumerate(self.model.graph.node):
            target = "CPU" if node.op_type in on_cpu else "NPU"
            row = f"{number} {node.op_type} FLOAT16 {target} (1) (1) 1/2/2 1 {node.name}"
            _say(f"D RKNN: [00:00:00.000] {row}")
        _say("D RKNN: [00:00:00.000] Total Weight Memory Size: 2KB")
        return 0

    def export_rknn(self, export_path):
        """Write the file."""
        shutil.copy(self.path, export_path)
        return 0

    def init_runtime(self):
        """Open the simulator."""
        self.session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        return 0

    def inference(self, inputs, data_format):
        """Run a frame."""
        names = [each.name for each in self.session.get_inputs()]
        assert len(data_format) == len(inputs) == len(names)
        outputs = self.session.run(None, dict(zip(names, inputs, strict=True)))
        noise = float(os.environ.get("RKNN_NOISE", "0"))
        random = np.random.default_rng(0)
        return [each + noise * random.standard_normal(each.shape) for each in outputs]

    def _check_samples(self, dataset):
        shapes = [
            tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
            for each in self.model.graph.input
        ]
        lines = Path(dataset).read_text().splitlines()
        assert lines
        for line in lines:
            assert [np.load(file).shape for file in line.split()] == shapes
