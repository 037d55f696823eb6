"""Compiles the NPU segments of a plan, with samples of what goes into each, and checks them.

The segments are walked in their order, so that one model is in memory at a time. In the model's own
types, ONNX Runtime runs each on all samples, which gives the next ones their samples. A check also
runs the first sample through the compiler's simulator, segment after segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from parapipe.compilers.compile import compile_segment, simulate_segment
from parapipe.compilers.contract import CompiledSegment, CompileError, CompileJob, Precision
from parapipe.compilers.samples import write_arrays
from parapipe.errors import ExportError
from parapipe.export.segment_manifest import Manifest, Segment
from parapipe.files.mistakes import listed
from parapipe.files.progress import Progress, Tell, worker_count
from parapipe.plan.schema import Plan, Processor
from parapipe.targets.borders import Borders, FloatSegment
from parapipe.targets.rknn.agreement import Agreement, cosine
from parapipe.targets.rknn.chips import COMPILER, target_of

_CALIBRATION = "calibration"


@dataclass
class Compilation:
    """NPU segments being compiled.

    Parameters
    ----------
    plan
        What the segments are of.
    document
        All segments, their ONNX files in `folder`.
    npus
        Processors whose segments are compiled.
    precision
        Type of their arithmetic.
    check
        Run the first sample through the simulator.
    tell
        Told how many segments are compiled.
    """

    plan: Plan
    document: Manifest
    folder: Path
    npus: Mapping[str, Processor]
    precision: Precision
    check: bool = False
    tell: Tell | None = None
    agreements: list[Agreement] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self, samples: Iterable[Mapping[str, Any]]) -> dict[str, CompiledSegment]:
        """Compile; return what the compiler has made, by the segment's id.

        Parameters
        ----------
        samples
            Arrays by the names of the model's inputs; none are needed in float16 without a check.

        Raises
        ------
        ExportError
            With a line for each segment that does not compile, and what to do.
        CompileError
            If the compiler is not installed.
        """
        exact = Borders(self.folder / "exact")
        count = 0
        for count, arrays in enumerate(samples, 1):
            exact.write(count - 1, {each.name: arrays[each.name] for each in self.document.inputs})
        simulated = Borders(self.folder / "simulated")
        if self.check:
            simulated.write(0, exact.read(0, [each.name for each in self.document.inputs]))
        last_reader = self._last_readers()
        workers = worker_count(None, tasks=len(self.document.segments))
        with ThreadPoolExecutor(workers) as pool:
            jobs: dict[str, Future[CompiledSegment]] = {}
            for place, segment in enumerate(self.document.segments):
                job = self._job(segment)
                if count:
                    self._run_exact(segment, exact, count, job)
                if job is not None:
                    jobs[segment.id] = pool.submit(compile_segment, COMPILER, job)
                if self.check and not self.failures:
                    self._simulate(segment, job, exact, simulated)
                done = [name for name, last in last_reader.items() if last == place]
                exact.drop(count, done)
                simulated.drop(count, done)
            compiled = self._results(jobs)
        if self.failures:
            raise ExportError("\n".join(dict.fromkeys(self.failures)))
        return compiled

    def _results(self, jobs: Mapping[str, Future[CompiledSegment]]) -> dict[str, CompiledSegment]:
        compiled: dict[str, CompiledSegment] = {}
        begin_s = monotonic()
        for segment in self.document.segments:
            if segment.id not in jobs:
                continue
            try:
                compiled[segment.id] = jobs[segment.id].result()
            except CompileError as error:
                if error.cause == "missing":
                    raise
                self._fail(segment, error)
            if self.tell is not None:
                done = len(compiled)
                self.tell(Progress(done, len(jobs), 0.0, monotonic() - begin_s, phase="compiling"))
        return compiled

    def _job(self, segment: Segment) -> CompileJob | None:
        """Return what is compiled of a segment; None if ONNX Runtime runs it."""
        if segment.processor not in self.npus:
            return None
        calibration = self.folder / _CALIBRATION / segment.id
        if self.precision == "int8":
            calibration.mkdir(parents=True)
        return CompileJob(
            model=self.folder / segment.file,
            target=target_of(self.npus[segment.processor]),
            precision=self.precision,
            calibration=calibration if self.precision == "int8" else None,
        )

    def _run_exact(
        self, segment: Segment, exact: Borders, count: int, job: CompileJob | None
    ) -> None:
        """Run a segment on all samples; keep what goes in for the compiler, and what comes out."""
        model = FloatSegment(self.folder / segment.file, [each.name for each in segment.outputs])
        for sample in range(count):
            inputs = exact.read(sample, [each.name for each in segment.inputs])
            if job is not None and job.calibration is not None:
                write_arrays(job.calibration / f"{sample:05d}.npz", inputs)
            exact.write(sample, model.run(inputs))

    def _simulate(
        self, segment: Segment, job: CompileJob | None, exact: Borders, simulated: Borders
    ) -> None:
        """Run a segment on what those before it have made, and compare."""
        read = [each.name for each in segment.inputs]
        inputs = simulated.read(0, read)
        try:
            if job is None:
                names = [each.name for each in segment.outputs]
                outputs = FloatSegment(self.folder / segment.file, names).run(inputs)
            else:
                outputs = simulate_segment(COMPILER, job, inputs)
        except CompileError as error:
            if error.cause == "missing":
                raise
            self._fail(segment, error)
            return
        simulated.write(0, outputs)
        before = [cosine(exact.read(0, [name])[name], inputs[name]) for name in read]
        results = {each.name for each in self.document.outputs}
        for name, array in outputs.items():
            self.agreements.append(
                Agreement(
                    tensor=name,
                    segment=segment.id,
                    processor=segment.processor,
                    cosine=cosine(exact.read(0, [name])[name], array),
                    of_inputs=min(before, default=1.0),
                    is_output=name in results,
                )
            )

    def _fail(self, segment: Segment, error: CompileError) -> None:
        """Keep why a segment does not compile, and what to do, in a line."""
        own = set(segment.operators)
        names = [v for each in self.plan.operators if each.id in own for v in each.members]
        refused = {each.node for each in error.refused}
        stuck = [name for name in names if name in refused] or names
        cpus = (each.name for each in self.plan.processors if each.kind == "cpu")
        self.failures.append(
            f"segment {segment.id} ({listed(stuck)}): {error.message}; map again with `--pin "
            f"'{stuck[0]}={next(cpus, 'CPU')}'` and so on for what the NPU does not take, or with "
            f"`--exclude {segment.processor}`"
        )

    def _last_readers(self) -> dict[str, int]:
        """Return the place of the last segment that makes or reads each tensor."""
        return {
            each.name: place
            for place, segment in enumerate(self.document.segments)
            for each in (*segment.outputs, *segment.inputs)
        }
