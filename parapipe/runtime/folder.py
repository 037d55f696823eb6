"""A folder that `parapipe export --to onnxruntime` wrote: what its plan.json says.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .fields import (
    COUNT,
    SECONDS,
    SIZES,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    WHOLE,
    DamagedError,
    Fields,
)

SCHEMA = "parapipe/onnxruntime/1"
CPU_PROVIDER = "CPUExecutionProvider"
AGAIN = "export the plan again"
PREDICTED = ("latency_s", "period_s", "sustained_period_s")


class RunError(Exception):
    """A plan cannot be run, or a run ended before its time: one sentence says where and why."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and type, in NumPy's words, of a tensor that goes from segment to segment."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Lane:
    """A processor.

    Parameters
    ----------
    cores
        That its thread is bound to; empty if it is bound to none.
    threads
        Of each of its sessions, the thread that runs it included.
    provider
        ONNX Runtime's execution provider.
    substitute
        Why that provider stands in for the processor; empty if it does not.
    """

    name: str
    cores: tuple[int, ...]
    threads: int
    provider: str
    substitute: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """Operators that one processor runs at one go, as one ONNX file.

    Parameters
    ----------
    lag
        Frames that it is behind the segments of lag 0 while all keep step.
    file
        Name in the folder.
    time_s
        Predicted.
    """

    name: str
    lane: str
    stage: int
    lag: int
    file: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operators: tuple[str, ...]
    time_s: float


@dataclass(frozen=True, slots=True)
class Channel:
    """A tensor on its way to the segments of one processor that read it.

    Parameters
    ----------
    producer
        Segment that makes it; None for a graph input.
    consumers
        Segments that read it, in their processor's order.
    slots
        Frames of it that may be held, from the producer's start to the last consumer's end.
    """

    tensor: str
    producer: str | None
    consumers: tuple[str, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Folder:
    """All that a runner needs to know; segments stand in each processor's order.

    Parameters
    ----------
    outputs
        Graph outputs, each with the segment that makes it; None where it is a graph input.
    predicted
        `latency_s`, `period_s` and `sustained_period_s`.
    """

    path: Path
    model: str
    platform: str
    lanes: tuple[Lane, ...]
    segments: tuple[Segment, ...]
    channels: tuple[Channel, ...]
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: Mapping[str, str | None]
    predicted: Mapping[str, float]

    def on_cores(self, chosen: Mapping[str, Sequence[int]]) -> Folder:
        """Return the same with other cores for some processors, which are then run as CPUs.

        Raises
        ------
        RunError
            If there is no such processor.
        """
        names = [lane.name for lane in self.lanes]
        unknown = sorted(set(chosen) - set(names))
        if unknown:
            raise RunError(
                f"cores are given for {_listed(unknown)}, and the plan's processors are "
                f"{_listed(names)}"
            )
        doubled = [
            name for name in names if len(set(chosen.get(name, ()))) < len(chosen.get(name, ()))
        ]
        if doubled:
            raise RunError(f"a core is given twice for {_listed(doubled)}")
        lanes = [
            Lane(lane.name, tuple(chosen[lane.name]), len(chosen[lane.name]), CPU_PROVIDER)
            if lane.name in chosen
            else lane
            for lane in self.lanes
        ]
        return replace(self, lanes=tuple(lanes))

    def shared_cores(self) -> tuple[str, ...]:
        """Return a sentence for each core that several processors run on."""
        users: dict[int, list[str]] = {}
        for lane in self.lanes:
            for core in lane.cores:
                users.setdefault(core, []).append(f"'{lane.name}'")
        return tuple(
            f"{' and '.join(names)} run on core {core}: they take turns there, and measured times "
            "hold waiting for each other"
            for core, names in sorted(users.items())
            if len(names) > 1
        )

    def with_slots(self, slots: int) -> Folder:
        """Return the same with that many slots in every channel."""
        return replace(self, channels=tuple(replace(each, slots=slots) for each in self.channels))

    def check_cores(self) -> None:
        """Refuse cores that this process may not use.

        Raises
        ------
        RunError
            Names all of them, and what may be used.
        """
        if not hasattr(os, "sched_getaffinity"):
            return
        lent = os.sched_getaffinity(0)
        lacking = [
            f"processor '{lane.name}' wants cores {_listed(sorted(set(lane.cores) - lent))}"
            for lane in self.lanes
            if not lent.issuperset(lane.cores)
        ]
        if lacking:
            example = lacking[0].split("'")[1]
            raise RunError(
                f"{'; '.join(lacking)}: this process may use cores {_listed(sorted(lent))}; give "
                f"others by --cores {example}={min(lent)}"
            )


def open_folder(path: Path) -> Folder:
    """Read a folder's plan.json.

    Raises
    ------
    RunError
        If it cannot be read, is of another format or damaged, or a file of a segment is missing.
    """
    file = path / "plan.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{file}: cannot be read ({error.strerror}); {AGAIN}") from error
    except ValueError as error:
        raise RunError(f"{file}: is not JSON ({error}); {AGAIN}") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise RunError(f"{file}: is of schema {found!r}, not {SCHEMA!r}; {AGAIN}")
    try:
        folder = _folder(path, Fields(document))
    except DamagedError as error:
        raise RunError(f"{file}: is damaged, {error}; {AGAIN}") from error
    _check_files(folder, document.get("files"))
    return folder


def _folder(path: Path, document: Fields) -> Folder:
    processors, segments = document.tables("processors"), document.tables("segments")
    tensors, predicted = document.table("tensors"), document.table("predicted")
    folder = Folder(
        path=path,
        model=document.table("model").take("name", TEXT),
        platform=document.take("platform", TEXT),
        lanes=tuple(map(_lane, processors)),
        segments=tuple(
            map(_segment, sorted(segments, key=lambda each: each.take("position", WHOLE)))
        ),
        channels=tuple(map(_channel, document.tables("channels"))),
        tensors={
            name: Tensor(each.take("dtype", TEXT), tuple(each.take("shape", SIZES)))
            for name, each in ((name, tensors.table(name)) for name in tensors.names())
        },
        inputs=tuple(document.take("inputs", TEXTS)),
        outputs={
            each.take("tensor", TEXT): each.take("segment", TEXT_OR_NULL)
            for each in document.tables("outputs")
        },
        predicted={name: predicted.take(name, SECONDS) for name in PREDICTED},
    )
    _check_names(folder)
    return folder


def _lane(each: Fields) -> Lane:
    return Lane(
        each.take("name", TEXT),
        tuple(each.take("cores", SIZES)),
        each.take("threads", COUNT),
        each.take("provider", TEXT),
        (each.take("substitute", TEXT_OR_NULL) if "substitute" in each.names() else None) or "",
    )


def _segment(each: Fields) -> Segment:
    return Segment(
        name=each.take("id", TEXT),
        lane=each.take("processor", TEXT),
        stage=each.take("stage", WHOLE),
        lag=each.take("lag", WHOLE),
        file=each.take("file", TEXT),
        inputs=tuple(each.take("inputs", TEXTS)),
        outputs=tuple(each.take("outputs", TEXTS)),
        operators=tuple(each.take("operators", TEXTS)),
        time_s=each.take("time_s", SECONDS),
    )


def _channel(each: Fields) -> Channel:
    return Channel(
        each.take("tensor", TEXT),
        each.take("producer", TEXT_OR_NULL),
        tuple(each.take("consumers", TEXTS)),
        each.take("queue_depth", COUNT),
    )


def _check_names(folder: Folder) -> None:
    """Check that processors, segments and tensors that are named are there."""
    lanes = {lane.name for lane in folder.lanes}
    segments = {segment.name for segment in folder.segments}
    makers = {channel.producer for channel in folder.channels} | set(folder.outputs.values())
    readers = {name for channel in folder.channels for name in channel.consumers}
    named: dict[str, tuple[set[Any], set[str]]] = {
        "processor": ({segment.lane for segment in folder.segments}, lanes),
        "segment": ((makers - {None}) | readers, segments),
        "tensor": (
            {*folder.inputs, *folder.outputs, *(channel.tensor for channel in folder.channels)},
            set(folder.tensors),
        ),
    }
    for kind, (wanted, there) in named.items():
        if lacking := sorted(str(name) for name in wanted - there):
            raise DamagedError(f"it names {kind} {_listed(lacking)}, which is not there")


def _check_files(folder: Folder, digests: object) -> None:
    """Check that the segments and their weights are there, whole or not."""
    weights = (
        [name for name in digests if name.endswith(".bin")] if isinstance(digests, dict) else []
    )
    files = [*(segment.file for segment in folder.segments), *weights]
    if missing := [name for name in files if not (folder.path / name).is_file()]:
        several = "are" if len(missing) > 1 else "is"
        raise RunError(f"{folder.path}: {_listed(missing)} {several} missing; {AGAIN}")


def _listed(names: Sequence[object]) -> str:
    return ", ".join(str(name) for name in names)
