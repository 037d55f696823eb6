"""Every model of ONNX's backend suite that can be cut has the same results in parts."""

import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest
from onnx.backend.test.loader import load_model_tests

from parapipe.errors import ModelError, SplitError
from tests.cases.split_runs import equal, run, split


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [case for case in load_model_tests(kind="node") if case.model is not None]


def ran(model, inputs):
    """What ONNX Runtime makes of a model; None where it has no kernel for it."""
    try:
        return run(model, inputs)
    except Exception:  # noqa: BLE001 - it fails in its own ways
        return None


def fed(case, model):
    values = dict(zip([each.name for each in case.model.graph.input], case.data_sets[0][0],
                      strict=False))  # fmt: skip
    return {each.name: values[each.name] for each in model.graph.input}


def compare(cases, shares, most=None):
    """Cut every axis of all cases, or of some for each type; count what was equal, by type."""
    compared = Counter()
    for case in cases:
        kind = case.model.graph.node[0].op_type if case.model.graph.node else ""
        if most is not None and (len(case.model.graph.node) != 1 or compared[kind] > most):
            continue
        expected = None
        rank = max((len(v.type.tensor_type.shape.dim) for v in case.model.graph.output), default=0)
        for axis, share in product(range(rank), shares):
            try:
                made, _ = split(case.model, f"*:{axis}={share}", granularity="onnx")
            except (SplitError, ModelError):
                continue
            expected = expected or ran(case.model, fed(case, case.model))
            if expected is not None:
                assert equal(expected, run(made, fed(case, made))), (case.name, axis, share)
                compared[kind] += 1
    return compared


def test_single_operators_in_parts_have_the_same_results(cases):
    compared = compare(cases, ("2,1",), most=7)
    assert len(compared) > 95
    assert compared.total() > 400


@pytest.mark.nightly
def test_all_cases_in_parts_have_the_same_results(cases):
    assert compare(cases, ("2", "1,2,1")).total() > 3000
