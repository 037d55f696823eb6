"""The shipped Black Sesame A1000: stated by its maker, with an NPU that needs its DSPs."""

from itertools import permutations

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import shipped_profiles
from parapipe.cost.signature import signature_of
from parapipe.errors import CostError
from parapipe.graph.data_types import convert_graph
from parapipe.platform.load import find_platform, load_platform, read_platform

A1000 = load_platform("bst-a1000")
NPU, DSP0, DSP1 = A1000.processors
TWO = "latency-throughput"
NOT_FOR_THE_NPU = ("pool5/7x7_s1", "prob")


@pytest.fixture(scope="module")
def front():
    return parapipe.map("zoo:googlenet", "bst-a1000", objectives=TWO, interleave="none")


def test_it_has_an_npu_and_two_dsps_that_differ_in_name_only():
    assert A1000.names == ("npu", "dsp0", "dsp1")
    assert [p.kind for p in A1000.processors] == ["npu", "dsp", "dsp"]
    first, second = (dsp.model_dump(exclude={"name", "description"}) for dsp in (DSP0, DSP1))
    assert first == second


def test_no_number_claims_to_be_measured_and_each_says_how_it_was_come_by():
    kinds = {source.provenance for source in A1000.sources.values()}
    assert kinds == {"stated", "fitted", "nominal"}
    assert A1000.sources[NPU.power.source].provenance == "nominal"
    assert all(source.reasoning for source in A1000.sources.values())


@pytest.mark.parametrize("processor", [NPU, DSP0], ids=["npu", "dsp0"])
def test_what_was_not_stated_multiplies_at_the_mean_rate_of_the_stated_convolutions(processor):
    (profile,) = shipped_profiles("bst-a1000")
    products = [m for m in profile.measurements if m.processor == processor.name and m.macs]
    rate = sum(m.rows * m.macs for m in products) / sum(m.rows * m.time_s for m in products)
    assert processor.peak.macs_per_s["int8"] == pytest.approx(rate, rel=0.01)


def test_a_dsp_has_a_vision_p6s_proportions_between_data_types():
    per_cycle = {"int8": 256, "int16": 64, "float32": 512 // 32, "float16": 512 // 16}
    for dtype, macs in per_cycle.items():
        assert DSP0.peak.macs_per_s[dtype] == DSP0.peak.macs_per_s["int8"] * macs / 256


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
def test_a_hand_over_takes_a_load_of_134_us_and_a_store_of_3_whatever_its_size(p, q):
    assert A1000.transfer_s(1, p, q) == A1000.transfer_s(1 << 20, p, q) == 137e-6


@pytest.mark.parametrize(
    "type", ["Conv", "Gemm", "MaxPool", "AveragePool", "LRN", "Relu", "Concat"]
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_the_npu_runs_products_with_weights_pools_relu_and_what_joins_them(type, dtype):
    assert NPU.supports(type, dtype, {"kernel_shape": (3, 3)}) is None


@pytest.mark.parametrize(
    "type",
    ["Add", "MatMul", "Sigmoid", "Reshape", "Softmax", "Gather", "Sin", "Cos", "GridSample",
     "ScatterND", "TopK", "Transpose"],
)  # fmt: skip
def test_what_the_npu_does_not_run_both_dsps_do(type):
    assert str(NPU.supports(type, "int8", {})).startswith(f"{type} cannot run on npu: ")
    assert [dsp.supports(type, "int8", {}) for dsp in (DSP0, DSP1)] == [None, None]


def test_the_npu_averages_over_small_windows_only():
    assert NPU.supports("AveragePool", "int8", {"kernel_shape": (3, 3)}) is None
    assert str(NPU.supports("AveragePool", "int8", {"kernel_shape": (7, 7)})) == (
        "AveragePool cannot run on npu: its maker averages over so large a window on a DSP"
    )


def test_the_npu_multiplies_no_two_activations():
    for type_ in ("Conv", "ConvTranspose", "Gemm"):
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
        "npu computes in int8, uint8, not in float32: it could run 37 of 40 operators with "
        "--precision int8, if accuracy allows"
    )


def test_of_googlenet_all_but_two_lrn_the_gemm_and_the_softmax_is_stated(front):
    coverage = front.document.coverage
    # Of 141 operators the NPU runs all but the last pool and the Softmax; a DSP casts the frame and
    # the result besides.
    stated = (139 - 3) + 2 * (141 - 4)
    assert coverage.stated.operators == pytest.approx(stated / (139 + 2 * (141 + 2)))
    assert coverage.stated.time > 0.99
    assert coverage.measured.operators == 0
    assert coverage.unmodelled == ()
    shares = front[0].plan().predicted.coverage
    assert shares.stated + shares.fitted + shares.nominal == pytest.approx(1)
    assert shares.stated > 0.9


def test_googlenet_takes_what_its_maker_states_for_its_operators_and_hand_overs(front):
    (profile,) = shipped_profiles("bst-a1000")
    graph = convert_graph(front[0].graph, "int8")
    alone_s = sum(
        m.time_s
        for operator in graph.operators
        for part in operator.singles
        if (m := profile.lookup(signature_of(part, graph), "dsp0"))
    )
    # what is not stated are its LRNs, Gemm and Softmax
    assert alone_s < front["dsp0-alone"].latency_s < alone_s + 1e-3
    assert alone_s == pytest.approx(90.4e-3, rel=1e-3)
    # 1.19 ms on the NPU; the last pool and the Softmax on a DSP, so one hand-over or two
    assert 1.19e-3 + 137e-6 < front["para-only"].latency_s < 1.19e-3 + 5 * 137e-6


def test_every_plan_keeps_the_last_pool_and_softmax_of_googlenet_off_the_npu(front):
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
        "npu-alone": "npu cannot run 2 of 84 operators: AveragePool ('pool5/7x7_s1') – its maker "
        "averages over so large a window on a DSP; Softmax ('prob') – its maker runs it on a DSP"
    }
    with pytest.raises(KeyError, match="npu cannot run 2 of 84 operators"):
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
    refusal = "deny:\n        - {type: Softmax, reason: nobody wrote it}\n        - {type: [If, "
    poorer = read_platform(text.replace("deny:\n        - {type: [If, ", refusal), "soc.yaml")
    with pytest.raises(CostError) as caught:
        build_cost_table(parapipe.load_model("zoo:googlenet"), poorer)
    message = str(caught.value)
    assert "supports 1 Softmax ('prob': " in message
    assert "Softmax cannot run on npu: its maker runs it on a DSP" in message
    assert "Softmax cannot run on dsp1: nobody wrote it" in message
    assert "'pool5/7x7_s1'" not in message


def test_the_variant_with_four_dsps_prices_each_as_the_two_of_the_base():
    four = load_platform("bst-a1000-4dsp")
    assert four.names == ("npu", "dsp0", "dsp1", "dsp2", "dsp3")
    told = {"name", "description"}
    assert len({repr(dsp.model_dump(exclude=told)) for dsp in (*four.processors[1:], DSP0)}) == 1
    assert {four.transfer_s(1, p, q) for p, q in permutations(range(5), 2)} == {137e-6}
    graph = parapipe.load_model("zoo:googlenet")
    costs = build_cost_table(graph, four)
    base = build_cost_table(graph, A1000)
    for v in range(len(graph.operators)):
        assert {costs.time_s(v, p) for p in range(1, 5)} == {base.time_s(v, 1)}
