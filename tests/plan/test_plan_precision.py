"""Plans of converted models: what they say of types and casts, and the rules that they keep."""

from __future__ import annotations

import re
from math import inf

import pytest

import parapipe
from parapipe.errors import VerificationError
from parapipe.plan.verify import verify_plan
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.oracle import optimum_s
from tests.cases.precisions import ELEMENTS, SINGLE_NEG, branches, soc_file

WHOLE, HALF = 4 * ELEMENTS, 2 * ELEMENTS
FAST_LINKS = (
    ("to: gpu, latency_s: 1e-3, bandwidth_bytes_per_s: 1e9", "to: gpu, latency_s: 1e-6"),
    ("latency_s: 5e-4", "latency_s: 2e-6"),
)
BUSY_LINKS = (
    ("to: gpu, latency_s: 1e-3, bandwidth_bytes_per_s: 1e9",
     "to: gpu, latency_s: 1e-6, occupies: receiver"),
    ("latency_s: 5e-4", "latency_s: 2e-6, occupies: sender"),
)  # fmt: skip
QUICK_GPU = ("overhead_s: 100e-6", "overhead_s: 5e-6")
NO_ROOT = ("deny: [{type: Conv,", "deny: [{type: Sqrt, reason: nobody wrote it}, {type: Conv,")


def mapped(folder, *changes, precision="float16"):
    return parapipe.map(
        branches(folder / "branches.onnx"),
        soc_file(folder, QUICK_GPU, *changes),
        precision=precision,
        granularity="onnx",
        objectives="latency-throughput",
        resolution=0.0,
        cache=False,
        jobs=1,
        note=lambda _: None,
        interleave="none",
    )


def crossing(front):
    """Return a plan in which tensors go between CPU and GPU."""
    return next(plan for each in front if (plan := each.plan()).transfers)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return crossing(mapped(tmp_path_factory.mktemp("front"), *FAST_LINKS))


def by_hand(links):
    """Return the model on the platform after conversion, nothing taken from the cost table.

    Operators Abs, Neg, Exp, Sqrt, Add on CPU and GPU; both have float32, so that the frame and the
    result are cast on the GPU. The GPU does not run Sqrt.
    """
    cpu, gpu = 10e-6, 5e-6
    gpu_cast = gpu + (WHOLE + HALF) / 9e9
    one = (cpu + 2 * WHOLE / 8e9, gpu + 2 * HALF / 9e9)
    two = (cpu + 3 * WHOLE / 8e9, gpu + 3 * HALF / 9e9)
    times = ((one[0], one[1] + gpu_cast), one, one, (one[0], inf), (two[0], two[1] + gpu_cast))
    cpu_cast = cpu + (WHOLE + HALF) / 8e9
    moved = ((0.0, 1e-6 + cpu_cast), (2e-6 + cpu_cast, 0.0))
    ends = ((0, (1, 3)), (1, (2,)), (2, (4,)), (3, (4,)))
    flows = tuple(Flow(u, readers, moved) for u, readers in ends)
    busy = ((None, 1), (1, None)) if links is BUSY_LINKS else ()
    return MappingProblem(times, flows, tuple(range(5)), busy)


@pytest.mark.parametrize("links", [FAST_LINKS, BUSY_LINKS], ids=["delays", "occupying"])
def test_the_least_latency_with_casts_is_that_of_brute_force(tmp_path, links):
    best = mapped(tmp_path, *links, NO_ROOT).best("latency")
    assert len(best.plan().transfers) == 2
    assert best.latency_s == pytest.approx(optimum_s(by_hand(links)), rel=1e-9)


def test_a_plan_says_the_types_and_each_cast(plan):
    assert plan.precision == "float16"
    assert {p.name: p.data_type for p in plan.processors} == {"cpu": "float32", "gpu": "float16"}
    for transfer in plan.transfers:
        types = {"cpu": "float32", "gpu": "float16"}
        cast = transfer.cast
        assert (cast.source_type, cast.target_type) == (
            types[transfer.source],
            types[transfer.target],
        )
        assert (cast.operator, cast.processor, transfer.size_bytes) == ("Cast", "cpu", HALF)
        assert cast.time_s == pytest.approx(10e-6 + (WHOLE + HALF) / 8e9)
        assert cast.time_s < transfer.time_s


def test_an_operator_in_a_wider_type_than_its_processors_says_so(tmp_path):
    front = mapped(tmp_path, *FAST_LINKS, SINGLE_NEG)
    placed = [
        (processor.name, at)
        for each in front
        for stage in each.plan().stages
        for processor in stage.processors
        for at in processor.operators
    ]
    on_gpu = {at.operator: at.data_type for name, at in placed if name == "gpu"}
    assert on_gpu["b"] == "float32"
    assert {on_gpu[name] for name in on_gpu if name != "b"} == {None}


def test_a_plan_without_precision_says_nothing_of_types(tmp_path):
    made = crossing(mapped(tmp_path, *FAST_LINKS, precision=None))
    assert made.precision is None
    assert {p.data_type for p in made.processors} == {None}
    assert {t.cast for t in made.transfers} == {None}
    assert {t.size_bytes for t in made.transfers} == {WHOLE}
    assert b"data_type" not in made.to_bytes()


def changed(plan, **cast):
    first, *others = plan.transfers
    moved = first.model_copy(update={"cast": first.cast.model_copy(update=cast)})
    return plan.model_copy(update={"transfers": (moved, *others)})


def without_cast(plan):
    first, *others = plan.transfers
    moved = first.model_copy(update={"cast": None})
    return plan.model_copy(update={"transfers": (moved, *others)})


def with_bytes(plan):
    first, *others = plan.transfers
    moved = first.model_copy(update={"size_bytes": WHOLE})
    return plan.model_copy(update={"transfers": (moved, *others)})


def of_type(plan, data_type):
    processors = [p.model_copy(update={"data_type": data_type}) for p in plan.processors]
    return plan.model_copy(update={"processors": tuple(processors)})


def computing_in(plan, data_type):
    stage, *others = plan.stages
    processors = [
        p.model_copy(
            update={
                "operators": tuple(
                    at.model_copy(update={"data_type": data_type}) for at in p.operators
                )
            }
        )
        for p in stage.processors
    ]
    stage = stage.model_copy(update={"processors": tuple(processors)})
    return plan.model_copy(update={"stages": (stage, *others)})


@pytest.mark.parametrize(
    ("spoilt", "violation"),
    [
        (lambda p: changed(p, processor="gpu"), r"has a Cast .* on 'gpu', and should .* on 'cpu'"),
        (lambda p: changed(p, target_type="int8"), r"should have a Cast from float\d+ to float\d+"),
        (lambda p: changed(p, time_s=1.0), r"and its cast 1 s"),
        (without_cast, r"has no cast, and its ends keep it in float\d+ and float\d+"),
        (with_bytes, rf"moves {WHOLE} bytes of {HALF}"),
        (lambda p: of_type(p, "float32"), r"has a cast, and its ends keep it in float32 and float"),
        (lambda p: of_type(p, "int8"), r"'cpu' works in int8, which is no type of a plan in flo"),
        (lambda p: p.model_copy(update={"precision": None}), r"and the plan has no precision"),
        (lambda p: computing_in(p, "float16"), r"computes in float16, no wider than float"),
    ],
)  # fmt: skip
def test_the_verifier_finds_types_and_casts_that_do_not_fit(plan, spoilt, violation):
    verify_plan(plan)
    with pytest.raises(VerificationError) as caught:
        verify_plan(spoilt(plan))
    assert any(re.search(violation, each) for each in caught.value.violations)
