"""The shipped Black Sesame A1000: nominal throughout, with an NPU that needs its DSPs."""

from itertools import permutations

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import CostError
from parapipe.platform.load import find_platform, load_platform, read_platform

A1000 = load_platform("bst-a1000")
NPU, DSP0, DSP1 = A1000.processors
TWO = "latency-throughput"
NOT_FOR_THE_NPU = ("pool1/norm1", "conv2/norm2", "prob")


@pytest.fixture(scope="module")
def front():
    return parapipe.map("zoo:googlenet", "bst-a1000", objectives=TWO, interleave="none")


def test_it_has_an_npu_and_two_dsps_that_differ_in_name_only():
    assert A1000.names == ("npu", "dsp0", "dsp1")
    assert [p.kind for p in A1000.processors] == ["npu", "dsp", "dsp"]
    first, second = (dsp.model_dump(exclude={"name", "description"}) for dsp in (DSP0, DSP1))
    assert first == second


def test_no_number_claims_to_be_measured_and_each_says_how_it_was_come_by():
    assert {source.provenance for source in A1000.sources.values()} == {"nominal"}
    assert all(source.reasoning for source in A1000.sources.values())


def test_the_npu_multiplies_at_four_fifths_of_the_advertised_58_tops():
    assert NPU.peak.macs_per_s == dict.fromkeys(["int8", "uint8"], 58e12 / 2 * 0.8)


def test_a_dsp_multiplies_what_a_vision_p6_does_in_each_cycle_of_800_mhz():
    per_cycle = {"int8": 256, "int16": 64, "float32": 512 // 32, "float16": 512 // 16}
    for dtype, macs in per_cycle.items():
        assert DSP0.peak.macs_per_s[dtype] == pytest.approx(macs * 0.8e9)


@pytest.mark.parametrize("processor", A1000.processors, ids=A1000.names)
def test_clocks_are_a_third_and_a_quarter_of_2400_mhz(processor):
    found = {point.frequency_hz for point in processor.operating_points}
    assert found == {2.4e9 / 3, 2.4e9 / 4}
    assert processor.point.frequency_hz == 0.8e9


def test_memory_moves_four_fifths_of_what_64_bits_at_3200_mt_per_s_carry():
    bandwidth = 64 / 8 * 3200e6 * 0.8
    assert A1000.memory.bandwidth_bytes_per_s == NPU.memory.bandwidth_bytes_per_s == bandwidth
    assert DSP0.memory.bandwidth_bytes_per_s == 128 / 8 * 0.8e9


def test_everything_at_full_power_draws_the_typical_18_w():
    drawn_w = [p.static_power_w + p.dynamic_power_w("conv3x3") for p in A1000.processors]
    assert A1000.idle_power_w + sum(drawn_w) == pytest.approx(18)


@pytest.mark.parametrize(("p", "q"), [*permutations(range(3), 2)])
def test_the_npus_layout_costs_a_read_and_a_write_and_a_message_50_us(p, q):
    size = 1 << 20
    copied_s = 2 * size / A1000.memory.bandwidth_bytes_per_s if 0 in (p, q) else 0
    assert A1000.transfer_s(size, p, q) == pytest.approx(50e-6 + copied_s)


@pytest.mark.parametrize(
    "type", ["Conv", "Gemm", "MatMul", "MaxPool", "Relu", "Sigmoid", "Add", "Concat", "Reshape"]
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_the_npu_runs_products_pools_activations_and_what_joins_them(type, dtype):
    assert NPU.supports(type, dtype, {"kernel_shape": (3, 3)}) is None


@pytest.mark.parametrize(
    "type",
    ["LRN", "LayerNormalization", "Softmax", "Gather", "Sin", "Cos", "GridSample", "ScatterND",
     "TopK", "Transpose"],
)  # fmt: skip
def test_what_the_npu_does_not_run_both_dsps_do(type):
    assert str(NPU.supports(type, "int8", {})).startswith(f"{type} cannot run on npu: ")
    assert [dsp.supports(type, "int8", {}) for dsp in (DSP0, DSP1)] == [None, None]


def test_the_npu_multiplies_two_activations_as_matrices_only():
    assert NPU.supports("MatMul", "int8", {}, {0, 1}) is None
    for type_ in ("Conv", "ConvTranspose", "Gemm", "Einsum"):
        assert NPU.supports(type_, "int8", {}, {0}) is None
        assert str(NPU.supports(type_, "int8", {}, {0, 1})) == (
            f"{type_} cannot run on npu: its input 1 (counted from 0) must be constant"
        )


def test_the_npu_slides_over_height_and_width_only():
    volume = str(NPU.supports("Conv", "int8", {"kernel_shape": (3, 3, 3)}))
    assert volume == "Conv cannot run on npu: it slides over height and width only"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_floating_point_indices_and_masks_are_for_the_dsps(dtype):
    assert str(NPU.supports("Add", dtype, {})) == f"npu computes in int8, uint8, not in {dtype}"
    assert DSP0.supports("Add", dtype, {}) is None


@pytest.mark.parametrize("type", ["Loop", "NonZero"])
def test_no_processor_runs_control_flow_or_makes_tensors_of_unknown_size(type):
    assert all(p.supports(type, "float32", {}) for p in A1000.processors)


def test_a_float32_model_is_planned_in_int8_on_all_three_and_the_front_says_so(front):
    assert front.document.options.precision == "int8"
    assert {p.data_type for p in front.document.processors} == {"int8"}
    assert front.document.conversion == (
        "planned as after conversion to int8 (npu, dsp0, dsp1 in int8): its accuracy is yours to "
        "check"
    )


def test_in_its_own_types_a_float32_model_leaves_the_npu_idle_and_a_note_says_what_would_help():
    notes = []
    front = parapipe.map(
        "zoo:squeezenet",
        "bst-a1000",
        precision="model",
        objectives=TWO,
        note=notes.append,
        interleave="none",
    )
    assert {p.name for each in front for p in each.processors} == {"dsp0", "dsp1"}
    assert notes[0] == (
        "npu computes in int8, uint8, not in float32: it could run 39 of 40 operators with "
        "--precision int8, if accuracy allows"
    )


def test_all_times_of_googlenet_are_nominal(front):
    coverage = front.document.coverage
    assert (coverage.nominal.operators, coverage.nominal.time) == (1, 1)
    assert coverage.unmodelled == ()


def test_every_plan_keeps_lrn_and_softmax_of_googlenet_off_the_npu(front):
    for made in front:
        where = {
            placed.operator: processor.name
            for stage in made.plan().stages
            for processor in stage.processors
            for placed in processor.operators
        }
        names = {operator.id: operator.name for operator in made.graph.operators}
        processors = {names[id]: processor for id, processor in where.items()}
        assert len(where) == len(made.graph.operators)
        assert {processors[name] for name in NOT_FOR_THE_NPU} <= {"dsp0", "dsp1"}


def test_googlenet_cannot_run_on_the_npu_alone_and_the_front_says_why(front):
    assert front.document.absent == {
        "npu-alone": "npu cannot run 3 of 84 operators: LRN ('pool1/norm1', 'conv2/norm2') and "
        "Softmax ('prob') – it sums over no axis but those of a product or a window"
    }
    with pytest.raises(KeyError, match="npu cannot run 3 of 84 operators"):
        front["npu-alone"]


def test_either_dsp_alone_has_a_name_and_the_same_figures(front):
    first, second = front["dsp0-alone"], front["dsp1-alone"]
    assert "sequential" in first.names
    assert first.id != second.id
    assert first.latency_s == second.latency_s
    assert first.energy_j == second.energy_j


def test_alike_dsps_do_not_double_the_front_and_the_first_is_used_where_one_will_do(front):
    figures = [
        (row.latency_s, row.period_s, row.energy_j)
        for row in front.document.configurations
        if row.pareto
    ]
    assert len(set(figures)) == len(figures)
    for row in front.document.configurations:
        used = {processor.name for stage in row.stages for processor in stage.processors}
        assert "dsp0" in used or row.names == ("dsp1-alone",)


def test_the_front_does_not_depend_on_the_number_of_jobs(front):
    again = parapipe.map("zoo:googlenet", "bst-a1000", objectives=TWO, jobs=1, interleave="none")
    assert again.document == front.document


def test_operators_that_no_processor_supports_are_told_by_type_with_every_ones_reason():
    text = find_platform("bst-a1000").read_text(encoding="utf-8")
    refusal = "deny:\n        - {type: LRN, reason: nobody wrote it}\n        - {type: [If, "
    poorer = read_platform(text.replace("deny:\n        - {type: [If, ", refusal), "soc.yaml")
    with pytest.raises(CostError) as caught:
        build_cost_table(parapipe.load_model("zoo:googlenet"), poorer)
    message = str(caught.value)
    assert "supports 2 LRN ('pool1/norm1', 'conv2/norm2': " in message
    assert "LRN cannot run on npu: it sums over no axis" in message
    assert "LRN cannot run on dsp1: nobody wrote it" in message
    assert "'prob'" not in message
