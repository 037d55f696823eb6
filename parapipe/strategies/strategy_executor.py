"""Runs frames through the segments of a folder as a strategy decides, on this machine.

As the executor does that follows the plan, with a session of every segment on every processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from time import perf_counter, thread_time
from types import MappingProxyType
from typing import Any

from parapipe.runtime.document import Processor
from parapipe.runtime.executor import REMEMBERED, Executor, Threads
from parapipe.runtime.flow import Flow
from parapipe.runtime.folder import Folder
from parapipe.runtime.frames import Frame
from parapipe.runtime.in_step import peak_buffered_bytes
from parapipe.runtime.machine import denormals_to_zero
from parapipe.runtime.record import Record, as_decided
from parapipe.runtime.sessions import ProviderUse, Sessions, error_line, open_sessions, pin_thread
from parapipe.runtime.views import run_into
from parapipe.strategies.engine import Engine
from parapipe.strategies.failures import call_with_timeout
from parapipe.strategies.folder_work import Slices, Times, folder_work, measure_segments, with_room
from parapipe.strategies.joined import JoinedFolder, Unprefixed
from parapipe.strategies.strategy import Strategy
from parapipe.strategies.strategy_flow import Assignment, Outputs, Piece, StrategyFlow
from parapipe.strategies.work import Replace

NOT_SPLIT: Mapping[int, Folder] = MappingProxyType({})


class StrategyExecutor(Executor):
    """Sessions that are open, ready to run as a strategy decides.

    Parameters
    ----------
    strategy
        Makes the strategy of each run.
    name
        What messages call it.
    batch, sized
        What a frame is, and the folders of the same plan for the sizes of batches that it may be
        split into.
    queue, patience_s, remembered
        As of `Executor`.

    Raises
    ------
    RunError
        If cores are missing, or ONNX Runtime does not take a segment.
    """

    def __init__(
        self,
        folder: Folder,
        strategy: type[Strategy],
        name: str,
        *,
        batch: int = 1,
        sized: Mapping[int, Folder] = NOT_SPLIT,
        queue: int | None = None,
        patience_s: float | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        self._batch, self._sized = batch, sized
        self._sized_sessions: dict[int, Sessions] = {}
        super().__init__(folder, queue=queue, patience_s=patience_s, remembered=remembered)
        self.folder = with_room(self.folder)
        self._strategy, self._name = strategy, name
        self._slices = Slices(self.folder, batch, sized)
        self._work_of_a_frame = folder_work(
            self.folder, self.queue, batch=batch, sized_s=dict.fromkeys(sized)
        )

    def measure(self, frames: Iterable[Frame]) -> None:
        """Run all segments on all processors; what they take is what the strategy then predicts.

        Parameters
        ----------
        frames
            If there are none, every processor takes what the plan predicts for its own one.

        Raises
        ------
        RunError
            Names the segment that fails, or does not end.
        """
        work, samples = self._work_of_a_frame, list(frames)

        def times_s(size: int, folder: Folder, sessions: Sessions) -> Times:
            some = (self._slices.frame(frame, size) for frame in samples)
            return measure_segments(folder, sessions, work, some, self.patience_s)

        self._work_of_a_frame = folder_work(
            self.folder,
            self.queue,
            times_s(self._batch, self.folder, self._sessions),
            batch=self._batch,
            sized_s={
                size: times_s(size, folder, self._sized_sessions[size])
                for size, folder in self._sized.items()
            },
        )

    def _open_sessions(self) -> tuple[Sessions, tuple[ProviderUse, ...]]:
        for size, folder in self._sized.items():
            self._sized_sessions[size], _ = open_sessions(folder, everywhere=True)
        sessions, used = open_sessions(self.folder, everywhere=True)
        if isinstance(self.folder, JoinedFolder):
            sessions = {key: Unprefixed(one, key[1]) for key, one in sessions.items()}
        return sessions, used

    def _make_flow(self) -> Flow:
        work, strategy = self._work_of_a_frame, self._strategy
        engine = call_with_timeout(lambda: Engine(work, strategy, self._name), self.patience_s)
        return StrategyFlow(self.folder, self.queue, self.remembered, engine, self._slices)

    def _make_threads(self, flow: Flow) -> Threads:
        assert isinstance(flow, StrategyFlow)
        sized = {self._batch: self._sessions, **self._sized_sessions}
        return _Threads(self.folder, sized, flow, self.remembered)


class _Threads(Threads):
    def __init__(
        self, folder: Folder, sized: Mapping[int, Sessions], flow: StrategyFlow, remembered: int
    ) -> None:
        super().__init__(folder, sized[flow.batch], flow, remembered * flow.batch)
        self._sized, self._strategy_flow = sized, flow
        viewed = {name for each in folder.views for name in (each.tensor, each.whole)}
        self._plain = [viewed.isdisjoint((*s.inputs, *s.outputs)) for s in folder.segments]

    def record(self) -> Record:
        """Return what was done; times from the start of the run."""
        record = as_decided(super().record())
        return replace(record, peak_tensor_bytes=peak_buffered_bytes(self._folder, record.spans))

    def _run_processor(self, processor: Processor) -> None:
        """Run what a processor is given, until nothing is left."""
        flow, number = self._strategy_flow, self._folder.processors.index(processor)
        outputs: Outputs | None = None
        try:
            pin_thread(processor.cores)
            with denormals_to_zero():
                while (assignment := flow.turn(number, outputs)) is not None:
                    outputs = self._run_assignment(processor.name, assignment)
                    if outputs is None:
                        flow.give_up(number)
        except Exception as error:  # noqa: BLE001 - a thread that is lost must not go unnoticed
            self.stop(f"processor '{processor.name}': {error_line(error)}")

    def _run_assignment(self, name: str, assignment: Assignment) -> Outputs | None:
        """Run what a processor is given; return what it makes, None if something goes wrong."""
        inputs, outputs = assignment.inputs, []
        if assignment.replace is not None:
            return self._call_replacement(name, assignment, assignment.replace)
        for piece in assignment.pieces:
            segment = self._folder.segments[piece.task]
            start_s, begun_s = perf_counter(), thread_time()
            try:
                session = self._sized[piece.size][name, segment.id]
                if self._plain[piece.task] and piece.into is None and len(assignment.pieces) == 1:
                    values = session.run(segment.outputs, inputs, self._options)
                elif piece.into is None:
                    values = self._views.run(session, segment, piece.frame, inputs, self._options)
                else:
                    read = {each: inputs[each] for each in segment.inputs}
                    values = run_into(session, segment.outputs, read, piece.into, self._options)
            except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
                self._fail(name, assignment, error)
                return None
            end_s, work_s = perf_counter(), thread_time() - begun_s
            self._done[name].append((segment.id, piece.frame, start_s, end_s, work_s))
            arrays = dict(zip(segment.outputs, values, strict=True))
            outputs.append((piece, arrays))
            if len(assignment.pieces) > 1:
                inputs.update(arrays)
        return outputs

    def _call_replacement(self, name: str, assignment: Assignment, call: Replace) -> Outputs | None:
        """Call what replaces pieces; the first of them gets all of the time in the record."""
        start_s, begun_s = perf_counter(), thread_time()
        segments = [self._folder.segments[piece.task] for piece in assignment.pieces]
        try:
            results = call(assignment.inputs)
            if not isinstance(results, Mapping):
                raise TypeError(f"replace returns {results!r}, and not arrays by tensors' names")
            lacking = self._strategy_flow.needed_outputs(assignment.pieces) - results.keys()
            if lacking:
                raise ValueError(f"replace does not return {', '.join(sorted(lacking))}")
        except Exception as error:  # noqa: BLE001 - a strategy's own function
            self._fail(name, assignment, error)
            return None
        end_s, work_s = perf_counter(), thread_time() - begun_s
        for segment, piece in zip(segments, assignment.pieces, strict=True):
            self._done[name].append((segment.id, piece.frame, start_s, end_s, work_s))
            start_s, work_s = end_s, 0.0
        return [
            (
                piece,
                {
                    each: _array_in_place(each, piece, results)
                    for each in segment.outputs
                    if each in results
                },
            )
            for segment, piece in zip(segments, assignment.pieces, strict=True)
        ]

    def _fail(self, name: str, assignment: Assignment, error: Exception) -> None:
        first = assignment.pieces[0]
        segment = self._folder.segments[first.task].id
        where = f"segment '{segment}' on processor '{name}', frame {first.frame}"
        self._flow.fail(first.frame, f"{where}: {error_line(error)}")


def _array_in_place(name: str, piece: Piece, results: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any dtype
    """Return an array where it belongs: of a micro-batch, in the slice of the frame's buffer."""
    if piece.into is None or name not in piece.into:
        return results[name]
    piece.into[name][...] = results[name]
    return piece.into[name]
