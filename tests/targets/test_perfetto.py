"""A trace of the predicted schedule."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import ExportError
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.targets.perfetto import export_plan, predicted_record
from tests.cases.plan_cases import drawn_plan, random_case
from tests.cases.plan_changes import transfer

PLAN = drawn_plan()


def test_every_stage_of_a_frame_begins_behind_the_one_before_and_frames_a_period_apart():
    spans = {(span.name, span.frame): span for span in predicted_record(PLAN).spans}
    # Stage 0 takes 3 s, stage 1 2.25 s: d starts 0.25 s into it.
    assert (spans["d", 0].start_s, spans["d", 0].end_s) == (3.25, 4.25)
    assert (spans["c", 2].start_s, spans["c", 2].end_s) == (7.25, 8.25)
    assert {frame for _, frame in spans} == set(range(6))


@given(seed=st.integers(0, 10**9))
def test_a_frame_takes_the_predicted_latency_and_resources_do_one_thing_at_a_time(seed):
    plan = build_plan(*random_case(seed))
    record = predicted_record(plan)
    end_s = plan.predicted.latency_s
    assert record.frames[0].done_s <= end_s + 1e-9
    assert all(span.end_s <= end_s + 1e-9 for span in record.spans if span.frame == 0)
    for resource in record.resources:
        # What takes no time may come before or behind what starts with it, by rounding.
        mine = [s for s in record.spans if s.resource == resource and s.end_s > s.start_s]
        assert all(a.end_s <= b.start_s + 1e-9 for a, b in pairwise(mine))
    known = {(span.resource, span.name) for span in record.spans}
    for arrow in record.arrows:
        assert {(arrow.source, arrow.producer), (arrow.target, arrow.consumer)} <= known


def test_transfers_that_keep_something_busy_have_a_lane_beside_it():
    document = copy.deepcopy(json.loads(PLAN.to_bytes()))
    transfer(document, "b", "gpu").update(occupies="big", start_s=0.0, end_s=0.25)
    record = predicted_record(Plan.model_validate_json(json.dumps(document)))
    assert record.resources == ("big", "little", "gpu", "big, transfers to stage 1")
    (first,) = [span for span in record.spans if span.name == "b → gpu" and span.frame == 0]
    assert (first.start_s, first.end_s) == (3.0, 3.25)
    through = [(a.producer, a.consumer) for a in record.arrows if a.tensor == "b"]
    assert through == [("b", "b → gpu"), ("b → gpu", "d")]


def test_the_trace_is_written_as_json(tmp_path):
    file = tmp_path / "trace.json"
    done = export_plan(PLAN, file)
    events = json.loads(file.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 6 * len(PLAN.operators)
    assert (done.files, done.size_bytes) == ((file,), file.stat().st_size)
    with pytest.raises(ExportError, match="name it"):
        export_plan(PLAN, None)
