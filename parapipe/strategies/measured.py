"""What every segment takes on every processor of this machine, one at a time."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from statistics import median_low
from time import perf_counter

from parapipe.runtime.denormals import denormals_to_zero
from parapipe.runtime.document import Segment
from parapipe.runtime.folder import Folder, RunError
from parapipe.runtime.frames import Frame, checked
from parapipe.runtime.ranges import sources
from parapipe.runtime.sessions import Sessions, pin, reason, stopper
from parapipe.runtime.views import Views
from parapipe.strategies.work import Work


def measured(
    folder: Folder, sessions: Sessions, work: Work, frames: Iterable[Frame], patience_s: float
) -> dict[tuple[str, str], float]:
    """Run every segment on every processor; return the median seconds by processor and segment.

    Parameters
    ----------
    work
        That of the folder.
    patience_s
        What no segment takes.

    Raises
    ------
    RunError
        Names the segment that fails, or does not end.
    """
    in_order = sorted(range(len(folder.segments)), key=lambda i: work.depth[i])
    bench = _Bench(folder, sessions, [folder.segments[i] for i in in_order])
    for index, frame in enumerate(frames):
        thread = threading.Thread(target=bench.run, args=(index, frame), daemon=True)
        thread.start()
        steps = -1
        while thread.is_alive():
            if steps == bench.steps:
                bench.stop()
                thread.join(patience_s)
                raise RunError(f"{bench.doing}: does not end (running for {patience_s:.1f} s)")
            steps = bench.steps
            thread.join(patience_s)
        if bench.fault is not None:
            raise RunError(bench.fault)
    return {key: median_low(times_s) for key, times_s in bench.times_s.items()}


class _Bench:
    def __init__(self, folder: Folder, sessions: Sessions, segments: Iterable[Segment]) -> None:
        self._folder, self._sessions, self._segments = folder, sessions, tuple(segments)
        self._sources, self._views = sources(folder), Views(folder)
        self._options, self.stop = stopper()
        self.times_s: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.doing, self.steps = "", 0
        self.fault: str | None = None

    def run(self, index: int, frame: Frame) -> None:
        """Run a frame, segment after segment, each on all processors in turn."""
        try:
            made = dict(checked(frame, index, self._folder))
            with denormals_to_zero():
                for segment in self._segments:
                    for processor in self._folder.processors:
                        name = processor.name
                        self.doing = f"segment '{segment.id}' on processor '{name}', frame {index}"
                        self.steps += 1
                        pin(processor.cores)
                        inputs = {each: made[each] for each in self._sources[segment.id]}
                        session = self._sessions[name, segment.id]
                        begin_s = perf_counter()
                        found = self._views.run(session, segment, index, inputs, self._options)
                        self.times_s[name, segment.id].append(perf_counter() - begin_s)
                    made.update(zip(segment.outputs, found, strict=True))
        except RunError as error:
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            self.fault = f"{self.doing}: {reason(error)}"
