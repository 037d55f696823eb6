"""A run as a Chrome trace."""

from __future__ import annotations

import json

import pytest

from parapipe.runtime.record import Arrow, Frame, Record, Span, chrome_trace, done_while_admitted

RECORD = Record(
    resources=("big", "gpu"),
    spans=(
        Span("big", "a", 0, 0.0, 0.5),
        Span("gpu", "b", 0, 0.75, 1.0),
        Span("big", "a", 1, 0.5, 1.0),
        Span("gpu", "b", 1, 1.25, 1.5),
    ),
    arrows=(Arrow("t", "big", "a", "gpu", "b"), Arrow("u", "big", "a", "gpu", "b")),
    frames=(Frame(0, 0.0, 1.0), Frame(1, 0.25, 1.5)),
)
EVENTS = chrome_trace(RECORD, "net on board")["traceEvents"]


def phase(letter):
    return [event for event in EVENTS if event["ph"] == letter]


def test_a_trace_is_a_json_document():
    document = chrome_trace(RECORD, "net on board")
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["displayTimeUnit"] == "ms"


def test_there_is_one_named_thread_for_each_resource():
    named = [(e["name"], e["tid"], e["args"].get("name")) for e in phase("M")]
    assert ("process_name", 0, "net on board") in named
    assert ("thread_name", 1, "big") in named
    assert ("thread_name", 2, "gpu") in named


def test_every_span_is_a_slice_in_microseconds_with_its_frame():
    slices = [(e["tid"], e["name"], e["args"]["frame"], e["ts"], e["dur"]) for e in phase("X")]
    assert slices == [
        (1, "a", 0, 0, 500_000),
        (2, "b", 0, 750_000, 250_000),
        (1, "a", 1, 500_000, 500_000),
        (2, "b", 1, 1_250_000, 250_000),
    ]


def test_every_tensor_of_every_frame_has_an_arrow_of_its_own():
    starts = {event["id"]: event for event in phase("s")}
    ends = {event["id"]: event for event in phase("f")}
    assert starts.keys() == ends.keys()
    assert len(starts) == 4
    for key, start in starts.items():
        assert isinstance(key, int)  # Perfetto reads texts as hexadecimal numbers
        assert (start["tid"], ends[key]["tid"]) == (1, 2)
        assert start["name"] == ends[key]["name"]
        assert ends[key]["bp"] == "e"


def test_an_arrow_stands_behind_the_slice_it_binds_to_and_at_its_start():
    for event in phase("s") + phase("f"):
        before = [e for e in EVENTS[: EVENTS.index(event)] if e["ph"] == "X"][-1]
        assert (before["tid"], before["ts"]) == (event["tid"], event["ts"])


@pytest.mark.parametrize(
    ("done_s", "counted"),
    [
        ((4, 6, 8, 8.5, 9), (4, 6, 8)),  # the last one comes in at 8
        ((4, 6, 8.1, 8.5, 9), (4, 6)),
        ((4, 9, 9.5, 9.6, 9.7), (4, 9, 9.5, 9.6, 9.7)),  # one alone shows no time between two
        ((9, 8, 6, 4, 8.5), (4, 6, 8)),
        ((4,), (4,)),
        ((), ()),
    ],
)
def test_what_comes_while_the_pipeline_empties_is_left_out(done_s, counted):
    frames = [Frame(i, 2.0 * i, at) for i, at in enumerate(done_s)]
    assert done_while_admitted(frames) == [*counted]
