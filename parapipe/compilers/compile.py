"""Compiles segments, each only once: what a compiler made is cached by content.

The key of a result is the digest of the segment with its weights, the target, the precision, the
samples, the compiler and its version. A refusal is kept as well; a crash or a time-out is not.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import external_data_helper

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    Compiler,
    RefusedNode,
)
from parapipe.compilers.environments import environment
from parapipe.compilers.registry import compiler
from parapipe.files.locked_folders import LockedFolder, clear_abandoned
from parapipe.files.user_folders import cache_folder

FORMAT = 1
FOLDER = f"compiled-{FORMAT}"
RESULT = "result.json"
MOST_BYTES = 4 << 30
"""Size of all results; the oldest ones go first."""
_PIECE_BYTES = 1 << 20


def tool_version(name: str) -> str:
    """Return the version of a compiler; asked once per Python.

    Raises
    ------
    CompileError
        If it is not installed.
    """
    return _version(compiler(name))


def compile_segment(name: str, job: CompileJob) -> CompiledSegment:
    """Compile a segment by the compiler of a name, or return what it made of it before.

    Raises
    ------
    ArgumentError
        If there is no such compiler, or it does not know the target.
    CompileError
        If there is no artefact.
    """
    tool = _tool_for(name, job)
    version = _version(tool)
    place = _folder() / _key(job, name, version)
    if (earlier := _read(place)) is not None:
        return earlier
    with LockedFolder(_folder()) as scratch:
        try:
            segment = tool.compile(job, environment(name), scratch.path)
        except CompileError as error:
            if error.cause == "refused":
                _write(scratch.path / RESULT, {"refusal": _refusal(error)})
                _keep(scratch.path, place, (RESULT,))
            raise
        files = [segment.artefact.name, RESULT, *([segment.log.name] if segment.log else [])]
        _write(scratch.path / RESULT, {"segment": _content(segment)})
        _keep(scratch.path, place, files)
    _limit_size(_folder())
    result = _read(place)
    assert result is not None, "it was written a moment ago"
    return result


def simulate_segment(name: str, job: CompileJob, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a frame through a segment in the compiler's simulator.

    Parameters
    ----------
    inputs
        Arrays by the names of the segment's inputs.

    Returns
    -------
    Arrays by the names of its outputs.

    Raises
    ------
    ArgumentError, CompileError
        As for `compile_segment`.
    """
    tool = _tool_for(name, job)
    with LockedFolder(_folder()) as scratch:
        path = scratch.path / "inputs.npz"
        np.savez(path, **inputs)
        outputs = tool.simulate(job, environment(name), path, scratch.path)
        with np.load(outputs, allow_pickle=False) as file:
            return {each: file[each] for each in file.files}


def clear() -> int:
    """Delete all results; return how many there were."""
    places = [each for each in _folder().iterdir() if each.is_dir()]
    for each in places:
        shutil.rmtree(each, ignore_errors=True)
    _VERSIONS.clear()
    return len(places)


_VERSIONS: dict[tuple[str, str, float], str] = {}


def _version(tool: Compiler) -> str:
    python = environment(tool.name)
    with suppress(OSError):
        key = (tool.name, str(python.python), python.python.stat().st_mtime)
        if key not in _VERSIONS:
            with LockedFolder(_folder()) as scratch:
                _VERSIONS[key] = tool.version(python, scratch.path)
        return _VERSIONS[key]
    raise CompileError(f"{python.python}: cannot be read", "missing")


def _tool_for(name: str, job: CompileJob) -> Compiler:
    tool = compiler(name)
    if job.target not in tool.targets:
        raise CompileError(
            f"the compiler '{name}' does not know the target '{job.target}': it has "
            f"{', '.join(tool.targets)}",
            "refused",
        )
    return tool


def _folder() -> Path:
    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    clear_abandoned(folder)
    return folder


def _key(job: CompileJob, name: str, version: str) -> str:
    digest = sha256(f"{name} {version} {job.target} {job.precision}\n".encode())
    for path in (*_model_files(job.model), *_sample_files(job.calibration)):
        digest.update(f"{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()


def _model_files(path: Path) -> list[Path]:
    model = onnx.load(path, load_external_data=False)
    names = {
        entry.value
        for each in external_data_helper._get_all_tensors(model)
        for entry in each.external_data
        if entry.key == "location"
    }
    return [path, *(path.parent / name for name in sorted(names))]


def _sample_files(calibration: Path | None) -> list[Path]:
    if calibration is None:
        return []
    return sorted(calibration.glob("*.npz")) if calibration.is_dir() else [calibration]


def _refusal(error: CompileError) -> dict[str, Any]:
    return {"message": error.message, "refused": [asdict(each) for each in error.refused]}


def _content(segment: CompiledSegment) -> dict[str, Any]:
    content = asdict(segment)
    return {
        **content,
        "artefact": segment.artefact.name,
        "log": segment.log.name if segment.log else None,
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _keep(scratch: Path, place: Path, files: Any) -> None:  # noqa: ANN401
    """Move the files of a result to its place, all or none; another process may be first."""
    with LockedFolder(place.parent) as whole:
        for name in files:
            shutil.move(scratch / name, whole.path / name)
        with suppress(OSError):  # somebody else has put it there
            shutil.copytree(whole.path, place.with_suffix(".part"), dirs_exist_ok=True)
            place.with_suffix(".part").rename(place)


def _read(place: Path) -> CompiledSegment | None:
    """Return a result, or raise its refusal; None if there is none, or it is damaged."""
    try:
        content = json.loads((place / RESULT).read_text(encoding="utf-8"))
        if "refusal" in content:
            refused = tuple(RefusedNode(**each) for each in content["refusal"]["refused"])
            raise CompileError(content["refusal"]["message"], "refused", refused)
        fields = content["segment"]
        segment = CompiledSegment(
            **{
                **fields,
                "artefact": place / fields["artefact"],
                "log": place / fields["log"] if fields["log"] else None,
                "rows": tuple(
                    CompiledRow(**{**row, "nodes": tuple(row["nodes"])}) for row in fields["rows"]
                ),
                "on_cpu": tuple(RefusedNode(**each) for each in fields["on_cpu"]),
                "notes": tuple(fields["notes"]),
            }
        )
        whole = sha256(segment.artefact.read_bytes()).hexdigest() == segment.sha256
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return replace(segment) if whole else None


def _limit_size(folder: Path) -> None:
    """Delete the oldest results if all are larger than the limit."""
    places = [each for each in folder.iterdir() if each.is_dir() and len(each.name) == 64]
    places.sort(key=lambda each: each.stat().st_mtime)
    sizes = {each: sum(file.stat().st_size for file in each.iterdir()) for each in places}
    total = sum(sizes.values())
    for each in places[:-1]:
        if total <= MOST_BYTES:
            return
        shutil.rmtree(each, ignore_errors=True)
        total -= sizes[each]
