"""Runs a sample through a converted segment, in a process that may crash: see `conversion.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from parapipe.runtime.document import Processor, Segment, Tensor
from parapipe.runtime.fields import read
from parapipe.runtime.ncnn_sessions import PROVIDER, NcnnError, open_ncnn_session

TASK, INPUTS, OUTPUTS = "task.json", "inputs.npz", "outputs.npz"


def main() -> None:
    """Read the task of the current folder; write the outputs there, in their order."""
    task = json.loads(Path(TASK).read_text(encoding="utf-8"))
    segment = read(Segment, task["segment"])
    tensors = {name: read(Tensor, each) for name, each in task["tensors"].items()}
    cpu = Processor(
        name="cpu", kind="cpu", cores=(), threads=1, provider=PROVIDER, frequency_hz=1.0
    )
    with np.load(INPUTS, allow_pickle=False) as file:
        inputs = {name: file[name] for name in file.files}
    try:
        session = open_ncnn_session(Path(task["folder"]), segment, cpu, tensors)
        arrays = session.run(segment.outputs, inputs)
    except NcnnError as error:
        sys.exit(str(error))
    np.savez(OUTPUTS, *arrays)  # by number: some names are none for it
