"""Compiles segments, each only once: what a compiler made is cached, see `compilers/results.py`.

A refusal is kept as well; a crash, a kill, a full disk or a time-out is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parapipe.compilers.contract import (
    CompiledSegment,
    CompileError,
    CompileJob,
    Compiler,
    Environment,
)
from parapipe.compilers.environments import environment
from parapipe.compilers.registry import COMPILERS, compiler
from parapipe.compilers.results import (
    keep_refusal,
    keep_segment,
    read_result,
    result_key,
    scratch_folder,
)
from parapipe.compilers.samples import write_arrays
from parapipe.errors import ArgumentError
from parapipe.files.mistakes import did_you_mean

_VERSIONS: dict[tuple[str, Path, float], str] = {}


def tool_version(name: str, place: Environment | None = None) -> str:
    """Return the version of a compiler; asked once per process and Python.

    Parameters
    ----------
    place
        Where it is installed; where the user has said if not given.

    Raises
    ------
    ArgumentError
        If there is no such compiler.
    CompileError
        If it is not installed.
    """
    tool = compiler(name)
    place = place or environment(name)
    key = (name, place.python, _changed_s(place.python))
    if key not in _VERSIONS:
        with scratch_folder(tool.title) as folder, COMPILERS.failures_of(name):
            _VERSIONS[key] = tool.version(place, folder)
    return _VERSIONS[key]


def _changed_s(python: Path) -> float:
    try:
        return python.stat().st_mtime
    except OSError as error:
        raise CompileError(f"{python}: cannot be read ({error.strerror})", "missing") from error


def compile_segment(name: str, job: CompileJob) -> CompiledSegment:
    """Compile a segment by the compiler of a name, or return what it made of it before.

    Raises
    ------
    ArgumentError
        If there is no such compiler, it does not know the target, or samples are wrong.
    CompileError
        If there is no artefact.
    """
    tool = _tool_for(name, job)
    key = result_key(job, name, tool_version(name))
    if (earlier := read_result(key, job.model.name)) is not None:
        return earlier
    with scratch_folder(job.model.name) as folder:
        try:
            with COMPILERS.failures_of(name):
                segment = tool.compile(job, environment(name), folder)
        except CompileError as error:
            if error.cause == "refused":
                keep_refusal(key, job.model.name, error)
            raise
        return keep_segment(key, segment)


def simulate_segment(name: str, job: CompileJob, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run one frame through a segment in the compiler's simulator, see `simulate_frames`."""
    return simulate_frames(name, job, [inputs])[0]


def simulate_frames(
    name: str, job: CompileJob, frames: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Run frames through a segment in the compiler's simulator, which compiles it once for all.

    Parameters
    ----------
    frames
        Of each frame, arrays by the names of the segment's inputs.

    Returns
    -------
    Of each frame, arrays by the names of its outputs, in the shapes and types that ONNX states.

    Raises
    ------
    ArgumentError, CompileError
        As for `compile_segment`.
    """
    tool = _tool_for(name, job)
    with scratch_folder(job.model.name) as folder:
        path = folder / "inputs.npz"
        stacks = {each: np.stack([frame[each] for frame in frames]) for each in frames[0]}
        write_arrays(path, stacks)
        with COMPILERS.failures_of(name):
            outputs = tool.simulate(job, environment(name), path, folder)
        with np.load(outputs, allow_pickle=False) as file:
            stacks = {each: file[each] for each in file.files}
    return [
        {each: stack[number] for each, stack in stacks.items()} for number in range(len(frames))
    ]


def _tool_for(name: str, job: CompileJob) -> Compiler:
    tool = compiler(name)
    if job.target not in tool.targets:
        raise ArgumentError(
            f"the compiler '{name}' does not know the target '{job.target}': choose from "
            f"{', '.join(tool.targets)}{did_you_mean(job.target, tool.targets)}"
        )
    return tool
