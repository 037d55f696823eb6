"""What `plan.json` says of segments and channels."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from parapipe.export.onnxruntime.boundary import Handovers
from parapipe.export.onnxruntime.session_document import numbered_segments, session_plan
from parapipe.plan.build import build_plan
from parapipe.plan.segments import segments
from parapipe.runtime.document import SessionPlan
from parapipe.runtime.fields import read
from tests.cases.plan_cases import drawn_plan, random_case

SEEDS = st.integers(0, 10**9)


def document_of(plan):
    return session_plan(
        plan, numbered_segments(plan), Handovers.of(plan), {"network.onnx": "0" * 64}
    )


def test_the_document_of_the_drawn_plan() -> None:
    found = document_of(drawn_plan())
    assert [(s.id, s.processor, s.position, s.operators) for s in found.segments] == [
        ("00-big", "big", 0, ("a",)),
        ("01-big", "big", 1, ("b",)),
        ("02-little", "little", 0, ("c",)),
        ("03-gpu", "gpu", 0, ("d",)),
        ("04-gpu", "gpu", 1, ("e",)),
    ]
    rows = {
        (c.tensor, c.kind, c.producer, c.processor, c.consumers, c.queue_depth, c.time_s)
        for c in found.channels
    }
    assert rows == {
        ("x", "input", None, "big", ("00-big",), 1, 0.0),
        ("a", "local", "00-big", "big", ("01-big",), 1, 0.0),
        ("a", "within-stage", "00-big", "little", ("02-little",), 2, 0.25),
        ("b", "stage", "01-big", "gpu", ("03-gpu",), 2, 0.25),
        ("c", "stage", "02-little", "gpu", ("03-gpu",), 2, 0.25),
        ("d", "local", "03-gpu", "gpu", ("04-gpu",), 1, 0.0),
        ("a", "stage", "00-big", "gpu", ("04-gpu",), 2, 0.25),
    }
    assert [(r.tensor, r.segment) for r in found.outputs] == [("e", "04-gpu")]
    (gpu,) = [p for p in found.processors if p.name == "gpu"]
    assert (gpu.provider, gpu.threads) == ("CPUExecutionProvider", 1)
    assert gpu.substitute == "its backend backend-gpu is none of ONNX Runtime's"
    assert found.whole.layer_assignment == "cpu(=big, =little); gpu(=gpu)"


@given(seed=SEEDS)
def test_segments_stand_in_an_order_in_which_they_can_run(seed) -> None:
    plan = build_plan(*random_case(seed))
    found = document_of(plan)
    there, next_of = set(plan.inputs), dict.fromkeys((p.name for p in plan.processors), 0)
    for segment in found.segments:
        assert there.issuperset(segment.inputs)
        assert segment.position == next_of[segment.processor]
        next_of[segment.processor] += 1
        there.update(segment.outputs)
    assert there.issuperset(plan.outputs)
    listed = [v for segment in found.segments for v in segment.operators]
    made = [segment for mine in segments(plan, prompt=True).values() for segment in mine]
    assert sorted(listed) == sorted(
        v for segment in made if segment.outputs for v in segment.operators
    )


@given(seed=SEEDS)
def test_channels_bring_every_input_and_are_those_of_the_plan(seed) -> None:
    plan = build_plan(*random_case(seed))
    found = document_of(plan)
    at = {segment.id: segment for segment in found.segments}
    brought = sorted((c.tensor, id_) for c in found.channels for id_ in c.consumers)
    assert brought == sorted((name, s.id) for s in found.segments for name in s.inputs)
    moved = {
        (c.tensor, at[c.producer].processor, c.processor): (c.kind, c.queue_depth, c.time_s)
        for c in found.channels
        if c.kind in ("stage", "within-stage")
    }
    planned = {
        (t.tensor, t.source, t.target): (t.kind, t.queue_depth, t.time_s) for t in plan.transfers
    }
    # What goes to an operator that nobody needs is not brought to it.
    assert moved.items() <= planned.items()
    if all(segment.outputs for mine in segments(plan, prompt=True).values() for segment in mine):
        assert moved == planned
    for channel in found.channels:
        assert {at[id_].processor for id_ in channel.consumers} == {channel.processor}
        assert (
            (channel.producer is None)
            == (channel.kind == "input")
            == (channel.tensor in plan.inputs)
        )
        if channel.kind == "local":
            assert at[channel.producer].processor == channel.processor


@given(seed=SEEDS)
def test_the_document_is_the_same_once_written_and_read(seed) -> None:
    found = document_of(build_plan(*random_case(seed)))
    written = json.loads(json.dumps(asdict(found)))
    assert read(SessionPlan, written) == found
    assert written["schema"] == "parapipe/onnxruntime/1"
