"""Arm's compiler itself: runs where PARAPIPE_COMPILER_VELA names a Python that has it.

`make test-vela` makes that environment.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import parapipe
from parapipe.compilers.compile import compile_segment, simulate_segment
from parapipe.compilers.contract import CompileError, CompileJob, RefusedNode
from tests.cases import compiler_models as models
from tests.cases.compiler_models import cosine, expected, frame_for, saved

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_VELA" not in os.environ,
    reason="Arm's compiler is not installed: make test-vela",
)
CHIP = "ethos-u55-128"


def test_int8_with_samples_is_near_the_float_model(tmp_path) -> None:
    network = models.two_inputs()
    frames = [frame_for(network, seed) for seed in range(8)]
    stacks = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    np.savez(tmp_path / "samples.npz", **stacks)
    job = CompileJob(saved(network, tmp_path), CHIP, "int8", tmp_path / "samples.npz")
    outputs, right = simulate_segment("vela", job, frames[0]), expected(network, frames[0])
    assert {name: array.shape for name, array in outputs.items()} == {
        "q": (1, 8),
        "y": models.IMAGE,
    }
    assert cosine(outputs["y"], right["y"]) >= 0.99


def test_rows_have_nodes_and_cycles_and_the_segment_has_memory(tmp_path) -> None:
    segment = compile_segment(
        "vela", CompileJob(saved(models.two_inputs(), tmp_path), CHIP, "int8")
    )
    rows = {node: row for row in segment.rows for node in row.nodes}
    assert rows["sub"].operator == "Sub"
    assert rows["conv"].operator == "Conv2D"
    assert rows["conv"].cycles
    assert all(row.cycles is not None for row in segment.rows if row.on_npu)
    assert segment.weight_bytes
    assert segment.internal_bytes
    assert segment.on_cpu == ()
    assert segment.notes[1].startswith("for the system that Vela assumes, Ethos_U55")


def test_what_the_npu_does_not_have_stays_on_the_cpu_and_has_no_price(tmp_path) -> None:
    segment = compile_segment("vela", CompileJob(saved(models.sine(), tmp_path), CHIP, "int8"))
    assert segment.on_cpu == (RefusedNode("sin", "Sin", "Unsupported opType"),)
    (row,) = (each for each in segment.rows if each.nodes == ("sin",))
    assert (row.operator, row.target, row.cycles) == ("Sin", "CPU", None)


def test_a_model_with_scales_of_its_own_is_refused(tmp_path) -> None:
    job = CompileJob(saved(models.quantised(), tmp_path), CHIP, "int8")
    with pytest.raises(CompileError, match=r"has scales of its own \(QDQ\)"):
        compile_segment("vela", job)


def test_the_check_compiles_and_simulates() -> None:
    check = parapipe.check_compiler("vela")
    assert check.target == "ethos-u85-2048"
    assert check.cosine >= 0.99


def test_a_float16_job_is_computed_in_int8_and_says_so(tmp_path) -> None:
    segment = compile_segment("vela", CompileJob(saved(models.two_inputs(), tmp_path), CHIP))
    assert "computed in int8, since an Ethos-U computes in integers only" in segment.notes
