"""The benchmark of co-runs: its models are halves of equal blocks, its errors are right."""

import pytest

import parapipe
from benchmarks.co_run_models import BLOCKS, MEMORY_BOUND, MODELS, model_named
from benchmarks.co_runs import Measured, block_of, page

SMALL = [name for name in MODELS if name not in MEMORY_BOUND]


def test_there_are_ten_models_and_seven_are_memory_bound():
    assert (len(MODELS), len(MEMORY_BOUND)) == (10, 7)


@pytest.mark.parametrize("name", SMALL)
def test_blocks_are_equal_and_told_by_what_they_make(name, tmp_path):
    (tmp_path / "m.onnx").write_bytes(model_named(name, range(BLOCKS)).SerializeToString())
    graph = parapipe.load_model(tmp_path / "m.onnx", note=lambda _: None)
    blocks = [block_of(each.id) for each in graph.operators]
    assert {blocks.count(number) for number in range(BLOCKS)} == {len(blocks) // BLOCKS}


def test_errors_are_those_of_the_longer_stage_and_of_the_sum():
    row = Measured("x", (4.0, 3.0), (5.0, 5.0), (1.25, 1.5), (1.0, 1.0), 1.4)
    without, kernels, operators = row.errors()
    # 4 of 5 ms and 7 of 10; times 1.25 and 1.5: 5 of 5 and 10.5 of 10.
    assert without == operators == pytest.approx((0.2, 0.3))
    assert kernels == pytest.approx((0.0, 0.05))


def test_the_page_says_how_it_was_measured_and_what_the_errors_are():
    name = next(iter(MODELS))
    row = Measured(name, (4.0, 3.0), (5.0, 5.0), (1.25, 1.5), (1.0, 1.0), 1.4)
    text = page([row], realtime=True, load=3.0)
    assert "with priority over other programs, while 3.0 processes" in text
    assert f"| {name} | 4.00, 3.00 | 5.00, 5.00 | 1.25 | 1.40 | 1.25 | 1.00 |" in text
    assert "of the period 20.0 %, 0.0 %, 20.0 %" in text
