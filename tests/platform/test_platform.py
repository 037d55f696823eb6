"""What a platform answers: by hand from the numbers of the toy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parapipe.graph.operator_graph import ITEM_BYTES
from parapipe.platform.fields import OPERATOR_CLASSES, DataType
from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, line_of, mistakes, spoil

TOY = read_platform(SOC, "soc.yaml")
CPU, GPU = TOY.processors


def test_processors_are_counted_in_the_files_order():
    assert TOY.names == ("cpu", "gpu")
    assert [TOY.index(name) for name in TOY.names] == [0, 1]
    with pytest.raises(KeyError, match="npu"):
        TOY.index("npu")


def test_the_profile_is_named_after_the_platform_unless_the_file_says_otherwise():
    assert TOY.profile_name == "toy"
    text = spoil(("name: toy", "name: toy\nprofile: other"))
    assert read_platform(text, "soc.yaml").profile_name == "other"


def test_the_default_operating_point_need_not_be_the_first():
    assert (CPU.point.frequency_hz, CPU.point.voltage_v) == (2e9, 1.0)


def test_equation_8_for_a_busy_processor():
    assert CPU.static_power_w == 0.5 * 1.0
    assert CPU.dynamic_power_w("gemm") == pytest.approx(1e-9 * 1.0**2 * 2e9 * 1, rel=1e-15)
    assert CPU.dynamic_power_w("pool") == pytest.approx(1e-9 * 1.0**2 * 2e9 * 0.5, rel=1e-15)


def test_an_unknown_operator_class_is_an_error_even_where_there_is_a_default():
    with pytest.raises(KeyError, match="convolution"):
        GPU.dynamic_power_w("convolution")


def test_a_transfer_is_latency_plus_bytes_over_bandwidth():
    assert TOY.transfer_s(1_000_000, 0, 1) == pytest.approx(1e-3 + 1e-3)


def test_without_a_bandwidth_the_size_does_not_matter():
    assert TOY.transfer_s(1, 1, 0) == TOY.transfer_s(10**9, 1, 0) == 5e-4


def test_a_conversion_comes_on_top():
    text = spoil(
        (
            "to: cpu, latency_s: 5e-4",
            "to: cpu, latency_s: 5e-4, conversion: {latency_s: 1e-4, bandwidth_bytes_per_s: 1e9}",
        )
    )
    assert read_platform(text, "soc.yaml").transfer_s(10**6, 1, 0) == pytest.approx(16e-4)


def test_synchronisation_comes_on_top_whatever_the_size():
    text = spoil(
        (
            "to: cpu, latency_s: 5e-4",
            "to: cpu, latency_s: 5e-4, synchronisation: {overhead_s: 2e-4, source: guess}",
        )
    )
    platform = read_platform(text, "soc.yaml")
    assert platform.transfer_s(0, 1, 0) == platform.transfer_s(10**6, 1, 0) == pytest.approx(7e-4)
    assert platform.transfer_s(0, 0, 1) == TOY.transfer_s(0, 0, 1)
    assert (platform.link_of[1, 0].overhead_s, TOY.link_of[1, 0].overhead_s) == (2e-4, 0)


def test_a_link_both_ways_covers_both_pairs_alike():
    text = spoil(
        ("from: cpu, to: gpu", "both_ways: true, from: cpu, to: gpu"),
        ("  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}\n", ""),
    )
    platform = read_platform(text, "soc.yaml")
    assert platform.transfer_s(10**6, 1, 0) == platform.transfer_s(10**6, 0, 1) > 0


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.sampled_from([(0, 1), (1, 0)]))
def test_a_larger_tensor_never_arrives_earlier(small, large, pair):
    small, large = sorted((small, large))
    assert 0 < TOY.transfer_s(small, *pair) <= TOY.transfer_s(large, *pair) < math.inf


@given(st.floats(0, 1e12), st.sampled_from([0, 1]))
def test_a_tensor_that_stays_costs_nothing(size, processor):
    assert TOY.transfer_s(size, processor, processor) == 0


def test_loading_a_frame_and_reading_a_result():
    assert CPU.input_time(2_000_000).value == pytest.approx(1e-3 + 2e-3)
    assert CPU.output_time(4000).value == 2e-3


def test_an_operator_in_another_data_type_is_refused_with_the_reason():
    assert CPU.supports("Conv", "float32", {}) is None
    assert str(CPU.supports("Conv", "float16", {})) == "cpu computes in float32, not in float16"


def test_a_denied_operator_is_refused_with_the_files_reason():
    assert str(GPU.supports("Conv", "float16", {"group": 4})) == (
        "Conv cannot run on gpu: it has no groups"
    )
    assert GPU.supports("Conv", "float16", {"group": 1}) is None


def test_nominal_numbers_are_at_hand_by_short_names():
    assert (CPU.launch.overhead_s, CPU.memory.bandwidth_bytes_per_s) == (10e-6, 8e9)
    assert dict(GPU.peak.macs_per_s) == {"float32": 32e9, "float16": 64e9}
    assert TOY.idle_power_w == 2


def test_a_platform_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        TOY.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_other_links_knows_them(deep):
    assert TOY.link_of[0, 1].occupies == "nothing"
    assert (TOY.resources, TOY.transfer_resource, TOY.names) == (("cpu", "gpu"), (), ("cpu", "gpu"))
    links = [link.model_copy(update={"occupies": "bus"}) for link in TOY.links]
    copy = TOY.model_copy(update={"links": tuple(links)}, deep=deep)
    assert copy.link_of[0, 1].occupies == "bus"
    assert (copy.resources, copy.transfer_resource) == (
        ("cpu", "gpu", "bus"),
        ((None, 2), (2, None)),
    )
    renamed = [p.model_copy(update={"name": f"my-{p.name}"}) for p in TOY.processors]
    assert TOY.model_copy(update={"processors": renamed}, deep=deep).names == ("my-cpu", "my-gpu")
    assert TOY.link_of[0, 1].occupies == "nothing"


def test_a_platform_made_in_code_is_checked_for_contradictions_too():
    values = TOY.model_dump(by_alias=True)
    values["processors"][1]["name"] = "cpu"
    with pytest.raises(ValidationError, match="is also the name of"):
        type(TOY).model_validate(values)


def test_data_types_are_those_of_the_operator_graph():
    assert set(DataType.__args__) == set(ITEM_BYTES)


def test_operator_classes_are_fourteen_without_the_default():
    assert len(OPERATOR_CLASSES) == 14
    assert "default" not in OPERATOR_CLASSES


def test_what_states_have_in_common_is_contained_in_them():
    def text(state, common):
        spread = f"name: toy\nspread: {{state: {state}, common: {common}, source: guess}}"
        return spoil(("name: toy", spread))

    read = read_platform(text(0.05, 0.04), "soc.yaml").spread
    assert (read.state, read.common) == (0.05, 0.04)
    (only,) = mistakes(text(0.04, 0.05))
    assert only == (
        f"soc.yaml:{line_of('name: toy') + 1}: spread.common: 0.05 is more than the whole state "
        "moves, 0.04; it is contained in that"
    )
