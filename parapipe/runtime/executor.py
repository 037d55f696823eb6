"""Runs frames through the segments of a folder: one thread for each processor, frames overlapping.

Each thread is bound to its processor's cores and takes the processor's segments in the plan's
order, frame after frame; of segments at several lags, one frame behind the other. Tensors go from
session to session as they are, without copies. The first thing that goes wrong ends all threads
and is told; results come out in order, and those that were through before come out first.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from queue import Empty
from time import perf_counter, thread_time
from typing import Any

from .arena import in_arenas, restrict_places
from .document import Processor, Segment
from .flow import Abandoned, Arrays, Flow
from .folder import Folder, RunError
from .frames import Frame, check_frame, zero_states
from .machine import denormals_to_zero
from .record import Arrow, Record, Span
from .record import Frame as FramePassed
from .sessions import (
    ProviderUse,
    Sessions,
    error_line,
    open_sessions,
    pin_thread,
    stoppable_options,
)
from .views import Views, arenas_of

LEAST_PATIENCE_S = 60.0
LATENCIES = 10  # as many predicted ones are waited for
GRACE_S = 5.0  # for threads to leave
FEEDER = "parapipe frames"
FEEDER_GRACE_S = 0.5
REMEMBERED = 10_000  # a camera may run for days
LEAST_SLOTS = 2
LOOK_S = 0.25  # how often the watchdog looks


class Executor:
    """Sessions that are open, ready to run.

    Parameters
    ----------
    queue
        Slots of every queue, two or more, in place of what the plan says.
    remembered
        So many frames, the last ones, stand in the record of a run.
    patience_s
        After so long without a step, a run that should go on is given up; a minute, or ten times
        the predicted latency if that is longer, if not given.
    in_step
        Let segments begin in the plan's order on all processors together, so that the run holds no
        more than the plan, whatever its times are.
    arena
        Let tensors lie at the plan's offsets, in one arena for each memory.

    `used` holds what runs each processor, and `in_arenas` what lies in arenas, if any does.

    Raises
    ------
    RunError
        If cores are missing, ONNX Runtime does not take a segment, or there are no offsets.
    """

    def __init__(
        self,
        folder: Folder,
        *,
        queue: int | None = None,
        patience_s: float | None = None,
        remembered: int = REMEMBERED,
        in_step: bool = False,
        arena: bool = False,
    ) -> None:
        if queue is not None and queue < LEAST_SLOTS:
            raise RunError(f"queues have {LEAST_SLOTS} slots or more, not {queue}")
        if in_step and queue is not None:
            raise RunError("in step, queues have the slots that the plan says; give none")
        if arena and queue is not None:
            raise RunError("with arenas, queues have the slots that the plan says; give none")
        if arena and folder.states:
            raise RunError("states stay from step to step, in no arena: run without arenas")
        if arena and not folder.arenas:
            raise RunError("the plan says no offsets: map the model again, or run without arenas")
        folder.check_cores()
        folder = folder if arena else replace(folder, places=())
        self.folder = folder if queue is None else folder.with_slots(queue)
        self.queue = queue or LEAST_SLOTS
        self.remembered, self.in_step = remembered, in_step
        least_s = max(LEAST_PATIENCE_S, LATENCIES * folder.predicted.latency_s)
        self.patience_s = least_s if patience_s is None else patience_s
        self.stuck: tuple[str, ...] = ()
        self._sessions, self.used = self._open_sessions()
        if arena:
            self.folder = restrict_places(self.folder, self._sessions, self.used)
        self.in_arenas = in_arenas(self.folder) if arena else None
        self._arenas = arenas_of(self.folder)
        self._last_run: Threads | None = None
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """What happened to the last frames of the last run, which is over."""
        if self._last_run is not None:
            self._record, self._last_run = self._last_run.record(), None
        if self._record is None:
            raise RunError("nothing was run yet")
        return self._record

    def run(
        self, frames: Iterable[Frame], *, period_s: float | None = None
    ) -> Generator[Mapping[str, Any], None, None]:
        """Run frames; yield the graph's outputs of each, in order.

        Parameters
        ----------
        frames
            Arrays by the names of graph inputs; taken as there is room for them.
        period_s
            Admit a frame so often; as fast as the pipeline takes them if not given.

        Raises
        ------
        RunError
            With the first cause, after the results of all frames that were through before; not
            after those that a strategy keeps which does not return.
        """
        self._last_run = self._record = None
        flow = self._make_flow()
        run = self._make_threads(flow)
        try:
            run.start(frames, period_s)
            for frame in count():
                arrays = self._wait_for_result(flow, run, frame)
                if arrays is None:
                    break
                yield arrays
            if flow.cause is not None:
                raise RunError(flow.cause)
        finally:
            run.stop("given up")
            self.stuck = run.join()
            self._last_run = run

    def _open_sessions(self) -> tuple[Sessions, tuple[ProviderUse, ...]]:
        return open_sessions(self.folder)

    def _make_flow(self) -> Flow:
        return Flow(self.folder, self.queue, self.remembered, in_step=self.in_step)

    def _make_threads(self, flow: Flow) -> Threads:
        return Threads(self.folder, self._sessions, flow, self.remembered, self._arenas)

    def _wait_for_result(self, flow: Flow, run: Threads, frame: int) -> Mapping[str, Any] | None:
        steps, since_s = -1, perf_counter()
        while True:
            try:
                return flow.result(frame, min(LOOK_S, self.patience_s))
            except Abandoned:
                return None
            except Empty:
                now_s = perf_counter()
                if flow.steps != steps or flow.is_starved:
                    steps, since_s = flow.steps, now_s
                elif now_s - since_s >= self.patience_s:
                    run.stop(_stall_cause(flow, self.patience_s))


class Threads:
    """The threads of a run and what they have done."""

    def __init__(
        self,
        folder: Folder,
        sessions: Sessions,
        flow: Flow,
        remembered: int,
        arenas: Arrays | None = None,
    ) -> None:
        self._folder, self._sessions, self._flow = folder, sessions, flow
        self._threads: list[threading.Thread] = []
        # Name of the segment, frame, start, end and work in seconds
        self._done: dict[str, deque[tuple[str, int, float, float, float]]] = {
            each.name: deque(maxlen=remembered * len(folder.segments)) for each in folder.processors
        }
        self._options, self._stop_sessions = stoppable_options()
        self._views = Views(folder, arenas)
        self._begin_s = 0.0

    def start(self, frames: Iterable[Frame], period_s: float | None) -> None:
        """Start a thread for each processor, and one that admits frames."""
        self._begin_s = perf_counter()
        for processor in self._folder.processors:
            self._start_thread(f"parapipe {processor.name}", self._run_processor, processor)
        self._start_thread(FEEDER, self._admit_frames, frames, period_s or 0.0)

    def stop(self, cause: str) -> None:
        """End all threads, those within a session too; the first cause stands."""
        self._flow.abandon(cause)
        self._stop_sessions()

    def join(self) -> tuple[str, ...]:
        """Wait for the threads; return the names of processors' threads that don't end.

        The one that takes frames may wait for one for ever, which is the caller's business.
        """
        deadline_s = perf_counter() + GRACE_S
        for thread in self._threads:
            if thread.name == FEEDER:
                deadline_s = min(deadline_s, perf_counter() + FEEDER_GRACE_S)
            with suppress(RuntimeError):  # a signal may come before it is started
                thread.join(max(deadline_s - perf_counter(), 0.0))
        left = (thread.name for thread in self._threads if thread.is_alive())
        return tuple(name for name in left if name != FEEDER)

    def record(self) -> Record:
        """Return what was done; times from the start of the run."""
        spans = [
            Span(processor, name, frame, start_s - self._begin_s, end_s - self._begin_s, work_s)
            for processor, done in self._done.items()
            for name, frame, start_s, end_s, work_s in done
        ]
        done_s: dict[int, float] = {}
        ended: defaultdict[int, set[str]] = defaultdict(set)
        for span in spans:
            done_s[span.frame] = max(done_s.get(span.frame, 0.0), span.end_s)
            ended[span.frame].add(span.name)
        admitted_s = dict(self._flow.admitted_s)
        processor_of = {segment.id: segment.processor for segment in self._folder.segments}
        complete = (
            index
            for index in sorted(ended)
            if len(ended[index]) == len(self._folder.segments) and index in admitted_s
        )
        return Record(
            resources=tuple(processor.name for processor in self._folder.processors),
            spans=tuple(sorted(spans, key=lambda span: span.start_s)),
            arrows=tuple(
                Arrow(each.tensor, processor_of[maker], maker, processor_of[reader], reader)
                for each in self._folder.channels
                for maker, reader in [(each.producer, each.consumers[0])]
                if maker is not None and processor_of[maker] != processor_of[reader]
            ),
            frames=tuple(
                FramePassed(index, admitted_s[index] - self._begin_s, done_s[index])
                for index in complete
            ),
            first_of={each.name: each.first for each in self._folder.processors if each.turns},
            peak_tensor_bytes=self._flow.bytes.peak,
            peak_outside_bytes=outside.peak if (outside := self._flow.bytes.outside) else None,
        )

    def _start_thread(self, name: str, target: Any, *arguments: Any) -> None:  # noqa: ANN401
        thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_processor(self, processor: Processor) -> None:
        """Run a processor's segments, frame after frame; of frames taken in turns, its own."""
        segments = [each for each in self._folder.segments if each.processor == processor.first]
        number, of = processor.turn
        least = min(segment.lag for segment in segments)
        most = max(segment.lag for segment in segments)
        try:
            pin_thread(processor.cores)
            with denormals_to_zero():
                for turn in count():
                    for segment in segments:
                        frame = turn - (segment.lag - least)
                        if frame < 0 or frame % of != number:
                            continue
                        if not self._run_frame(processor, segment, frame) and segment.lag == most:
                            return
        except Exception as error:  # noqa: BLE001 - a thread that is lost must not go unnoticed
            self.stop(f"processor '{processor.name}': {error_line(error)}")

    def _run_frame(self, processor: Processor, segment: Segment, frame: int) -> bool:
        """Run a segment for a frame; return whether there was such a frame."""
        inputs = self._flow.begin(segment, frame, processor.name)
        return inputs is not None and self._run_segment(processor.name, segment, frame, inputs)

    def _run_segment(self, name: str, segment: Segment, frame: int, inputs: Arrays) -> bool:
        """Run a segment, which may begin, for a frame; return whether nothing went wrong."""
        start_s, begun_s = perf_counter(), thread_time()
        try:
            session = self._sessions[name, segment.id]
            arrays = self._views.run(session, segment, frame, inputs, self._options)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            where = f"segment '{segment.id}' on processor '{name}', frame {frame}"
            self._flow.fail(frame, f"{where}: {error_line(error)}")
            return False
        end_s, work_s = perf_counter(), thread_time() - begun_s
        self._done[name].append((segment.id, frame, start_s, end_s, work_s))
        self._flow.end(segment, frame, arrays)
        return True

    def _admit_frames(self, frames: Iterable[Frame], period_s: float) -> None:
        begin_s, index = perf_counter(), 0
        zeros = zero_states(self._folder)
        try:
            for frame in frames:
                arrays = check_frame(frame, index, self._folder, zeros)
                self._flow.admit(arrays, begin_s + index * period_s, self._views.load)
                index += 1
            self._flow.close()
        except Abandoned:
            return
        except RunError as error:
            self._flow.fail(index, str(error))
        except Exception as error:  # noqa: BLE001 - whatever the caller's frames raise
            self._flow.fail(index, f"frame {index} cannot be read: {error_line(error)}")
        finally:
            self._flow.feeding = False


def _stall_cause(flow: Flow, patience_s: float) -> str:
    """Say why nothing goes on: who does not answer, what runs too long, or who waits for what."""
    doing = sorted(flow.doing().items(), key=lambda each: each[1].since_s)
    if unanswered := flow.unanswered():
        return unanswered
    runs = [(processor, each) for processor, each in doing if not each.waits]
    if runs:
        processor, at = runs[0]
        for_s = perf_counter() - at.since_s
        return (
            f"segment '{at.segment}' on processor '{processor}', frame {at.frame}: does not end "
            f"(running for {for_s:.1f} s)"
        )
    waits = (
        f"'{processor}' waits {flow.missing(at.segment, at.frame)} (segment '{at.segment}', frame "
        f"{at.frame})"
        for processor, at in doing
    )
    return f"nothing has moved for {patience_s:.1f} s: {'; '.join(waits) or 'no thread is left'}"
