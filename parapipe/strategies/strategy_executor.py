"""Runs frames through the segments of a folder as a strategy decides, on this machine.

As the executor does that follows the plan, with a session of every segment on every processor.
"""

from __future__ import annotations

from collections.abc import Iterable

from parapipe.runtime.denormals import denormals_to_zero
from parapipe.runtime.document import Processor
from parapipe.runtime.executor import REMEMBERED, Executor, Threads
from parapipe.runtime.flow import Flow
from parapipe.runtime.folder import Folder
from parapipe.runtime.frames import Frame
from parapipe.runtime.record import Record, as_decided
from parapipe.runtime.sessions import Sessions, open_sessions, pin, reason
from parapipe.runtime.used import Used
from parapipe.strategies.engine import Engine
from parapipe.strategies.folder_work import folder_work, with_room
from parapipe.strategies.measured import measured
from parapipe.strategies.strategy import Strategy
from parapipe.strategies.strategy_flow import StrategyFlow


class StrategyExecutor(Executor):
    """Sessions that are open, ready to run as a strategy decides.

    Parameters
    ----------
    strategy
        Makes the strategy of each run.
    name
        What messages call it.
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
        queue: int | None = None,
        patience_s: float | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        super().__init__(folder, queue=queue, patience_s=patience_s, remembered=remembered)
        self.folder = with_room(self.folder)
        self._strategy, self._name = strategy, name
        self._work_of_a_frame = folder_work(self.folder, self.queue)

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
        work = self._work_of_a_frame
        time_s = measured(self.folder, self._sessions, work, frames, self.patience_s)
        self._work_of_a_frame = folder_work(self.folder, self.queue, time_s)

    def _open(self) -> tuple[Sessions, tuple[Used, ...]]:
        return open_sessions(self.folder, everywhere=True)

    def _flow(self) -> Flow:
        engine = Engine(self._work_of_a_frame, self._strategy, self._name)
        return StrategyFlow(self.folder, self.queue, self.remembered, engine)

    def _threads(self, flow: Flow) -> Threads:
        assert isinstance(flow, StrategyFlow)
        return _Threads(self.folder, self._sessions, flow, self.remembered)


class _Threads(Threads):
    def __init__(
        self, folder: Folder, sessions: Sessions, flow: StrategyFlow, remembered: int
    ) -> None:
        super().__init__(folder, sessions, flow, remembered)
        self._chosen = flow

    def record(self) -> Record:
        """Return what was done; times from the start of the run."""
        return as_decided(super().record())

    def _work(self, processor: Processor) -> None:
        """Run what a processor is given, until nothing is left."""
        name = processor.name
        try:
            pin(processor.cores)
            with denormals_to_zero():
                while (given := self._chosen.take(name)) is not None:
                    if not self._do(name, *given):
                        self._chosen.give_up(name)
        except Exception as error:  # noqa: BLE001 - a thread that is lost must not go unnoticed
            self.stop(f"processor '{name}': {reason(error)}")
