"""Converts an ONNX file by pnnx, and runs the result by ncnn beside ONNX Runtime.

pnnx may take a model and mean another one, as where an axis of samples is none. So each result is
run, in a process of its own that may crash, and compared with what ONNX Runtime has made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parapipe.compilers.samples import write_arrays
from parapipe.errors import ParapipeError
from parapipe.runtime.document import Segment, Tensor
from parapipe.runtime.ncnn_sessions import SIZES
from parapipe.targets.ncnn import trial
from parapipe.targets.ncnn.tools import Tools

TOLERANCE = 1e-3
"""Largest difference of an output, of its largest number, that counts as the same."""
TIME_LIMIT_S = 600.0
NO_AXIS = 233
"""What pnnx writes where none is that of samples."""
_TAKEN = re.compile(r'ex\.input\("(in\d+)",.*?(?:batch_index=|squeeze\()(\d+)\)')
_UNKNOWN = re.compile(r"layer (\S+) not exists or registered")
_FAILED = re.compile(r"^layer load_\w+ .* failed$", re.MULTILINE)
_LAST = 300
_TAKEN_TYPES = ("float32", "int32", "int64")


@dataclass
class RefusedError(ParapipeError):
    """What is not converted, or not as it is: half a sentence says why."""

    reason: str

    def __post_init__(self) -> None:
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Job:
    """An ONNX file to convert, with a sample.

    Parameters
    ----------
    model
        The file; its results are written beside it.
    inputs, outputs
        Arrays by name, in the order of the file: what goes in, and what ONNX Runtime makes of it.
    """

    model: Path
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]

    @property
    def param(self) -> Path:
        """Where the `.param` is written; the `.bin` beside it."""
        return self.model.with_suffix(".param")


def convert(job: Job, tools: Tools) -> float:
    """Write what ncnn needs for a model; return its largest difference from ONNX Runtime.

    Returns
    -------
    float
        Of an output's largest number.

    Raises
    ------
    RefusedError
        If pnnx or ncnn do not take it, or make something else of it.
    """
    check_types(job.inputs, job.outputs)
    script = job.model.with_suffix(".pnnx.py")
    names = {"param": job.param, "bin": job.param.with_suffix(".bin"), "py": script}
    files = [f"ncnn{key}={path}" for key, path in names.items()]
    done = _run([str(tools.pnnx), str(job.model), "fp16=0", *files], job.model.parent, "pnnx")
    if done.returncode or not all(path.is_file() for path in names.values()):
        raise RefusedError(f"pnnx does not take it{_end_of(done)}")
    _state_shapes(job, dict(_TAKEN.findall(script.read_text(encoding="utf-8"))))
    return _difference(job, _outputs(job))


def check_types(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Refuse tensors that ncnn does not take from outside, or does not give.

    Parameters
    ----------
    inputs, outputs
        What ONNX Runtime takes and gives, by name.

    Raises
    ------
    RefusedError
        For the first of them.
    """
    for names, verb, types in ((inputs, "reads", _TAKEN_TYPES), (outputs, "makes", ("float32",))):
        for name, array in names.items():
            dtype = str(getattr(array, "dtype", "a type without arrays"))
            if dtype not in types:
                raise RefusedError(f"it {verb} '{name}' in {dtype}, and ncnn hands on float32")


def _state_shapes(job: Job, axes: Mapping[str, str]) -> None:
    """Write into the layers Input what shape each has, without the axis of samples."""
    lines = job.param.read_text(encoding="utf-8").splitlines()
    names = list(job.inputs)
    for at, line in enumerate(lines):
        words = line.split()
        if words[:1] != ["Input"]:
            continue
        name = names[int(words[4].removeprefix("in"))]
        shape = list(job.inputs[name].shape)
        if (axis := int(axes.get(words[4], NO_AXIS))) < len(shape):
            samples = shape.pop(axis)
            if samples != 1:
                raise RefusedError(f"'{name}' has {samples} samples, and ncnn takes one at a time")
        if not 0 < len(shape) <= len(SIZES):
            raise RefusedError(
                f"'{name}' has {len(shape)} axes without that of samples, and ncnn takes 1 to "
                f"{len(SIZES)}"
            )
        keys = [SIZES[0], SIZES[1], SIZES[3]] if len(shape) < len(SIZES) else SIZES
        sizes = zip(keys, reversed(shape), strict=False)
        lines[at] = " ".join((*words[:5], *(f"{key}={size}" for key, size in sizes)))
    job.param.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _outputs(job: Job) -> dict[str, Any]:
    """Run the sample by ncnn, in a process of its own."""
    segment = Segment(
        id=job.model.stem, file=job.param.name, processor="cpu", stage=0, lag=0, position=0,
        inputs=tuple(job.inputs), outputs=tuple(job.outputs), operators=(),
        start_s=0.0, end_s=0.0, time_s=0.0,
    )  # fmt: skip
    tensors = {
        name: asdict(Tensor(str(array.dtype), array.shape, array.nbytes))
        for name, array in {**job.inputs, **job.outputs}.items()
    }
    folder = job.model.with_suffix(".trial")
    folder.mkdir()
    task = {"folder": str(job.model.parent), "segment": asdict(segment), "tensors": tensors}
    (folder / trial.TASK).write_text(json.dumps(task), encoding="utf-8")
    write_arrays(folder / trial.INPUTS, job.inputs)
    program = f"import sys; sys.path[:] = {sys.path!r}; from {trial.__name__} import main; main()"
    done = _run([sys.executable, "-c", program], folder, "ncnn")
    if unknown := dict.fromkeys(_UNKNOWN.findall(done.stderr)):
        raise RefusedError(f"ncnn has no layer {', '.join(unknown)}")
    if failed := _FAILED.search(done.stderr):
        raise RefusedError(f"ncnn does not load it ({failed[0]})")
    if done.returncode:
        raise RefusedError(f"ncnn does not run it{_end_of(done)}")
    with np.load(folder / trial.OUTPUTS, allow_pickle=False) as file:
        return {name: file[f"arr_{number}"] for number, name in enumerate(job.outputs)}


def _difference(job: Job, outputs: Mapping[str, Any]) -> float:
    most = 0.0
    for name, exact in job.outputs.items():
        scale = float(np.abs(exact).max(initial=0)) or 1.0
        difference = float(np.abs(outputs[name] - exact).max(initial=0)) / scale
        if not difference <= TOLERANCE:  # NaN, too
            raise RefusedError(
                f"what pnnx makes of it differs from ONNX Runtime by {difference:.2g} of the "
                f"largest number in '{name}'"
            )
        most = max(most, difference)
    return most


def _run(words: list[str], folder: Path, tool: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, cwd=folder, check=False, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=TIME_LIMIT_S,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"{tool} took more than {TIME_LIMIT_S:g} s") from error
    except OSError as error:
        raise RefusedError(f"{tool} cannot be started ({error.strerror})") from error


def _end_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return how it ended and its last words, for a message."""
    code = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    words = f": {lines[-1][-_LAST:]}" if lines else ""
    return f" ({code}{words})"
