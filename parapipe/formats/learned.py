"""What the documents of runs say of a model's segments, checked against model and platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from parapipe.errors import ProfilingError
from parapipe.formats.compared_files import read_run
from parapipe.formats.run import RunDocument
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.platform import Platform
from parapipe.profiling.from_run import SegmentTime


def runs_in(
    paths: Sequence[Path], graph: OperatorGraph, platform: Platform
) -> tuple[RunDocument, ...]:
    """Return runs of a model on a platform.

    Raises
    ------
    ComparisonError
        If a file is no document of a run.
    ProfilingError
        If one is a simulation, or of another model or platform; all are told.
    """
    runs = {path: read_run(path) for path in paths}
    mistakes = [
        f"'{path}' {why}" for path, run in runs.items() if (why := strange(run, graph, platform))
    ]
    if mistakes:
        raise ProfilingError(
            f"nothing is learned: {'; '.join(mistakes)}; give what `parapipe run --json` printed "
            "of plans of this model and platform"
        )
    return tuple(runs.values())


def segments_of(run: RunDocument) -> Iterator[SegmentTime]:
    """Yield what each segment took in a run; nothing of a simulation."""
    for task in run.tasks:
        if run.machine is not None and task.own is not None and task.operators:
            yield SegmentTime(
                processor=task.resource,
                cores=run.machine.cores.get(task.resource, ()),
                operators=task.operators,
                predicted_s=task.predicted_operators_s,
                time_s=task.own.time_s,
                spread=task.own.spread,
                noisy=task.own.noisy,
                frames=run.frames - run.warm_up,
            )


def strange(run: RunDocument, graph: OperatorGraph, platform: Platform) -> str:
    """Say why nothing can be learned from a run; empty if it can."""
    if run.machine is None:
        return "is a simulation"
    if run.model_sha256 != graph.source.sha256:
        return f"is a run of another model, '{run.model}'"
    if run.platform != platform.name:
        return f"ran a plan for platform '{run.platform}', not for '{platform.name}'"
    for each in run.providers or ():
        if each.substitute:
            return f"ran '{each.processor}' by {each.provider}, since {each.substitute}"
    return ""
