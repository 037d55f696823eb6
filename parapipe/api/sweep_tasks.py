"""One task of a sweep: a model on a platform, mapped in whatever process, and its files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from parapipe.api.load import ZOO
from parapipe.errors import ModelError, ParapipeError
from parapipe.files.locked_folders import LockedFolder
from parapipe.files.worker_counts import ALONE
from parapipe.pipeline.options import MapOptions
from parapipe.version import __version__


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A model on a platform, with options that have a name.

    Parameters
    ----------
    name
        Of this task alone, and of its folder.
    digest
        SHA-256 of all that the front depends on: files, options, the version of parapipe.
    """

    name: str
    model: str
    platform: str
    variant: str
    options: MapOptions
    digest: str = ""


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """What came of a task.

    Parameters
    ----------
    files
        Those of the front's folder, by their paths in it, each compressed by zlib.
    error
        Why there is no front; empty if there is one.
    notes
        What `map` has noted.
    version
        That of parapipe in the process that answered.
    """

    files: Mapping[str, bytes]
    error: str = ""
    notes: tuple[str, ...] = ()
    version: str = __version__

    def unpacked(self) -> Iterator[tuple[Path, bytes]]:
        """Yield the files, by their paths in the front's folder."""
        for path, packed in self.files.items():
            yield Path(path), zlib.decompress(packed)


def answered(task: SweepTask) -> SweepAnswer:
    """Map a task's model; called in a process of this machine or of another one."""
    from parapipe.api.map import map

    notes: list[str] = []
    try:
        front = map(task.model, task.platform, options=task.options, note=notes.append)
        with LockedFolder() as scratch:
            packed = {
                path.relative_to(scratch.path).as_posix(): zlib.compress(path.read_bytes())
                for path in front.write(scratch.path, jobs=ALONE)
            }
    except ParapipeError as error:
        told = "; ".join([str(error), *getattr(error, "mistakes", ())])
        return SweepAnswer({}, told, tuple(notes))
    except Exception as error:  # noqa: BLE001 - the other tasks go on
        told = f"this is a mistake in parapipe ({type(error).__name__}: {error}); please report it"
        return SweepAnswer({}, told, tuple(notes))
    return SweepAnswer(packed, "", tuple(notes))


def with_digests(tasks: Sequence[SweepTask]) -> list[SweepTask]:
    """Return the tasks with their digests; each file is read once.

    A model that cannot be read is no error yet: it is that of its tasks.

    Raises
    ------
    PlatformError, CostError, OSError
        A platform's file, a profile or rules cannot be read.
    """
    models = {each: _model_digest(each) for each in dict.fromkeys(t.model for t in tasks)}
    asked = {(t.platform, tuple(map(str, t.options.profiles)), t.options.rules) for t in tasks}
    boards = {each: _board_digest(*each) for each in asked}
    return [
        replace(
            task,
            digest=_digest(
                __version__,
                task.name,
                task.model,
                models[task.model],
                boards[task.platform, tuple(map(str, task.options.profiles)), task.options.rules],
                task.options.where(lambda option: option.changes_results),
            ),
        )
        for task in tasks
    ]


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _model_digest(model: str) -> str:
    from parapipe.graph.onnx_import import opened_model
    from parapipe.zoo.registry import described

    try:
        if model.startswith(ZOO):
            return described(model.removeprefix(ZOO))[1]
        source = opened_model(Path(model), digests=True)[1]
    except ModelError:
        return ""
    return _digest(source.sha256, dict(source.external))


def _board_digest(platform: str, profiles: Sequence[str], rules: str | Path | None) -> str:
    """Return the digest of a platform, its profiles and rules."""
    from parapipe.cost.profile import chosen_profiles
    from parapipe.platform.load import file_of, load_platform, platform_text

    name = load_platform(platform).profile_name
    found = chosen_profiles(profiles, beside=platform, platform=name) or ()
    files = [each.path for each in found] + ([] if rules is None else [str(rules)])
    digests = [sha256(Path(path).read_bytes()).hexdigest() for path in files]
    return _digest(platform, platform_text(file_of(platform)), digests)
