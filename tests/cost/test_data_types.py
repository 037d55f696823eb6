"""Prices keep data types apart, and say where one type's price stems from another's."""

from dataclasses import replace

import numpy as np
import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.measured_source import MeasuredSource
from parapipe.cost.pricing import Pricing
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import signature_of
from parapipe.errors import CostError
from parapipe.platform.load import read_platform
from tests.cases.quantised_models import SCALES, small_qdq
from tests.cases.small_models import graph_of, imported
from tests.cases.soc_texts import spoil
from tests.cost.test_price import again

GRAPH = imported(small_qdq(), granularity="fused")
CONV, FLATTEN = GRAPH.operators[2], GRAPH.operators[6]
INTEGERS = (
    ("data_types: [float32]\n", "data_types: [float32, int8]\n"),
    ("{float32: 16e9}", "{float32: 16e9, int8: 64e9}"),
)
BOTH = read_platform(spoil(*INTEGERS), "soc.yaml")
FLOATS = read_platform(spoil(), "soc.yaml")
CPU, GPU = 0, 1


def measured(dtype, *rows):
    """Return a profile of some of the model's operators, given as index, seconds and class."""
    return Profile(
        "test",
        tuple(
            Measurement(
                signature=replace(signature_of(GRAPH.operators[v], GRAPH), dtype=dtype),
                operator_class=kind,
                macs=GRAPH.operators[v].work.macs,
                size_bytes=1000,
                processor="cpu",
                frequency_hz=2e9,
                time_s=time_s,
                rows=1,
                spread=0.0,
                method="timed",
            )
            for v, time_s, kind in rows
        ),
    )


def part(profile, v, platform=BOTH, p=CPU):
    costs = build_cost_table(GRAPH, platform, profiles=(profile,))
    (found,) = costs.cost(v, p).parts
    return found


def test_a_processor_with_int8_runs_uint8_and_the_other_way_round():
    cpu = BOTH.processors[CPU]
    assert [cpu.computing_type(t) for t in ("int8", "uint8", "float32")] == [
        "int8", "int8", "float32",
    ]  # fmt: skip
    assert [cpu.computing_type(t) for t in ("int16", "uint16", "float16")] == [None] * 3
    assert cpu.supports("Conv", "uint8", {}) is None
    assert str(cpu.supports("Conv", "int16", {})) == "cpu computes in float32, int8, not in int16"


def test_a_measured_time_holds_for_its_own_type():
    found = part(measured("uint8", (2, 3e-3, "conv1x1")), 2)
    assert (found.provenance, found.time_s) == ("measured", 3e-3)


def test_a_product_of_another_type_takes_as_much_longer_as_its_peak_is_lower():
    found = part(measured("float32", (2, 4e-3, "conv1x1")), 2)
    assert found.time_s == pytest.approx(4e-3 * 16e9 / 64e9)
    assert again(found.time) == pytest.approx(found.time_s)
    assert found.provenance == "fitted"
    assert found.source.endswith("; measured in float32, scaled to uint8 by nominal peaks")


def test_what_multiplies_nothing_goes_with_the_bytes_of_an_element():
    found = part(measured("float32", (3, 4e-3, "elementwise")), 3)
    assert found.time_s == pytest.approx(1e-3)
    assert found.source.endswith("scaled to uint8 by nominal bytes of an element")


def test_int8_counts_as_much_as_uint8():
    assert part(measured("int8", (2, 4e-3, "conv1x1")), 2).time_s == pytest.approx(4e-3)


def test_a_time_by_the_own_type_goes_before_one_by_another():
    both = Profile(
        "test",
        (
            *measured("float32", (2, 4e-3, "conv1x1")).measurements,
            *measured("uint8", (2, 3e-3, "conv1x1")).measurements,
        ),
    )
    assert part(both, 2).time_s == 3e-3


def test_without_any_measurement_the_time_is_nominal():
    found = part(Profile("test", ()), 2)
    assert found.provenance == "nominal"
    moved = CONV.work.read_bytes + CONV.work.written_bytes
    assert found.time_s == pytest.approx(10e-6 + max(CONV.work.macs / 64e9, moved / 8e9))


def test_fits_of_two_types_never_meet():
    rows = [(v, (v + 1) * 1e-3, kind) for v, kind in ((1, "conv3x3"), (2, "conv1x1"))]
    more = [
        replace(m, signature=replace(m.signature, output=f"{n}x8x8"), macs=m.macs * n)
        for m in measured("float32", *rows).measurements
        for n in range(1, 8)
    ]
    slow = [
        replace(m, signature=replace(m.signature, dtype="uint8"), time_s=100 * m.time_s)
        for m in more
    ]
    clocks = {"cpu": 2e9}
    alone = MeasuredSource(Profile("test", tuple(more)), clocks).model.fits
    both = MeasuredSource(Profile("test", (*more, *slow)), clocks).model.fits
    assert {dtype for _, dtype, _ in both} == {"float32", "uint8"}
    assert {key: fit for key, fit in both.items() if key[1] == "float32"} == alone


def test_a_processor_without_integers_runs_the_nodes_as_they_stand():
    costs = build_cost_table(GRAPH, FLOATS, profiles=())
    parts = costs.cost(1, GPU).parts
    assert [each.type for each in parts] == ["DequantizeLinear", "QuantizeLinear", "Conv", "Relu"]
    assert all(each.source.endswith("; run dequantised") for each in parts)
    dequantise, quantise, conv, relu = parts
    assert dequantise.time_s == pytest.approx(100e-6 + (197 + 768) / 9e9)
    assert conv.time_s == pytest.approx(100e-6 + max(6912 / 32e9, (768 + 124 + 1024) / 9e9))
    assert costs.time_s(1, GPU) == pytest.approx(sum(each.time_s for each in parts))
    assert [each.time.givens[0].origin.name for each in (quantise, relu)] == ["launch"] * 2


@pytest.mark.parametrize("second", ["one", "per channel", "stepped"])
def test_each_of_several_quantised_operators_has_the_price_that_it_has_alone(second):
    scales = {"one": np.float32(0.01), "per channel": np.full(4, 0.01, np.float32)}
    axis, pads = ("<axis = 0>", "1, 1, 1, 1") if second == "per channel" else ("", "1, 1, 1, 1")
    nodes = "".join(
        f"""
        {x}d = DequantizeLinear ({x}, s, z)
        {y}w = DequantizeLinear {axis if y == "b" else ""} (wq, {y}s)
        {y}c = Conv <pads = [{pads}], strides = [{step}, {step}]> ({x}d, {y}w)
        {y} = QuantizeLinear ({y}c, s, z)
        """
        for x, y, step in (("x", "a", 1), ("a", "b", 2 if second == "stepped" else 1),
                           ("b", "c", 1))
    )  # fmt: skip
    graph = graph_of(
        f"g (uint16[1, 4, 8, 8] x) => (uint16[1, 4, h, w] c) {{ {nodes} }}",
        granularity="fused", opset=21,
        s=np.float32(0.02), z=np.uint16(32768), wq=np.ones((4, 4, 3, 3), np.int8),
        **{"as": scales["one"], "bs": scales.get(second, scales["one"]), "cs": scales["one"]},
    )  # fmt: skip
    assert [each.computes_in for each in graph.operators] == ["uint16"] * 3
    together = Pricing(graph, BOTH, (), "deployed", "model")
    for v, operator in enumerate(graph.operators):
        row = together.row(v)
        assert row == Pricing(graph, BOTH, (), "deployed", "model").row(v)
        assert {p.operator for p in row[GPU].parts} == {part.name for part in operator.parts}


def test_the_float_price_of_a_dequantised_operator_may_be_measured():
    profile = measured("float32", (2, 4e-3, "conv1x1"))
    costs = build_cost_table(GRAPH, FLOATS, profiles=(profile,))
    times = {each.type: each for each in costs.cost(2, CPU).parts}
    assert (times["Conv"].provenance, times["Conv"].time_s) == ("measured", 4e-3)


def test_what_a_processor_does_not_run_in_floating_point_it_does_not_run_dequantised():
    barred = read_platform(spoil(("it has no groups", "none")).replace(
        "where: {group: {min: 2}}, ", ""), "soc.yaml")  # fmt: skip
    costs = build_cost_table(GRAPH, barred, profiles=())
    assert str(costs.unsupported(2, GPU)) == "gpu computes in float32, float16, not in uint8"


def test_an_operator_that_is_integers_in_the_model_cannot_run_dequantised():
    graph = graph_of(
        "g (uint8[4] x) => (uint8[4] y) { y = com.microsoft.QLinearSigmoid (x, s, z, t, z) }",
        granularity="fused", domains=("com.microsoft",), **SCALES,
    )  # fmt: skip
    costs = build_cost_table(graph, BOTH, profiles=())
    assert costs.unsupported(0, CPU) is None
    assert str(costs.unsupported(0, GPU)) == "gpu computes in float32, float16, not in uint8"
    with pytest.raises(CostError, match="not in uint8"):
        build_cost_table(graph, FLOATS, profiles=())


def test_a_view_of_integers_is_free():
    costs = build_cost_table(GRAPH, BOTH, profiles=())
    assert FLATTEN.type == "Flatten"
    assert costs.time_s(6, CPU) == 0
