"""What `run.py --json` prints is compared with the predictions in it, where they compare."""

import json

import pytest

import parapipe
from parapipe.errors import ComparisonError

RUN = {
    "schema": "parapipe/board-run/1",
    "model": "net.onnx",
    "platform": "board",
    "stages": [["npu0", "npu1"], ["big"]],
    "frames": 50,
    "latency_s": {"predicted": 0.02, "measured": 0.03},
    "period_s": {"predicted": 0.01, "measured": 0.01},
    "utilisation": {},
    "segments": [{"name": "00-npu0", "predicted_s": 0.01, "measured_s": 0.012}],
    "pace_s": 0.01,
}


def metrics(tmp_path, **changes):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**RUN, **changes}))
    return {each.metric: (each.predicted, each.measured) for each in parapipe.compare(path).pairs}


def test_latency_period_and_segments_stand_beside_their_predictions(tmp_path):
    assert metrics(tmp_path) == {
        "latency": (0.02, 0.03),
        "period": (0.01, 0.01),
        "work of a segment": (0.01, 0.012),
    }


@pytest.mark.parametrize("changes", [{"pace_s": None}, {"pace_s": 0.0099}])
def test_latency_of_frames_that_queue_is_left_out(tmp_path, changes):
    assert "latency" not in metrics(tmp_path, **changes)


def test_the_period_of_frames_that_come_slowly_is_left_out(tmp_path):
    slow = {"predicted": 0.01, "measured": 0.02}
    assert "period" not in metrics(tmp_path, pace_s=0.02, period_s=slow)


def test_nodes_that_ran_elsewhere_are_told_with_the_time_that_is_lost(tmp_path):
    (segment,) = RUN["segments"]
    path = tmp_path / "run.json"
    elsewhere = {"lrn": "the board's CPU"}
    path.write_text(json.dumps({**RUN, "segments": [{**segment, "elsewhere": elsewhere}]}))
    (note,) = parapipe.compare(path).notes
    assert note == (
        f"'{path}': in segment 00-npu0, the board's CPU ran lrn; the segment took 2.00 ms a frame "
        "longer than predicted"
    )


def test_a_damaged_document_is_told_by_its_field(tmp_path):
    with pytest.raises(ComparisonError, match="frames"):
        metrics(tmp_path, frames="many")
