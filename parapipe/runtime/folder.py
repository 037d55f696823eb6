"""A folder that `parapipe export` wrote for its runner, as that takes it.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .document import SCHEMA, Processor, SessionPlan
from .fields import DamagedError, read
from .machine import denormals_note
from .ncnn_sessions import PROVIDER as NCNN
from .ncnn_sessions import THREADS, VULKAN
from .rknn_sessions import PROVIDER as RKNN
from .views import check_places, check_views

CPU_PROVIDER = "CPUExecutionProvider"
EXPORT_AGAIN = "export the plan again"


class RunError(Exception):
    """A plan cannot be run, or a run ended before its time: one sentence says where and why."""


@dataclass(frozen=True)
class Folder(SessionPlan):
    """All that a runner needs to know; segments stand in each processor's order."""

    path: Path = Path()
    first_slots: bool = False
    """Whether caches are filled from their first slot on, so that what has grown loses its last
    entries, which are empty; else its oldest ones, which stand first."""

    def on_cores(self, chosen: Mapping[str, Sequence[int]]) -> Folder:
        """Return the same with other cores for some processors, which are then run as CPUs.

        Raises
        ------
        RunError
            If there is no such processor, or its segments are compiled for an NPU.
        """
        names = [each.name for each in self.processors]
        unknown = sorted(set(chosen) - set(names))
        if unknown:
            raise RunError(
                f"cores are given for {_comma_separated(unknown)}, and the plan's processors are "
                f"{_comma_separated(names)}"
            )
        compiled = [p.name for p in self.processors if p.name in chosen and p.provider == RKNN]
        if compiled:
            raise RunError(
                f"cores are given for {_comma_separated(compiled)}, whose segments are compiled "
                "for an NPU and run nowhere else; leave it out"
            )
        doubled = [
            name for name in names if len(set(chosen.get(name, ()))) < len(chosen.get(name, ()))
        ]
        if doubled:
            raise RunError(f"a core is given twice for {_comma_separated(doubled)}")
        return replace(
            self, processors=tuple(_on_other_cores(each, chosen) for each in self.processors)
        )

    def shared_cores(self) -> tuple[str, ...]:
        """Return a sentence for each core that several processors run on."""
        users: dict[int, list[str]] = {}
        for processor in self.processors:
            for core in processor.cores:
                users.setdefault(core, []).append(f"'{processor.name}'")
        return tuple(
            f"{' and '.join(names)} run on core {core}: they take turns there, and measured times "
            "include waiting for each other"
            for core, names in sorted(users.items())
            if len(names) > 1
        )

    def notes(self) -> tuple[str, ...]:
        """Return what is to be known of the plan before it runs here."""
        denormal = denormals_note((each.tensor, each.count, each.of) for each in self.denormals)
        return (*([denormal] if denormal else []), *self.shared_cores())

    def with_slots(self, slots: int) -> Folder:
        """Return the same with that many slots in every channel."""
        channels = tuple(replace(each, queue_depth=slots) for each in self.channels)
        return replace(self, channels=channels)

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
        lacking = {
            each.name: sorted(set(each.cores) - lent)
            for each in self.processors
            if not lent.issuperset(each.cores)
        }
        if lacking:
            wanted = (
                f"processor '{p}' wants cores {_comma_separated(odd)}" for p, odd in lacking.items()
            )
            others = " ".join(f"`cores` {processor}={min(lent)}" for processor in lacking)
            raise RunError(
                f"{'; '.join(wanted)}: this process may use cores "
                f"{_comma_separated(sorted(lent))}; give others by {others}"
            )


def _on_other_cores(processor: Processor, chosen: Mapping[str, Sequence[int]]) -> Processor:
    if processor.name not in chosen:
        return processor
    cores = tuple(chosen[processor.name])
    moved = replace(processor, cores=cores, threads=len(cores), substitute=None)
    return moved if processor.kind == "cpu" else on_cpu(moved)


def on_cpu(processor: Processor, substitute: str | None = None) -> Processor:
    """Return a processor that the CPU's kernels run, and why if it should not be so.

    They are ONNX Runtime's, and ncnn's where ncnn runs it.
    """
    if processor.provider == NCNN:
        options = {name: text for name, text in processor.options.items() if name != VULKAN}
        return replace(processor, options=options, threads_option=THREADS, substitute=substitute)
    return replace(
        processor, provider=CPU_PROVIDER, options={}, threads_option=None, substitute=substitute
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
        raise RunError(f"{file}: cannot be read ({error.strerror}); {EXPORT_AGAIN}") from error
    except ValueError as error:
        raise RunError(f"{file}: is not JSON ({error}); {EXPORT_AGAIN}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise RunError(f"{file}: is of schema {schema!r}, not {SCHEMA!r}; {EXPORT_AGAIN}")
    try:
        plan = read(SessionPlan, document)
        _check_names(plan)
        check_views(plan)
        check_places(plan)
    except DamagedError as error:
        raise RunError(f"{file}: is damaged, {error}; {EXPORT_AGAIN}") from error
    _check_files(path, plan)
    in_order = tuple(sorted(plan.segments, key=lambda each: each.position))
    return Folder(**{**vars(plan), "segments": in_order}, path=path)


def _check_names(plan: SessionPlan) -> None:
    """Check that processors, segments and tensors that are named are there."""
    makers = {each.producer for each in plan.channels} | {each.segment for each in plan.outputs}
    readers = {name for channel in plan.channels for name in channel.consumers}
    named: dict[str, tuple[set[Any], set[str]]] = {
        "processor": (
            {segment.processor for segment in plan.segments},
            {each.name for each in plan.processors},
        ),
        "segment": ((makers - {None}) | readers, {segment.id for segment in plan.segments}),
        "tensor": (
            {
                *plan.inputs,
                *(each.tensor for each in plan.channels),
                *(each.tensor for each in plan.outputs),
                *(name for each in plan.views for name in (each.tensor, each.whole)),
                *(each.tensor for each in plan.places),
                *(each.tensor for each in plan.outside),
                *(name for each in plan.states for name in (each.input, each.output)),
            },
            set(plan.tensors),
        ),
    }
    for kind, (wanted, there) in named.items():
        if lacking := sorted(str(name) for name in wanted - there):
            raise DamagedError(f"it names {kind} {_comma_separated(lacking)}, which is not there")


def _check_files(path: Path, plan: SessionPlan) -> None:
    """Check that the segments and their weights are there, whole or not."""
    weights = [name for name in plan.files if name.endswith(".bin")]
    files = [*(segment.file for segment in plan.segments), *weights]
    if missing := [name for name in files if not (path / name).is_file()]:
        several = "are" if len(missing) > 1 else "is"
        raise RunError(f"{path}: {_comma_separated(missing)} {several} missing; {EXPORT_AGAIN}")


def _comma_separated(names: Sequence[object]) -> str:
    return ", ".join(str(name) for name in names)
