"""Prices after conversion: types by operator and processor, and casts, all worked out by hand."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.precision import tensor_move, working_types
from parapipe.errors import CostError
from parapipe.graph.data_types import convert_graph
from tests.cases.precisions import (
    CPU,
    ELEMENTS,
    GPU,
    HALF_ONLY,
    NO_HALF,
    SINGLE_NEG,
    branches,
    soc,
)

WHOLE, HALF = 4 * ELEMENTS, 2 * ELEMENTS
CPU_CAST_S = 10e-6 + (WHOLE + HALF) / 8e9
GPU_CAST_S = 100e-6 + (WHOLE + HALF) / 9e9


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return parapipe.load_model(branches(tmp_path_factory.mktemp("model") / "branches.onnx"))


def entry(table, graph, kind, p):
    return table.entries[next(v for v, o in enumerate(graph.operators) if o.type == kind)][p]


def test_a_processor_computes_in_the_asked_type_or_the_next_wider_one_that_it_has(graph):
    table = build_cost_table(graph, soc(), precision="float16")
    assert table.working == ("float32", "float16")
    assert entry(table, graph, "Neg", CPU).data_type == "float32"
    assert entry(table, graph, "Neg", GPU).data_type == "float16"
    assert build_cost_table(graph, soc(), precision="int8").working == ("float32", "float16")


def test_an_operator_in_float16_moves_half_the_bytes(graph):
    table = build_cost_table(graph, soc(), precision="float16")
    assert entry(table, graph, "Neg", CPU).time_s == pytest.approx(10e-6 + 2 * WHOLE / 8e9)
    assert entry(table, graph, "Neg", GPU).time_s == pytest.approx(100e-6 + 2 * HALF / 9e9)


def test_the_first_reader_of_the_frame_and_the_last_operator_cast_at_the_models_own_type(graph):
    table = build_cost_table(graph, soc(), precision="float16")
    first, last = entry(table, graph, "Abs", GPU), entry(table, graph, "Add", GPU)
    assert first.time_s == pytest.approx(100e-6 + 2 * HALF / 9e9 + GPU_CAST_S)
    assert last.time_s == pytest.approx(100e-6 + 3 * HALF / 9e9 + GPU_CAST_S)
    assert [part.source.split(" of ")[0] for part in first.parts[1:]] == ["cast in"]
    assert [part.source.split(" of ")[0] for part in last.parts[1:]] == ["cast out"]
    assert table.input_s(CPU) == pytest.approx(1e-3 + WHOLE / 1e9)


def test_a_processor_without_the_models_type_takes_and_gives_frames_in_its_own(graph):
    table = build_cost_table(graph, soc(*HALF_ONLY), precision="float16")
    assert len(entry(table, graph, "Abs", GPU).parts) == 1
    port = (
        "input: {latency_s: 0, source",
        "input: {latency_s: 0, bandwidth_bytes_per_s: 1e9, source",
    )
    loaded = build_cost_table(graph, soc(*HALF_ONLY, port), precision="float16")
    assert loaded.input_s(GPU) == pytest.approx(HALF / 1e9)


def test_an_operator_that_runs_in_a_wider_type_only_holds_its_casts(graph):
    table = build_cost_table(graph, soc(SINGLE_NEG), precision="float16")
    found = entry(table, graph, "Neg", GPU)
    assert found.data_type == "float32"
    assert [part.type for part in found.parts] == ["Neg", "Cast", "Cast"]
    assert found.time_s == pytest.approx(100e-6 + 2 * WHOLE / 9e9 + 2 * GPU_CAST_S)
    power_w = 2e-9 * 8e8 * 0.75
    assert found.energy_j == pytest.approx(power_w * found.time_s)


def test_a_tensor_travels_in_the_narrower_type_and_who_works_in_the_wider_one_casts_it(graph):
    table = build_cost_table(graph, soc(), precision="float16")
    assert table.transfer_s("a", GPU, CPU) == pytest.approx(5e-4 + CPU_CAST_S)
    assert table.transfer_s("a", CPU, GPU) == pytest.approx(1e-3 + HALF / 1e9 + CPU_CAST_S)
    platform = soc()
    there = tensor_move(graph.tensors["a"], platform, CPU, GPU, working_types(platform, "float16"))
    back = tensor_move(graph.tensors["a"], platform, GPU, CPU, working_types(platform, "float16"))
    assert (there.size_bytes, back.size_bytes) == (HALF, HALF)
    assert (there.cast.source_type, there.cast.target_type) == ("float32", "float16")
    assert (back.cast.source_type, back.cast.target_type) == ("float16", "float32")
    assert there.cast.processor == back.cast.processor == CPU


def test_to_and_from_int8_a_cast_is_a_quantisation_and_its_reverse(graph):
    platform = soc(
        ("float32: 32e9, float16: 64e9", "int8: 128e9"), ("[float32, float16]", "[int8]")
    )
    working = working_types(platform, "int8")
    there = tensor_move(graph.tensors["a"], platform, CPU, GPU, working)
    back = tensor_move(graph.tensors["a"], platform, GPU, CPU, working)
    assert (there.cast.operator, back.cast.operator) == ("QuantizeLinear", "DequantizeLinear")
    assert there.cast.processor == back.cast.processor == CPU
    assert there.size_bytes == ELEMENTS
    expected_s = 1e-3 + ELEMENTS / 1e9 + 10e-6 + 5 * ELEMENTS / 8e9
    assert there.time.value == pytest.approx(expected_s)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_where_all_processors_have_float32_only_no_precision_changes_a_figure(precision):
    model, only = parapipe.load_model("zoo:squeezenet"), soc(*NO_HALF)
    plain = build_cost_table(model, only, precision="model")
    asked = build_cost_table(model, only, precision=precision)
    for v in range(len(model.operators)):
        for p in (CPU, GPU):
            assert asked.time_s(v, p) == plain.time_s(v, p)
            assert asked.energy_j(v, p) == plain.energy_j(v, p)
    assert asked.transfers == plain.transfers
    assert (asked.input_times_s, asked.output_times_s) == (
        plain.input_times_s,
        plain.output_times_s,
    )


def test_without_a_precision_the_platforms_own_one_counts(graph):
    spoken = soc(("description: Two processors", "precision: float16"))
    assert build_cost_table(graph, spoken).precision == "float16"
    assert build_cost_table(graph, spoken, precision="model").working == (None, None)
    assert build_cost_table(graph, soc()).precision == "model"


def test_a_model_that_only_lacks_a_type_is_refused_with_what_a_conversion_would_change(graph):
    alone = soc(
        *HALF_ONLY,
        ("data_types: [float32]", "data_types: [int32]"),
        ("float32: 16e9", "int32: 16e9"),
    )
    with pytest.raises(CostError, match="it could run 5 of 5 operators with --precision float16"):
        build_cost_table(graph, alone, precision="model")


def test_a_converted_graph_multiplies_as_much_and_moves_half_as_many_bytes():
    model = parapipe.load_model("zoo:squeezenet")
    half = convert_graph(model, "float16")
    for before, after in zip(model.operators, half.operators, strict=True):
        assert after.work.macs == before.work.macs
        assert 2 * after.work.read_bytes == before.work.read_bytes
        assert 2 * after.work.written_bytes == before.work.written_bytes
    assert {tensor.dtype for tensor in half.tensors.values()} == {"float16"}


def test_what_is_measured_in_float32_is_scaled_for_float16_and_counts_as_fitted():
    soc16 = parapipe.load_platform("amlogic-a311d")
    model = parapipe.load_model("zoo:squeezenet")
    plain = build_cost_table(model, soc16, precision="model")
    half = build_cost_table(model, soc16, precision="float16")
    working = working_types(soc16, "float16")
    for p, dtype in enumerate(working):
        if dtype == "float32":
            assert all(half.time_s(v, p) == plain.time_s(v, p) for v in range(len(model.operators)))
        else:
            provenance = {part.provenance for part in half.parts(p) if not part.free_view}
            assert "measured" not in provenance


def test_stages_in_float16_take_less_of_the_shared_memory(graph):
    contended = soc(("board:", "evaluation: {contention: 1.0, source: guess}\nboard:"))
    plain = build_cost_table(graph, contended, precision="model")
    half = build_cost_table(graph, contended, precision="float16")
    assert [plain.cost(v, GPU).moved_bytes for v in range(5)] == [2 * WHOLE] * 4 + [3 * WHOLE]
    assert [half.cost(v, GPU).moved_bytes for v in range(5)] == [2 * HALF] * 4 + [3 * HALF]
    assert [half.cost(v, CPU).moved_bytes for v in range(5)] == [2 * WHOLE] * 4 + [3 * WHOLE]
