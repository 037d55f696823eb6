"""A plan and its segments as the `plan.json` of an exported folder."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.plan.places import Place, every_place
from parapipe.plan.schema import Plan, Processor
from parapipe.plan.segments import Segment, segments
from parapipe.plan.session_plan import (
    SCHEMA,
    Channel,
    Result,
    SessionModel,
    SessionPlan,
    SessionPrediction,
    SessionProcessor,
    SessionSegment,
    SessionTensor,
    WholeModel,
)
from parapipe.profiling.providers import CPU_PROVIDER, provider_of

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
    places = {place.operator: place for place in every_place(plan)}
    listed = [
        (position, segment)
        for mine in segments(plan, prompt=True).values()
        for position, segment in enumerate(each for each in mine if each.outputs)
    ]
    makers = {name: i for i, (_, segment) in enumerate(listed) for name in segment.outputs}
    missing = [_before(i, listed, makers) for i in range(len(listed))]
    followers: list[list[int]] = [[] for _ in listed]
    for i, before in enumerate(missing):
        for other in before:
            followers[other].append(i)
    ready = [(*_turn(listed[i][1], places), i) for i, before in enumerate(missing) if not before]
    heapq.heapify(ready)
    found: list[Numbered] = []
    while ready:
        i = heapq.heappop(ready)[-1]
        position, segment = listed[i]
        found.append(Numbered(f"{len(found):02d}-{_plain(segment.processor)}", position, segment))
        for follower in followers[i]:
            missing[follower].discard(i)
            if not missing[follower]:
                heapq.heappush(ready, (*_turn(listed[follower][1], places), follower))
    assert len(found) == len(listed)
    return tuple(found)


def _before(i: int, listed: Sequence[tuple[int, Segment]], makers: Mapping[str, int]) -> set[int]:
    """Return what a segment waits for: who makes its inputs, and the one before it."""
    position, segment = listed[i]
    before = {makers[name] for name in segment.inputs if name in makers}
    return before | ({i - 1} if position else set())


def _turn(segment: Segment, places: Mapping[str, Place]) -> tuple[int, float]:
    return segment.lag, places[segment.operators[0]].start_s


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
        model=SessionModel(name=plan.model.name, sha256=plan.model.sha256),
        platform=plan.platform,
        processors=tuple(map(_processor, plan.processors)),
        inputs=plan.inputs,
        outputs=tuple(Result(tensor=name, segment=makers[name].id) for name in plan.outputs),
        tensors={
            name: SessionTensor(
                dtype=tensor.dtype, shape=tensor.shape, size_bytes=tensor.size_bytes
            )
            for name, tensor in plan.tensors.items()
            if name in named
        },
        segments=tuple(_segments(plan, numbered)),
        channels=channels,
        predicted=SessionPrediction(
            latency_s=plan.predicted.latency_s,
            period_s=plan.predicted.period_s,
            sustained_period_s=plan.predicted.sustained_period_s,
            input_s=plan.predicted.input_s,
            output_s=plan.predicted.output_s,
        ),
        whole=WholeModel(
            file=WHOLE, configuration=configuration, layer_assignment=_layer_assignment(plan)
        ),
        files=files,
    )


def substitute_of(processor: Processor) -> str:
    """Return why a processor's segments run on the CPU although it is none; empty otherwise."""
    provider = provider_of(processor)
    return "" if provider.name else provider.reason


def _processor(processor: Processor) -> SessionProcessor:
    return SessionProcessor(
        name=processor.name,
        kind=processor.kind,
        cores=processor.cores,
        threads=max(1, len(processor.cores)),
        provider=provider_of(processor).name or CPU_PROVIDER,
        substitute=substitute_of(processor) or None,
        frequency_hz=processor.operating_point.frequency_hz,
    )


def _segments(plan: Plan, numbered: Sequence[Numbered]) -> Iterator[SessionSegment]:
    places = {place.operator: place for place in every_place(plan)}
    for each in numbered:
        at = [places[operator] for operator in each.segment.operators]
        yield SessionSegment(
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
