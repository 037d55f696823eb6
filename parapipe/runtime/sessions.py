"""Sessions, one for each segment, and the provider that really ran each.

A session is ONNX Runtime's, ncnn's, or of what an NPU's library runs. This file needs the standard
library and the runtimes that a folder names, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from .document import Processor, Segment
from .folder import CPU_PROVIDER, Folder, RunError, on_cpu
from .machine import denormals_to_zero
from .ncnn_sessions import PROVIDER as NCNN
from .ncnn_sessions import missing_device, open_ncnn_session
from .rknn_sessions import PROVIDER as RKNN
from .rknn_sessions import open_rknn_session

try:
    import onnxruntime as ort
except ModuleNotFoundError as error:  # all segments may be ncnn's
    if error.name != "onnxruntime":
        raise
    ort = None


@dataclass(frozen=True, slots=True)
class ProviderUse:
    """What runs a processor's segments.

    Parameters
    ----------
    processor
        Its name.
    provider, options
        ONNX Runtime's execution provider and what it was given, the number of threads included.
    nodes
        How many nodes of the segments each provider took, by its name: the CPU's kernels run what
        `provider` does not take. None where ONNX Runtime is older than 1.24 and does not tell.
    substitute
        Why `provider` stands in for the one that the platform names.
    strays
        What runs the nodes that `provider` does not, by segment and the node's name.
    """

    processor: str
    provider: str
    options: Mapping[str, str]
    nodes: Mapping[str, int] | None
    substitute: str | None
    strays: Mapping[str, Mapping[str, str]]

    def sentences(self) -> tuple[str, ...]:
        """Return what is to be known of it."""
        if self.substitute:
            on = " on the CPU" if self.provider == NCNN else ""
            return (f"'{self.processor}' is run by {self.provider}{on}, since {self.substitute}",)
        left = sum(self.nodes.values()) - self.nodes.get(self.provider, 0) if self.nodes else 0
        if not left or not self.nodes:
            inside = sum(map(len, self.strays.values()))
            what = f"{inside} node{'s' * (inside > 1)} of '{self.processor}'"
            return (f"{BOARD_CPU} runs {what}, as the compiler placed them",) if inside else ()
        of = sum(self.nodes.values())
        return (f"{self.provider} leaves {left} of {of} nodes of '{self.processor}' to the CPU",)


Session = Any  # onnxruntime is untyped
Sessions = Mapping[tuple[str, str], Session]
LONGEST_REASON = 300
BOARD_CPU = "the board's CPU"
SILENT, WARNINGS = 4, 2  # levels of ONNX Runtime's log; the second is its own choice


def open_sessions(
    folder: Folder, *, everywhere: bool = False
) -> tuple[Sessions, tuple[ProviderUse, ...]]:
    """Open a session for each segment; those of different processors at the same time.

    A processor whose provider is not there, or cannot be made, is run by the CPU. Sessions without
    threads of their own serve all CPU cores that run the same segments, so that their weights are
    in memory, and in shared caches, once: two cores that take turns on SqueezeNet take 3 % less.

    Parameters
    ----------
    everywhere
        Open a session for each segment on every processor, not on the plan's only.

    Returns
    -------
    tuple
        Sessions by processor and segment, and what runs each processor.

    Raises
    ------
    RunError
        Names the segment that ONNX Runtime does not take, and its reason; or if that is needed and
        not installed.
    """
    if any(each.provider != NCNN for each in folder.processors):
        _prepare_onnx_runtime()
    opened: dict[tuple[str, str], Session] = {}
    used: dict[str, ProviderUse] = {}
    faults: list[str] = []
    leaders: dict[tuple[str, ...], str] = {}
    leader_of = {
        each.name: leaders.setdefault(_sharing_key(each, everywhere=everywhere), each.name)
        for each in folder.processors
    }

    def open_all(processor: Processor) -> None:
        own = processor.first
        mine = [each for each in folder.segments if everywhere or each.processor == own]
        try:
            pin_thread(processor.cores)
            opened_processor, sessions = _open_on_processor(folder, mine, processor)
        except RunError as error:
            faults.append(str(error))
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            faults.append(f"processor '{processor.name}' cannot be opened: {error_line(error)}")
        else:
            opened.update({(processor.name, each): session for each, session in sessions.items()})
            used[processor.name] = ProviderUse(
                opened_processor.name,
                opened_processor.provider,
                _provider_options(opened_processor),
                _node_counts(sessions),
                opened_processor.substitute,
                _stray_nodes(sessions, opened_processor.provider, mine),
            )

    threads = [
        threading.Thread(target=open_all, args=(processor,))
        for processor in folder.processors
        if processor.name == leader_of[processor.name]
    ]
    _log_from(SILENT)  # of providers that cannot be made; it is told below
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _log_from(WARNINGS)
    if faults:
        raise RunError(faults[0])
    sessions = {
        (name, segment): session
        for name, leader in leader_of.items()
        for (of, segment), session in opened.items()
        if of == leader
    }
    return sessions, tuple(
        replace(used[leader], processor=name) for name, leader in leader_of.items()
    )


def _sharing_key(processor: Processor, *, everywhere: bool) -> tuple[str, ...]:
    """Return what processors have in common whose threads can run the same sessions."""
    if processor.provider != CPU_PROVIDER or processor.options or processor.threads > 1:
        return ("alone", processor.name)
    return ("together", "" if everywhere else processor.first, processor.substitute or "")


@cache
def _prepare_onnx_runtime() -> None:
    """Let all sessions of this process take memory from one arena.

    With an arena each, every session begins with memory that no cache holds: a split ViT-B/16 of
    208 segments took 10 % longer.
    """
    if ort is None:
        raise RunError(
            "this Python has no onnxruntime: install what is needed, as with "
            f"'{sys.executable} -m pip install -r requirements.txt'"
        )
    kind = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    arena = ort.OrtMemoryInfo("Cpu", kind, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(arena, None)


def _log_from(level: int) -> None:
    if ort is not None:
        ort.set_default_logger_severity(level)


def _open_on_processor(
    folder: Folder, segments: Collection[Segment], processor: Processor
) -> tuple[Processor, dict[str, Session]]:
    """Open a processor's sessions, on the CPU if its provider does not run them.

    What a compiler made for an NPU runs there only.
    """
    if processor.provider == NCNN and (why := missing_device(processor)):
        processor = on_cpu(processor, why)
    if processor.provider in (NCNN, RKNN):
        return processor, {each.id: _open_elsewhere(folder, each, processor) for each in segments}
    if processor.provider not in ort.get_available_providers():
        why = f"this ONNX Runtime does not offer {processor.provider}"
        processor = on_cpu(processor, why)
    try:
        return processor, {each.id: _open_session(folder, each, processor) for each in segments}
    except RunError as error:
        if processor.provider == CPU_PROVIDER:
            raise
        instead = on_cpu(processor, f"{processor.provider} cannot be used: {error}")
        return instead, {each.id: _open_session(folder, each, instead) for each in segments}


def _open_elsewhere(folder: Folder, segment: Segment, processor: Processor) -> Session:
    """Open a session of a library beside ONNX Runtime."""
    open_session = open_rknn_session if processor.provider == RKNN else open_ncnn_session
    try:
        return open_session(folder.path, segment, processor, folder.tensors)
    except Exception as error:  # the library raises many kinds
        raise RunError(f"segment '{segment.id}' cannot be opened: {error_line(error)}") from error


def _open_session(folder: Folder, segment: Segment, processor: Processor) -> Session:
    """Open a session; the threads that ONNX Runtime makes for it inherit the caller's cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1 if processor.threads_option else processor.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = SILENT  # what goes wrong is raised, and told in one line
    # Threads spin while their segment runs, not while the processor's next one does.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    wanted = {processor.provider: _provider_options(processor), CPU_PROVIDER: {}}
    where = f"segment '{segment.id}' cannot be opened"
    try:
        # The option above would stay with the caller's thread.
        with denormals_to_zero():
            opened = ort.InferenceSession(
                str(folder.path / segment.file),
                options,
                providers=list(wanted.items()),
                enable_fallback=False,
            )
    except Exception as error:  # ONNX Runtime raises many kinds
        raise RunError(f"{where}: {error_line(error)}") from error
    if opened.get_providers()[0] != processor.provider:
        raise RunError(f"{where}: its library, its device or one of its options is not there")
    return opened


def _provider_options(processor: Processor) -> dict[str, str]:
    """Return the options of a processor's provider, its threads included."""
    threads = {processor.threads_option: str(processor.threads)} if processor.threads_option else {}
    return {**threads, **processor.options}


def _node_counts(sessions: Mapping[str, Session]) -> Mapping[str, int] | None:
    """Return how many nodes each provider took; None where ONNX Runtime does not tell."""
    counts: Counter[str] = Counter()
    for session in sessions.values():
        if not hasattr(session, "get_provider_graph_assignment_info"):
            return None
        for part in session.get_provider_graph_assignment_info():
            counts[part.ep_name] += len(part.get_nodes())
    return dict(sorted(counts.items()))


def _stray_nodes(
    sessions: Mapping[str, Session], provider: str, segments: Collection[Segment]
) -> Mapping[str, Mapping[str, str]]:
    """Return what runs the nodes that the processor's provider does not, by segment and name."""
    strays = {each.id: dict.fromkeys(each.on_cpu, BOARD_CPU) for each in segments}
    for segment, session in sessions.items():
        if hasattr(session, "get_provider_graph_assignment_info"):
            for part in session.get_provider_graph_assignment_info():
                if part.ep_name != provider:
                    strays[segment] |= {node.name: part.ep_name for node in part.get_nodes()}
    return {segment: nodes for segment, nodes in strays.items() if nodes}


def pin_thread(cores: Collection[int]) -> None:
    """Bind the calling thread, and threads that it starts, to some cores; to none, if none."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def stoppable_options() -> tuple[Any, Callable[[], None]]:
    """Return options to run sessions with, and what makes such runs end before their time.

    Sessions of other libraries take no options, and end by themselves.
    """
    if ort is None:
        return None, lambda: None
    options = ort.RunOptions()
    options.log_severity_level = SILENT
    # ONNX Runtime 1.32 looks for a number of a captured graph, and takes 30 us to find none.
    options.add_run_config_entry("gpu_graph_id", "-1")

    def stop() -> None:
        options.terminate = True

    return options, stop


def error_line(error: BaseException) -> str:
    """Return an exception's text in one line; of a long one the end, which says what is wrong."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else "…" + text[-LONGEST_REASON:]
