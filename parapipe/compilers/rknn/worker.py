"""Runs Rockchip's compiler in its own environment, on the job in the current folder.

It reads `job.json` and writes `result.json`; the compiler's words go to its output. It imports what
is installed beside the compiler only, never parapipe.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from traceback import extract_tb
from typing import Any

JOB, RESULT, ARTEFACT, SAMPLES, OUTPUTS = (
    "job.json",
    "result.json",
    "segment.rknn",
    "samples.txt",
    "outputs.npz",
)
LOG = "log.txt"
"""Where its output goes; `compilers/process.py` makes it."""
ADVICE = re.compile(r"disable_rules=\['(\w+)'\]")
LOGGER = "rknn_log.py"
"""The toolkit's module that raises a ValueError where it logs an error that ends its work."""


END = re.compile(r"^ValueError: ", re.MULTILINE)
"""Before its own words stands a traceback; with another error at its end, the toolkit failed."""


class RefusedError(Exception):
    """The compiler has returned an error code, or said that it does not take the model.

    Parameters
    ----------
    step
        What was asked of it.
    words
        What it said, if that is an exception.
    """

    def __init__(self, step: str, words: str = "") -> None:
        super().__init__(step)
        self.step, self.words = step, words


def ask(step: str, function: Any, **arguments: Any) -> Any:  # noqa: ANN401 - of the toolkit
    """Call the compiler; raise a RefusedError if it refuses, not if it fails."""
    try:
        answer = function(**arguments)
    except ValueError as error:
        words = END.split(str(error))
        if not extract_tb(error.__traceback__)[-1].filename.endswith(LOGGER) or len(words) < 2:
            raise
        raise RefusedError(step, words[-1]) from error
    if answer is None and step != "inference":
        return None
    if answer is None or (isinstance(answer, int) and answer != 0):
        raise RefusedError(step)
    return answer


def build(job: dict[str, Any]) -> Any:  # noqa: ANN401 - of the toolkit
    """Compile the model; return the compiler with what it has built.

    Where one of its rewriting rules fails, the compiler names the rule, to be disabled: then it is
    asked again without.
    """
    disabled: list[str] = []
    while True:
        try:
            return build_without(job, disabled)
        except Exception:
            rules = failed_rules()
            if not rules - {*disabled}:
                raise
            disabled += sorted(rules - {*disabled})


def failed_rules() -> set[str]:
    """Return the rules that the compiler has advised to disable so far."""
    sys.stdout.flush()
    sys.stderr.flush()
    return {*ADVICE.findall(Path(LOG).read_text(encoding="utf-8", errors="replace"))}


def build_without(job: dict[str, Any], rules: list[str]) -> Any:  # noqa: ANN401 - of the toolkit
    """Compile the model without some rules; return the compiler with what it has built."""
    from rknn.api import RKNN

    rknn = RKNN(verbose=True)
    chip, others = job["target"], {"disable_rules": rules} if rules else {}
    ask("config", rknn.config, target_platform=chip, optimization_level=3, **others)
    ask("load_onnx", rknn.load_onnx, model=job["model"])
    quantize = bool(job["samples"])
    if quantize:
        lines = [" ".join(files) for files in job["samples"]]
        Path(SAMPLES).write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = SAMPLES if quantize else None
    ask("build", rknn.build, do_quantization=quantize, dataset=dataset)
    return rknn


def compile_model(job: dict[str, Any]) -> None:
    """Write the file for the device."""
    ask("export_rknn", build(job).export_rknn, export_path=ARTEFACT)


def simulate(job: dict[str, Any]) -> None:
    """Write the outputs in their order, each with a leading axis that counts frames."""
    import numpy as np

    rknn = build(job)
    ask("init_runtime", rknn.init_runtime)
    with np.load(job["inputs"]) as file:
        stacks = [file[name] for name in job["input_names"]]
    formats = ["nchw" if stack.ndim == 5 else "nhwc" for stack in stacks]
    frames = [
        ask("inference", rknn.inference, inputs=list(frame), data_format=formats)
        for frame in zip(*stacks, strict=True)
    ]
    np.savez(OUTPUTS, *map(np.stack, zip(*frames, strict=True)))


def tool_version(_: dict[str, Any]) -> None:
    """Do nothing: the version is in every result."""


ACTIONS = {"compile": compile_model, "simulate": simulate, "version": tool_version}


def main() -> None:
    """Do the job; the step that was refused goes into the result."""
    from importlib.metadata import version

    job = json.loads(Path(JOB).read_text(encoding="utf-8"))
    result = {"version": version("rknn-toolkit2"), "refused": None, "words": ""}
    try:
        ACTIONS[job["action"]](job)
    except RefusedError as error:
        result |= {"refused": error.step, "words": error.words}
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
