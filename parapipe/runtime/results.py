"""Results kept in a file, and a run in a few lines.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, Final

import numpy as np

from .folder import Folder, RunError
from .record import Frame, Record, done_while_admitted
from .sessions import ProviderUse


class ResultFile:
    """Results of frames in order, written at the end of a `with`, however it ends.

    Parameters
    ----------
    path
        An `.npz` file: an array for each graph output, the first axis that of frames. Nothing is
        kept if it is None.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._frames: list[Mapping[str, Any]] = []

    def add(self, results: Mapping[str, Any]) -> None:
        """Keep the results of the next frame."""
        if self._path is not None:
            self._frames.append(results)

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._path is not None:
            names = self._frames[0] if self._frames else ()
            stacked = ((name, np.stack([each[name] for each in self._frames])) for name in names)
            write_arrays(self._path, stacked)


def write_arrays(path: Path, arrays: Iterable[tuple[str, Any]]) -> None:
    """Write an `.npz` file, whole or not at all.

    Parameters
    ----------
    arrays
        With their names, which may be any.

    Raises
    ------
    RunError
        If it cannot be written.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # numpy.savez takes not all names
        for name, array in arrays:
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    write_atomically(path, buffer.getbuffer())


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written, before work is done for it.

    Raises
    ------
    RunError
        If it is a folder or no regular file, or its folder is missing or may not be written.
    """
    beside = path.parent
    if path.is_dir():
        raise RunError(f"{path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: is no regular file; name another file")
    if not beside.is_dir():
        raise RunError(f"{path}: there is no folder {beside}; name one that exists")
    if not os.access(beside, os.W_OK | os.X_OK):
        raise RunError(f"{path}: the folder {beside} may not be written; name another one")


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    RunError
        If it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except BaseException as failure:  # a signal, too, leaves nothing beside it
        beside.unlink(missing_ok=True)
        if isinstance(failure, OSError):
            raise RunError(f"{path}: cannot be written ({failure.strerror})") from failure
        raise


RUN_SCHEMA: Final = "parapipe/board-run/1"
SHOWN = 8
TOO_SLOW = 1.005  # of the time between frames


def measured_figures(folder: Folder, record: Record, used: Sequence[ProviderUse]) -> dict[str, Any]:
    """Return a run's figures beside the predicted ones.

    The first fifth of the frames, in which the pipeline fills, does not count, nor for the period
    what ends when the last frame has been admitted, so that the pipeline empties.

    Returns
    -------
    dict
        `schema`, `model`, `platform` and the processors of each of the `stages`; `latency_s` and
        `period_s`, each `predicted` and `measured` (None of too few frames); `utilisation` of each
        processor: its work for a frame over the period; `segments` with their times and what runs
        nodes `elsewhere` than planned, by the node's name; those first that differ most.
    """
    elsewhere = {segment: nodes for use in used for segment, nodes in use.strays.items()}
    steady = record.frames[len(record.frames) // 5 :]
    counted = {frame.index for frame in steady}
    period_s = _period_s(steady)
    times_s: defaultdict[str, list[float]] = defaultdict(list)
    busy_s: defaultdict[str, float] = defaultdict(float)
    for span in record.spans:
        if span.frame in counted:
            times_s[span.name].append(span.end_s - span.start_s)
            busy_s[span.resource] += span.end_s - span.start_s
    predicted_s: defaultdict[str, float] = defaultdict(float)
    for segment in folder.segments:
        for each in folder.processors:
            if each.first == segment.processor:  # of frames taken in turns, its share
                predicted_s[each.name] += segment.time_s / each.turn[1]
    return {
        "schema": RUN_SCHEMA,
        "model": folder.model.name,
        "platform": folder.platform,
        "stages": _stages(folder),
        "frames": len(record.frames),
        "latency_s": {
            "predicted": folder.predicted.latency_s,
            "measured": median(f.done_s - f.admitted_s for f in steady) if steady else None,
        },
        "period_s": {"predicted": folder.predicted.period_s, "measured": period_s},
        "utilisation": {
            resource: {
                "predicted": predicted_s[resource] / folder.predicted.period_s,
                "measured": busy_s[resource] / len(steady) / period_s if period_s else None,
            }
            for resource in record.resources
        },
        "segments": sorted(
            (
                {
                    "name": segment.id,
                    "predicted_s": segment.time_s,
                    "measured_s": mean(times_s[segment.id]),
                    "elsewhere": elsewhere.get(segment.id, {}),
                }
                for segment in folder.segments
                if times_s[segment.id]
            ),
            key=lambda each: -abs(each["measured_s"] - each["predicted_s"]),
        ),
    }


def _stages(folder: Folder) -> list[list[str]]:
    """Return the processors of each stage, those that take turns included."""
    turns = {each.name: list(each.turns or (each.name,)) for each in folder.processors}
    by_stage: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for segment in folder.segments:
        by_stage[segment.stage].update(dict.fromkeys(turns[segment.processor]))
    return [list(names) for _, names in sorted(by_stage.items())]


def figure_lines(figures: dict[str, Any], *, pace_s: float | None) -> Iterator[str]:
    """Yield the figures for people.

    Parameters
    ----------
    pace_s
        Seconds between frames as they were admitted; None if as fast as they were taken.
    """
    latency, period = figures["latency_s"], figures["period_s"]
    queueing = ", waiting for admission included" if pace_s is None else ""
    yield f"frames      {figures['frames']}"
    yield f"latency     {_measured_and_predicted(latency, _milliseconds)}{queueing}"
    yield f"period      {_measured_and_predicted(period, _milliseconds)}"
    yield f"throughput  {_measured_and_predicted(period, lambda s: f'{1 / s:.2f} frames/s')}"
    for resource, shares in figures["utilisation"].items():
        yield f"{resource:11} {_measured_and_predicted(shares, lambda share: f'{share:.0%} busy')}"
    if pace_s is not None and (period["measured"] or 0) > pace_s * TOO_SLOW:
        yield "frames arrive faster than the pipeline takes them, so each waits longer and longer"
    if figures["segments"]:
        yield "segments that differ most:"
    for each in figures["segments"][:SHOWN]:
        names = {"predicted": each["predicted_s"], "measured": each["measured_s"]}
        yield f"  {each['name']:14} {_measured_and_predicted(names, _milliseconds)}"


def _period_s(steady: Sequence[Frame]) -> float | None:
    done_s = done_while_admitted(steady)
    if len(done_s) < 2 or done_s[-1] <= done_s[0]:
        return None
    return (done_s[-1] - done_s[0]) / (len(done_s) - 1)


def _measured_and_predicted(figure: dict[str, Any], shown: Any) -> str:  # noqa: ANN401
    measured_text = "unknown" if figure["measured"] is None else shown(figure["measured"])
    return f"{measured_text} measured, {shown(figure['predicted'])} predicted"


def _milliseconds(time_s: float) -> str:
    return f"{time_s * 1e3:.3g} ms" if time_s < 0.1 else f"{time_s * 1e3:.1f} ms"
