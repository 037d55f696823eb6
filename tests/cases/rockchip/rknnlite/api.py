"""A stand-in for the board's library: runs the ONNX model in a file that is said to be compiled.

Its calls go to the file RKNNLITE_CALLS, a line of JSON each; RKNNLITE_FAULT names what goes wrong.
"""

import json
import os
import threading
from pathlib import Path

import numpy as np
import onnxruntime

LOCK = threading.Lock()
FAULT = "RKNNLITE_FAULT"


class RKNNLite:
    """As that of rknn-toolkit-lite2."""

    NPU_CORE_AUTO, NPU_CORE_0, NPU_CORE_1, NPU_CORE_2 = 0, 1, 2, 4

    def __init__(self):
        if os.environ.get(FAULT) == "library":
            raise OSError("librknnrt.so: cannot open shared object file")
        self.file, self.core = None, None

    def load_rknn(self, path):
        """Load a file."""
        os.write(1, b"I RKNN: the library prints where it likes\n")
        self.file = Path(path).name
        self._note("load_rknn")
        if os.environ.get(FAULT) == "load":
            return -1
        self.model = Path(path).read_bytes()
        return 0

    def init_runtime(self, core_mask=None):
        """Take a core."""
        self.core = core_mask
        self._note("init_runtime", core_mask=core_mask)
        if os.environ.get(FAULT) == "init":
            return -1
        self.session = onnxruntime.InferenceSession(self.model, providers=["CPUExecutionProvider"])
        return 0

    def inference(self, inputs, data_format):
        """Run a frame; numbers come in float32."""
        shapes = [list(each.shape) for each in inputs]
        self._note("inference", core_mask=self.core, shapes=shapes, data_format=data_format)
        fault = os.environ.get(FAULT)
        if fault == "nothing":
            return None
        names = [each.name for each in self.session.get_inputs()]
        outputs = self.session.run(None, dict(zip(names, inputs, strict=True)))
        if fault == "count":
            return []
        if fault == "shape":
            return [np.zeros((7, 7), np.float32) for _ in outputs]
        return [each.astype(np.float32) for each in outputs]

    def release(self):
        """Give the core back."""
        self._note("release")

    def _note(self, call, **more):
        path = os.environ.get("RKNNLITE_CALLS")
        if path:
            with LOCK, Path(path).open("a") as file:
                file.write(json.dumps({"call": call, "file": self.file, **more}) + "\n")
