"""Keeps what compilers have made in the user's cache, by content.

A folder for each result, named by its key: the digest of the segment with its weights, the target,
the precision, the samples, the compiler, its version and the code here that drives it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    RefusedNode,
)
from parapipe.compilers.prepare import model_files
from parapipe.compilers.registry import COMPILERS
from parapipe.compilers.samples import sample_files
from parapipe.errors import OutputError
from parapipe.files.atomic import atomic_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned
from parapipe.files.user_folders import cache_folder

FOLDER = "compiled-1"
RESULT = "result.json"
MOST_BYTES = 4 << 30
"""Size of all results; the oldest ones go first."""
_KEY_LENGTH = 64
_PIECE_BYTES = 1 << 20


def result_folder() -> Path:
    """Return the folder of all results, which is made if it is not there.

    Raises
    ------
    OutputError
        If it cannot be made.
    """
    folder = cache_folder() / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be made ({error.strerror}); name another folder for what is cached "
            "by PARAPIPE_CACHE"
        ) from error
    clear_abandoned(folder)
    return folder


@contextmanager
def scratch_folder(file: str) -> Iterator[Path]:
    """Yield an empty folder, which is removed at the end.

    Parameters
    ----------
    file
        Name of the segment, for messages.

    Raises
    ------
    CompileError
        If it cannot be written, as on a full disk.
    """
    parent = result_folder()
    try:
        with LockedFolder(parent) as folder:
            yield folder.path
    except (OSError, OutputError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CompileError(
            f"{file}: cannot be compiled in {parent} ({reason}); make room there, or name another "
            "folder by PARAPIPE_CACHE",
            "disk",
        ) from error


def result_key(job: CompileJob, name: str, version: str) -> str:
    """Return the key of a job's result."""
    said = (name, version, job.target, job.precision, _code_digest(name))
    digest = sha256("\n".join(said).encode())
    for path in (*model_files(job.model), *sample_files(job.calibration)):
        digest.update(f"\n{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()


@cache
def _code_digest(name: str) -> str:
    """Return the digest of the code that drives a compiler: new code makes new results."""
    place = COMPILERS.place(name)
    shared = ("nodes", "older_opset", "prepare", "samples")
    own = [Path(__file__).with_name(f"{each}.py") for each in shared]
    sources = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return sha256(b"\n".join(each.read_bytes() for each in (*own, *sources))).hexdigest()


def keep_segment(key: str, segment: CompiledSegment) -> CompiledSegment:
    """Move a result into the cache, whole or not at all; return it with its files' new places."""
    files = [segment.artefact, *([segment.log] if segment.log else [])]
    content = {
        **asdict(segment),
        "artefact": segment.artefact.name,
        "log": segment.log.name if segment.log else None,
    }
    place = _keep(key, {"segment": content}, files)
    return replace(
        segment,
        artefact=place / segment.artefact.name,
        log=place / segment.log.name if segment.log else None,
    )


def keep_refusal(key: str, file: str, error: CompileError) -> None:
    """Keep that a compiler refuses a segment; the message is kept without the segment's name."""
    content = {
        "message": error.message.removeprefix(f"{file}: "),
        "refused": [asdict(each) for each in error.refused],
    }
    _keep(key, {"refusal": content}, [])


def _keep(key: str, content: dict[str, Any], files: Sequence[Path]) -> Path:
    folder = result_folder()
    with atomic_folder(folder / key) as new:
        (new / RESULT).write_text(json.dumps(content), encoding="utf-8")
        for path in files:
            shutil.move(path, new / path.name)
    _limit_size(folder, key)
    return folder / key


def read_result(key: str, file: str) -> CompiledSegment | None:
    """Return a result, or raise its refusal; None if there is none, or it is damaged."""
    place = result_folder() / key
    try:
        content = json.loads((place / RESULT).read_text(encoding="utf-8"))
        if "refusal" in content:
            refused = _nodes(content["refusal"]["refused"])
            message = f"{file}: {content['refusal']['message']}"
        else:
            segment = _segment(place, content["segment"])
            if sha256(segment.artefact.read_bytes()).hexdigest() != segment.sha256:
                return None
            return segment
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    raise CompileError(message, "refused", refused)


def _segment(place: Path, fields: dict[str, Any]) -> CompiledSegment:
    rows = [CompiledRow(**{**row, "nodes": tuple(row["nodes"])}) for row in fields["rows"]]
    return CompiledSegment(
        **{
            **fields,
            "artefact": place / fields["artefact"],
            "log": place / fields["log"] if fields["log"] else None,
            "rows": tuple(rows),
            "on_cpu": _nodes(fields["on_cpu"]),
            "notes": tuple(fields["notes"]),
        }
    )


def _nodes(items: list[dict[str, str]]) -> tuple[RefusedNode, ...]:
    return tuple(RefusedNode(**each) for each in items)


def clear_results() -> int:
    """Delete all results; return how many there were. What is being compiled goes on."""
    folder = result_folder()
    places = _places(folder)
    for _, _, place in places:
        _delete(folder, place)
    return len(places)


def _limit_size(folder: Path, latest: str) -> None:
    """Delete the oldest results if all are larger than the limit, but never the latest one."""
    places = _places(folder)
    total = sum(size for _, size, _ in places)
    for _, size, place in places:
        if total <= MOST_BYTES:
            return
        if place.name != latest:
            _delete(folder, place)
            total -= size


def _places(folder: Path) -> list[tuple[float, int, Path]]:
    """Return when each result was made, its bytes and its folder, the oldest first."""
    places = []
    for place in folder.iterdir():
        with suppress(OSError):  # another process deletes it
            if len(place.name) == _KEY_LENGTH and place.is_dir():
                size = sum(file.stat().st_size for file in place.iterdir())
                places.append((place.stat().st_mtime, size, place))
    return sorted(places)


def _delete(folder: Path, place: Path) -> None:
    """Delete a result in one step: a reader has the whole of it or nothing."""
    with suppress(OSError), LockedFolder(folder) as aside:
        place.rename(aside.path / place.name)
