"""ONNX Runtime sessions, one for each segment, opened on the cores that they will run on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import onnxruntime as ort

from .document import Processor, Segment
from .folder import Folder, RunError

Session = Any  # onnxruntime is untyped
LONGEST_REASON = 300


def open_sessions(folder: Folder) -> Mapping[str, Session]:
    """Open a session for each segment; those of different processors at the same time.

    Raises
    ------
    RunError
        Names the segment that ONNX Runtime does not take, and its reason.
    """
    _check_providers(folder)
    opened: dict[str, Session] = {}
    faults: list[str] = []

    def open_all(processor: Processor) -> None:
        about = f"processor '{processor.name}'"
        try:
            pin(processor.cores)
            for segment in folder.segments:
                if segment.processor == processor.name and not faults:
                    about = f"segment '{segment.id}'"
                    opened[segment.id] = _session(folder, segment, processor)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            faults.append(f"{about} cannot be opened: {reason(error)}")

    threads = [
        threading.Thread(target=open_all, args=(processor,)) for processor in folder.processors
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise RunError(faults[0])
    return opened


def _check_providers(folder: Folder) -> None:
    offered = ort.get_available_providers()
    for processor in folder.processors:
        if processor.provider not in offered:
            raise RunError(
                f"processor '{processor.name}' is run by {processor.provider}, which this ONNX "
                f"Runtime does not offer: install one that does, or run it on CPU cores by --cores "
                f"{processor.name}=0"
            )


def _session(folder: Folder, segment: Segment, processor: Processor) -> Session:
    """Open a session; the threads that ONNX Runtime makes for it inherit the caller's cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = processor.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # what goes wrong is raised, and told in one line
    # Threads spin while their segment runs, not while the processor's next one does.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    wanted = list(dict.fromkeys([processor.provider, "CPUExecutionProvider"]))
    return ort.InferenceSession(str(folder.path / segment.file), options, providers=wanted)


def pin(cores: Collection[int]) -> None:
    """Bind the calling thread, and threads that it starts, to some cores; to none, if none."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def stopper() -> tuple[Any, Callable[[], None]]:
    """Return options to run sessions with, and what makes such runs end before their time."""
    options = ort.RunOptions()
    options.log_severity_level = 4

    def stop() -> None:
        options.terminate = True

    return options, stop


def reason(error: BaseException) -> str:
    """Return an exception's text in one line that is not too long."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"
