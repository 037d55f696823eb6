"""Operators with random windows, shapes and attributes, cut at random, have the same results."""

import random

import pytest

from parapipe.errors import ModelError, SplitError
from tests.cases.cut_cases import FAMILIES
from tests.cases.split_runs import equal, feeds, run, split


@pytest.mark.parametrize("family", FAMILIES)
def test_any_axis_cut_into_two_to_five_unequal_parts(family):
    cut = 0
    for seed in range(40):
        rng = random.Random(seed)
        try:
            model = FAMILIES[family](rng)
            inputs = feeds(model)
            expected = run(model, inputs)
        except Exception:  # noqa: BLE001 - what ONNX or its runtime refuses is no case
            continue
        rank = len(model.graph.output[0].type.tensor_type.shape.dim)
        for axis in range(rank):
            shares = ",".join(str(rng.randint(1, 9)) for _ in range(rng.randint(2, 5)))
            try:
                made, _ = split(model, f"*:{axis}={shares}", granularity="onnx")
            except (SplitError, ModelError):
                continue
            assert equal(expected, run(made, inputs)), (seed, axis, shares, model.graph.node[0])
            cut += 1
    assert cut >= 20
