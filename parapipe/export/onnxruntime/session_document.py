"""A plan and its segments as the `plan.json` of an exported folder."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from parapipe.plan.mapped import mapped
from parapipe.plan.schema import Plan, Processor
from parapipe.plan.segments import Segment, segments
from parapipe.profiling.providers import CPU_PROVIDER, provider_of
from parapipe.runtime import document
from parapipe.runtime.document import SCHEMA, Channel, SessionPlan

WHOLE = "network.onnx"
_DESIGNATORS = {"cpu": "cpu", "gpu": "gpu", "npu": "npu"}
_OTHER_DESIGNATOR = "accelerator"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A segment with its id and its place in the order of its processor."""

    id: str
    position: int
    segment: Segment


def numbered_segments(plan: Plan) -> tuple[Numbered, ...]:
    """Return the segments of a plan in an order in which they can run one after the other.

    Of those that can run, the one that is predicted to start first in the first stage comes first.
    A segment that makes nothing for anybody is left out.
    """
    placements = mapped(plan).placements
    listed = [
        (position, segment)
        for mine in segments(plan, prompt=True).values()
        for position, segment in enumerate(each for each in mine if each.outputs)
    ]
    sorter: TopologicalSorter[int] = TopologicalSorter(_before(listed))
    sorter.prepare()
    ready: list[tuple[int, float, int]] = []
    found: list[Numbered] = []
    while sorter.is_active():
        for i in sorter.get_ready():
            first = placements[listed[i][1].operators[0]]
            heapq.heappush(ready, (first.lag, first.start_s, i))
        i = heapq.heappop(ready)[-1]
        position, segment = listed[i]
        found.append(Numbered(f"{len(found):02d}-{_plain(segment.processor)}", position, segment))
        sorter.done(i)
    return tuple(found)


def _before(listed: Sequence[tuple[int, Segment]]) -> dict[int, set[int]]:
    """Return what each waits for with a frame: who makes its inputs, and the one before it."""
    makers = {name: i for i, (_, segment) in enumerate(listed) for name in segment.outputs}
    last: dict[tuple[str, int], int] = {}
    before: dict[int, set[int]] = {}
    for i, (_, segment) in enumerate(listed):
        before[i] = {makers[name] for name in segment.inputs if name in makers}
        turn = segment.processor, segment.lag
        if turn in last:
            before[i].add(last[turn])
        last[turn] = i
    return before


def _plain(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name)


def session_plan(
    plan: Plan, numbered: Sequence[Numbered], configuration: str, files: Mapping[str, str]
) -> SessionPlan:
    """Return what the folder of a plan says of itself.

    Parameters
    ----------
    configuration
        Name of the device configuration of the whole network's file.
    files
        Digest of each file by its name.
    """
    channels = tuple(_channels(plan, numbered))
    named = {*plan.inputs, *plan.outputs, *(channel.tensor for channel in channels)}
    makers = _makers(numbered)
    return SessionPlan(
        schema=SCHEMA,
        model=document.Model(name=plan.model.name, sha256=plan.model.sha256),
        platform=plan.platform,
        processors=tuple(map(_processor, plan.processors)),
        inputs=plan.inputs,
        outputs=tuple(
            document.Result(tensor=name, segment=makers[name].id) for name in plan.outputs
        ),
        tensors={
            name: document.Tensor(
                dtype=tensor.dtype, shape=tensor.shape, size_bytes=tensor.size_bytes
            )
            for name, tensor in sorted(plan.tensors.items())
            if name in named
        },
        segments=tuple(_segments(plan, numbered)),
        channels=channels,
        predicted=document.Prediction(
            latency_s=plan.predicted.latency_s,
            period_s=plan.predicted.period_s,
            sustained_period_s=plan.predicted.sustained_period_s,
            input_s=plan.predicted.input_s,
            output_s=plan.predicted.output_s,
        ),
        whole=document.WholeModel(
            file=WHOLE, configuration=configuration, layer_assignment=_layer_assignment(plan)
        ),
        files=dict(sorted(files.items())),
    )


def substitute_of(processor: Processor) -> str:
    """Return why a processor's segments run on the CPU although it is none; empty otherwise."""
    provider = provider_of(processor)
    return "" if provider.name else provider.reason


def _processor(processor: Processor) -> document.Processor:
    return document.Processor(
        name=processor.name,
        kind=processor.kind,
        cores=processor.cores,
        threads=max(1, len(processor.cores)),
        provider=provider_of(processor).name or CPU_PROVIDER,
        substitute=substitute_of(processor) or None,
        frequency_hz=processor.operating_point.frequency_hz,
    )


def _segments(plan: Plan, numbered: Sequence[Numbered]) -> Iterator[document.Segment]:
    placements = mapped(plan).placements
    for each in numbered:
        at = [placements[operator] for operator in each.segment.operators]
        yield document.Segment(
            id=each.id,
            file=f"{each.id}.onnx",
            processor=each.segment.processor,
            stage=each.segment.stage,
            lag=each.segment.lag,
            position=each.position,
            inputs=each.segment.inputs,
            outputs=each.segment.outputs,
            operators=each.segment.operators,
            start_s=at[0].start_s,
            end_s=at[-1].end_s,
            time_s=sum(place.end_s - place.start_s for place in at),
        )


def _channels(plan: Plan, numbered: Sequence[Numbered]) -> Iterator[Channel]:
    """Yield a channel for each tensor and processor, in the order of their first readers."""
    makers = _makers(numbered)
    readers: dict[tuple[str, str], list[Numbered]] = {}
    for each in numbered:
        for name in each.segment.inputs:
            readers.setdefault((name, each.segment.processor), []).append(each)
    transfers = {(transfer.tensor, transfer.target): transfer for transfer in plan.transfers}
    for (name, processor), reading in readers.items():
        maker = makers.get(name)
        transfer = transfers.get((name, processor))
        span = max(each.segment.lag for each in reading) - (maker.segment.lag if maker else 0)
        yield Channel(
            tensor=name,
            kind="input" if maker is None else transfer.kind if transfer else "local",
            producer=maker.id if maker else None,
            processor=processor,
            consumers=tuple(each.id for each in reading),
            queue_depth=transfer.queue_depth if transfer else span + 1,
            time_s=transfer.time_s if transfer else 0.0,
        )


def _makers(numbered: Sequence[Numbered]) -> dict[str, Numbered]:
    return {name: each for each in numbered for name in each.segment.outputs}


def _layer_assignment(plan: Plan) -> str:
    """Return the value of ONNX Runtime's `session.layer_assignment_settings` for this plan."""
    names: dict[str, list[str]] = {}
    for processor in plan.processors:
        designator = _DESIGNATORS.get(processor.kind, _OTHER_DESIGNATOR)
        names.setdefault(designator, []).append(f"={processor.name}")
    return "; ".join(f"{designator}({', '.join(each)})" for designator, each in names.items())
