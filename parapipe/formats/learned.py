"""What the documents of runs say of a model's segments, checked against model and platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from parapipe.errors import ProfilingError
from parapipe.formats.compared_files import read_run
from parapipe.formats.run import RunDocument
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.divided import holding
from parapipe.platform.platform import Link, Platform
from parapipe.profiling.from_run import SegmentTime

RECEIVER = "receiver"
LEAST_SHARE = 0.5  # of a segment's time that its operators took, whatever the hand-overs should


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


def segments_of(
    run: RunDocument, graph: OperatorGraph, platform: Platform
) -> Iterator[SegmentTime]:
    """Yield what each segment took in a run; nothing of a simulation.

    A session brings the tensors of other processors into its own form, and those for others out of
    it. What the platform counts as work of hand-overs is none of the operators'.
    """
    divided = holding(platform, {task.resource for task in run.tasks})
    handed_s = _handed_s(run, graph, divided)
    for task in run.tasks:
        if run.machine is not None and task.own is not None and task.operators:
            own_s = task.own.time_s - sum(handed_s[each] for each in task.operators)
            yield SegmentTime(
                processor=task.resource,
                cores=run.machine.cores.get(task.resource, ()),
                operators=task.operators,
                predicted_s=task.predicted_operators_s,
                time_s=max(own_s, LEAST_SHARE * task.own.time_s),
                spread=task.own.spread,
                noisy=task.own.noisy,
            )


def _handed_s(run: RunDocument, graph: OperatorGraph, platform: Platform) -> Mapping[str, float]:
    """Return the seconds by operator that the bytes of hand-overs take, half of them at each end.

    Of links between CPUs and of those that occupy the receiver, that is: what others take is in no
    thread's time. What joins and cuts tensors in place runs nowhere: whoever reads its result reads
    what it is made of.
    """
    place = {name: platform.index(task.resource) for task in run.tasks for name in task.operators}
    found: dict[str, float] = defaultdict(float)
    for tensor, maker in graph.producer.items():
        made = graph.operators[maker].id
        if made not in place:
            continue
        readers: dict[int, tuple[str, int]] = {}
        for read, size_bytes in _reading(tensor, graph, place):
            readers.setdefault(place[read], (read, size_bytes))
        ends_s = {
            read: (link.time(size_bytes).value - link.time(0).value) / 2
            for p, (read, size_bytes) in readers.items()
            if p != place[made] and _is_work(link := platform.link_of[place[made], p], platform)
        }
        for read, end_s in ends_s.items():
            found[read] += end_s
        found[made] += max(ends_s.values(), default=0.0)
    return found


def _is_work(link: Link, platform: Platform) -> bool:
    ends = (platform.processors[platform.index(name)] for name in (link.sender, link.receiver))
    return link.occupies == RECEIVER or all(each.kind == "cpu" for each in ends)


def _reading(tensor: str, graph: OperatorGraph, ran: Container[str]) -> Iterator[tuple[str, int]]:
    """Yield the operators that read a tensor and ran, with the bytes of it that each one reads.

    Through joins and cuts that did not run: at most as much as the smallest tensor on the way.
    """
    size_bytes = graph.tensors[tensor].size_bytes
    for v in graph.consumers.get(tensor, ()):
        operator = graph.operators[v]
        if operator.id in ran:
            yield operator.id, size_bytes
            continue
        for result in operator.outputs:
            for read, behind_bytes in _reading(result, graph, ran):
                yield read, min(size_bytes, behind_bytes)


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
