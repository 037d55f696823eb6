"""`explain` of processors that capture graphs: it says how much starting them takes."""

from __future__ import annotations

import json
import random

import onnx
import pytest

import parapipe
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import mapping_view
from tests.cases.random_fronts import random_model, random_platform

GRAPH_S = 3e-4


def test_each_captured_graph_has_a_launch_that_leads_to_the_platform_file(tmp_path):
    rng = random.Random(1)
    model, file = tmp_path / "m.onnx", tmp_path / "p.yaml"
    onnx.save(random_model(rng, 4), model)
    board = json.loads(random_platform(rng))
    for each in board["processors"]:
        each["launch"]["graph_s"] = GRAPH_S
        each.pop("divisions", None)
        each.pop("streams", None)
    file.write_text(json.dumps(board), encoding="utf-8")
    front = parapipe.map(
        model, file, draws=0, jobs=1, interleave="none", objectives="latency-throughput"
    )
    front.write(tmp_path / "out")
    row = front[0]
    begins_s = graph_launches_s(mapping_view(row.plan()))
    assert begins_s
    document = parapipe.explain(tmp_path / "out", row.id)
    launches = {each.id: each.launch for each in document.operators if each.launch}
    assert {name: each.value for name, each in launches.items()} == begins_s
    for each in launches.values():
        (given,) = each.givens
        assert given.key.endswith("launch.graph_s")
    for each in document.operators:
        parts_s = sum(part.time.value for part in each.parts)
        assert each.time_s == pytest.approx(parts_s + begins_s.get(each.id, 0.0), rel=1e-9)
        assert ("launch" in json.loads(each.model_dump_json())) == (each.id in begins_s)
