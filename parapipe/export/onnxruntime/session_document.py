"""A plan and its segments as the `plan.json` of an exported folder."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from graphlib import TopologicalSorter

from parapipe.export.onnxruntime.boundary import Handovers
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan, Processor
from parapipe.plan.segments import NO_PIECES, Pieces, Segment, segments
from parapipe.profiling.providers import CPU_PROVIDER, choice_of
from parapipe.runtime import document
from parapipe.runtime.document import SCHEMA, Channel, SessionPlan, View

WHOLE = "network.onnx"
_DESIGNATORS = ("cpu", "gpu", "npu")


def numbered_segments(
    plan: Plan, *, single: bool = False, pieces: Pieces = NO_PIECES
) -> tuple[document.Segment, ...]:
    """Return the segments of a plan in an order in which they can run one after the other.

    Of those that can run, the one that is predicted to start first in the first stage comes first.
    A segment that makes nothing for anybody is left out.

    Parameters
    ----------
    single, pieces
        As of `segments`.
    """
    placements = mapping_view(plan).placements
    listed = [
        (position, segment)
        for mine in segments(plan, prompt=True, single=single, pieces=pieces).values()
        for position, segment in enumerate(each for each in mine if each.outputs)
    ]
    sorter: TopologicalSorter[int] = TopologicalSorter(_predecessors([each for _, each in listed]))
    sorter.prepare()
    ready: list[tuple[int, float, int]] = []
    numbered: list[document.Segment] = []
    while sorter.is_active():
        for i in sorter.get_ready():
            first = placements[listed[i][1].operators[0]]
            heapq.heappush(ready, (first.lag, first.start_s, i))
        i = heapq.heappop(ready)[-1]
        position, segment = listed[i]
        at = [placements[operator] for operator in segment.operators]
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in segment.processor)
        name = f"{len(numbered):02d}-{plain}"
        numbered.append(
            document.Segment(
                id=name,
                file=f"{name}.onnx",
                processor=segment.processor,
                stage=segment.stage,
                lag=segment.lag,
                position=position,
                inputs=segment.inputs,
                outputs=segment.outputs,
                operators=segment.operators,
                start_s=at[0].start_s,
                end_s=at[-1].end_s,
                time_s=sum(each.end_s - each.start_s for each in at),
            )
        )
        sorter.done(i)
    return tuple(numbered)


def _predecessors(listed: Sequence[Segment]) -> dict[int, set[int]]:
    """Return what each waits for with a frame: who makes its inputs, and the one before it."""
    makers = {name: i for i, segment in enumerate(listed) for name in segment.outputs}
    last: dict[tuple[str, int], int] = {}
    before: dict[int, set[int]] = {}
    for i, segment in enumerate(listed):
        before[i] = {makers[name] for name in segment.inputs if name in makers}
        turn = segment.processor, segment.lag
        if turn in last:
            before[i].add(last[turn])
        last[turn] = i
    return before


def session_plan(
    plan: Plan,
    listed: Sequence[document.Segment],
    handovers: Handovers,
    files: Mapping[str, str],
    *,
    views: Sequence[View] = (),
) -> SessionPlan:
    """Return what the folder of a plan says of itself.

    Parameters
    ----------
    listed
        Segments that read what others make.
    handovers
        What they hand to each other.
    files
        Digest of each file by its name.
    views
        Ranges of tensors.
    """
    channels = tuple(_channels(plan, listed, handovers))
    turns = {name: names for names in mapping_view(plan).replicas.values() for name in names}
    ranges = (name for each in views for name in (each.tensor, each.whole))
    crossing = (channel.tensor for channel in channels)
    named = sorted({*plan.inputs, *plan.outputs, *crossing, *ranges})
    makers = {name: each.id for each in listed for name in each.outputs}
    return SessionPlan(
        schema=SCHEMA,
        model=document.Model(name=plan.model.name, sha256=plan.model.sha256),
        platform=plan.platform,
        processors=tuple(_describe(each, turns.get(each.name, ())) for each in plan.processors),
        inputs=plan.inputs,
        outputs=tuple(document.Result(name, makers[name]) for name in plan.outputs),
        tensors={
            name: document.Tensor(tensor.dtype, tensor.shape, tensor.size_bytes)
            for name in named
            for tensor in [handovers.tensor(name)]
        },
        segments=tuple(listed),
        channels=channels,
        predicted=document.Prediction(
            **plan.predicted.model_dump(include={each.name for each in fields(document.Prediction)})
        ),
        whole=document.WholeModel(
            file=WHOLE, configuration=plan.platform, layer_assignment=_layer_assignment(plan)
        ),
        files=dict(sorted(files.items())),
        views=tuple(views),
        states=tuple(
            document.State(each.input, each.output, each.kind) for each in plan.states or ()
        ),
        sequences=plan.sequences or 1,
    )


def _describe(processor: Processor, turns: tuple[str, ...]) -> document.Processor:
    chosen = choice_of(processor.kind, processor.backend, processor.cores, processor.options)
    return document.Processor(
        name=processor.name,
        kind=processor.kind,
        cores=processor.cores,
        threads=processor.threads,
        provider=chosen.provider or CPU_PROVIDER,
        options=chosen.options,
        threads_option=chosen.threads_option,
        substitute=None if chosen.provider else chosen.obstacle,
        frequency_hz=processor.operating_point.frequency_hz,
        turns=turns,
    )


def _channels(
    plan: Plan, listed: Sequence[document.Segment], handovers: Handovers
) -> Iterator[Channel]:
    """Yield a channel for each tensor and processor, in the order of their first readers."""
    makers = {name: each for each in listed for name in each.outputs}
    readers: dict[tuple[str, str], list[document.Segment]] = {}
    for each in listed:
        for name in each.inputs:
            readers.setdefault((name, each.processor), []).append(each)
    transfers = {
        (handovers.moved(transfer), transfer.target): transfer for transfer in plan.transfers
    }
    for (name, processor), reading in readers.items():
        maker = makers.get(name)
        transfer = transfers.get((name, processor))
        in_order = sorted(reading, key=lambda each: (each.lag, each.position))
        lag_distance = in_order[-1].lag - (maker.lag if maker else 0)
        yield Channel(
            tensor=name,
            kind="input" if maker is None else transfer.kind if transfer else "local",
            producer=maker.id if maker else None,
            processor=processor,
            consumers=tuple(each.id for each in in_order),
            queue_depth=transfer.queue_depth if transfer else lag_distance + 1,
            time_s=transfer.time_s if transfer else 0.0,
        )


def _layer_assignment(plan: Plan) -> str:
    """Return the value of ONNX Runtime's `session.layer_assignment_settings` for this plan."""
    names: dict[str, list[str]] = {}
    for processor in plan.processors:
        designator = processor.kind if processor.kind in _DESIGNATORS else "accelerator"
        names.setdefault(designator, []).append(f"={processor.name}")
    return "; ".join(f"{designator}({', '.join(each)})" for designator, each in names.items())
