"""What Qualcomm's compiler writes, read from files that onnxruntime-qnn 2.7.0 has written.

The folders of `traces` are those of `tests/cases/compiler_models.py`, compiled for the SM8550;
`placed.json` has what ONNX Runtime says of each node.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from parapipe.compilers.prepare import prepare
from parapipe.compilers.qnn.trace import compiled_rows, read_trace
from tests.cases import compiler_models as models

TRACES = Path(__file__).with_name("traces")


def traced(name: str, folder: Path | None = None):
    """Return the rows of a model, and the reasons of what stays on the CPU."""
    folder = folder or TRACES / name
    model = prepare(getattr(models, name)(), name)
    placed = json.loads((TRACES / name / "placed.json").read_text("utf-8"))["nodes"]
    trace = read_trace(folder, placed, model)
    return compiled_rows(trace, model), trace.reasons


@pytest.mark.parametrize("name", ["quantised", "refused", "gelu"])
def test_every_node_stands_in_one_row_and_no_row_has_cycles(name) -> None:
    rows, _ = traced(name)
    nodes = [node for row in rows for node in row.nodes]
    assert sorted(nodes) == sorted(node.name for node in getattr(models, name)().graph.node)
    assert {row.cycles for row in rows} == {None}


def test_nodes_that_were_fused_stand_in_the_row_that_names_them_as_its_sources() -> None:
    rows, reasons = traced("gelu")
    assert [(row.operator, row.target, row.dtype, row.nodes) for row in rows if row.nodes] == [
        ("FullyConnected", "HTP", "float16", ("matmul",)),
        ("Gelu", "HTP", "float16", ("gelu",)),
    ]
    assert not reasons


def test_what_the_compiler_adds_is_part_of_the_node_that_it_helps() -> None:
    rows, _ = traced("gelu")
    (added,) = (row for row in rows if not row.nodes)
    assert (added.operator, added.part_of, added.matched) == ("Reshape", "matmul", "unmatched")


def test_what_stays_on_the_cpu_has_a_row_and_a_reason() -> None:
    rows, reasons = traced("refused")
    (row,) = (each for each in rows if not each.on_npu)
    assert (row.operator, row.nodes, row.matched) == ("NonZero", ("nz",), "name")
    assert reasons["nz"].startswith("NonZero output shape must be static")


def test_a_name_that_was_lengthened_is_recognised() -> None:
    rows, _ = traced("refused")
    (row,) = (each for each in rows if each.nodes == ("conv",))
    assert (row.operator, row.matched) == ("Conv2d", "suffix")


def test_scales_belong_to_the_operator_between_them_and_borders_to_the_cpu() -> None:
    rows, _ = traced("quantised")
    places = {node: (row.operator, row.target, row.dtype) for row in rows for node in row.nodes}
    convolution = ("Conv2d", "HTP", "sfixed8")
    assert {node: places[node] for node in ("of_xd", "of_w", "conv", "of_yq")} == dict.fromkeys(
        ("of_xd", "of_w", "conv", "of_yq"), convolution
    )
    assert places["of_xq"] == ("QuantizeLinear", "CPU", "")


def test_without_graphs_types_are_not_stated(tmp_path) -> None:
    shutil.copy(TRACES / "gelu" / "qnn_op_trace.json", tmp_path)
    rows, _ = traced("gelu", tmp_path)
    assert {row.dtype for row in rows} == {""}


def test_without_a_trace_there_are_rows_of_the_cpu_alone(tmp_path) -> None:
    rows, reasons = traced("refused", tmp_path)
    assert [row.operator for row in rows] == ["NonZero"]
    assert reasons == {}
