"""ONNX Runtime sessions, one for each segment, opened on the cores that they will run on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import onnxruntime as ort

from .folder import Folder, Lane, RunError, Segment

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

    def open_lane(lane: Lane) -> None:
        about = f"processor '{lane.name}'"
        try:
            pin(lane.cores)
            for segment in folder.segments:
                if segment.lane == lane.name and not faults:
                    about = f"segment '{segment.name}'"
                    opened[segment.name] = _session(folder, segment, lane)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            faults.append(f"{about} cannot be opened: {reason(error)}")

    threads = [threading.Thread(target=open_lane, args=(lane,)) for lane in folder.lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise RunError(faults[0])
    return opened


def _check_providers(folder: Folder) -> None:
    offered = ort.get_available_providers()
    for lane in folder.lanes:
        if lane.provider not in offered:
            raise RunError(
                f"processor '{lane.name}' is run by {lane.provider}, which this ONNX Runtime does "
                f"not offer: install one that does, or run it on CPU cores by --cores "
                f"{lane.name}=0"
            )


def _session(folder: Folder, segment: Segment, lane: Lane) -> Session:
    """Open a session; the threads that ONNX Runtime makes for it inherit the caller's cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = lane.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # what goes wrong is raised, and told in one line
    # Threads spin while their segment runs, not while the processor's next one does.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    wanted = list(dict.fromkeys([lane.provider, "CPUExecutionProvider"]))
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
