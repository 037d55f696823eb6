"""A plan in a few figures."""

import json

from parapipe.plan.summary import summarize
from tests.cases.plan_cases import drawn_plan


def test_the_summary_counts_what_the_plan_holds() -> None:
    summary = summarize(drawn_plan())
    assert (summary.model, summary.platform) == ("nets/small.onnx", "board")
    assert summary.stages == (("big", "little"), ("gpu",))
    assert (summary.operators, summary.fused, summary.nodes) == (5, 1, 6)
    assert (summary.transfers, summary.transfer_bytes) == (4, 96)
    assert (summary.latency_s, summary.period_s, summary.throughput_fps) == (5.25, 3.0, 1 / 3)


def test_the_summary_is_plain_json() -> None:
    document = summarize(drawn_plan()).to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["stages"] == [["big", "little"], ["gpu"]]
