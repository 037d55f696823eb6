"""Short platform files: chips, parts, counts and links by kind, with mistakes at their line."""

import re

import pytest

from parapipe.errors import PlatformError
from parapipe.platform.expand import expansion_of
from parapipe.platform.load import load_placed, load_platform, read_platform
from tests.cases.soc_texts import SOC, spoil

HEAD = "schema: parapipe/platform/1\nname: toy\n"
PARTS = (
    f"{HEAD}memory: lpddr4x-32bit\nprocessors:\n"
    "  - {name: cpu, part: Cortex-A76, cores: [0, 1]}\n"
    "  - {name: npu, part: RK3588-NPU, count: 2}\n"
)
MINE = "sources: {mine: {provenance: measured, title: My meter}}\n"


def read(text):
    return read_platform(text, "toy.yaml")


def mistakes(text):
    with pytest.raises(PlatformError) as raised:
        read(text)
    return [mistake.removeprefix("toy.yaml:") for mistake in raised.value.mistakes]


def test_a_file_in_full_form_is_left_as_it_is():
    raw = {"processors": ({"name": "cpu"},), "links": (), "memory": {}}
    assert expansion_of(raw).value is raw


def test_a_count_makes_copies_of_a_processor_and_of_its_links():
    text = spoil(("  - name: gpu\n", "  - name: gpu\n    count: 2\n"), text=SOC)
    text = text.replace(
        "links:\n", "links:\n  - {from: gpu, to: gpu, latency_s: 7e-4, source: guess}\n"
    )
    platform = read(text)
    assert platform.names == ("cpu", "gpu0", "gpu1")
    assert platform.transfer_s(0, 0, 1) == platform.transfer_s(0, 0, 2) == 1e-3
    assert platform.transfer_s(0, 1, 0) == platform.transfer_s(0, 2, 0) == 5e-4
    assert platform.transfer_s(0, 1, 2) == platform.transfer_s(0, 2, 1) == 7e-4
    first, second = platform.processors[1:]
    assert first.model_copy(update={"name": "gpu1"}) == second


def test_a_link_between_kinds_stands_for_all_pairs_that_no_other_covers():
    links = SOC[SOC.index("links:") : SOC.index("sources:")]
    both = (
        "links:\n  - {between: [gpu, cpu], latency_s: 2e-3, source: guess}\n"
        "  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}\n"
    )
    platform = read(SOC.replace(links, both))
    assert platform.transfer_s(0, 0, 1) == 2e-3
    assert platform.transfer_s(0, 1, 0) == 5e-4


def test_a_file_without_parts_invents_no_link():
    text = SOC[: SOC.index("links:")] + SOC[SOC.index("sources:") :]
    text = text.replace("  - name: gpu\n", "  - name: gpu\n    count: 2\n")
    assert any("nothing is said of cpu to gpu0" in each for each in mistakes(text))


def test_a_file_of_parts_gets_all_else_from_the_catalogue():
    platform = read(PARTS)
    assert platform.names == ("cpu", "npu0", "npu1")
    assert platform.processors[1].host == "cpu"
    assert platform.transfer_s(2e9, 0, 1) == pytest.approx(1 + 100e-6)
    assert platform.transfer_s(4e9, 1, 2) == pytest.approx(1 + 100e-6)
    assert platform.memory.bandwidth_bytes_per_s == pytest.approx(0.7 * 17.1e9)


def test_what_a_file_states_itself_wins():
    text = PARTS.replace(
        "count: 2}", "count: 2, launch: {overhead_s: 3e-6, source: mine}, data_types: [int8]}"
    )
    npu = read(text + MINE).processors[1]
    assert npu.launch.overhead_s == 3e-6
    assert npu.data_types == ("int8",)
    assert set(npu.peak.macs_per_s) == {"int8"}


def test_a_chips_processors_are_changed_and_left_out_by_their_names():
    text = f"{HEAD}chip: RK3588\nprocessors:\n  - {{name: big, frequency_hz: 1.8e9}}\n"
    platform = read(text + "  - {name: npu, count: 1}\n  - {name: gpu, count: 0}\n")
    assert platform.names == ("little", "big", "npu")
    big = platform.processors[1]
    assert (big.point.frequency_hz, big.point.voltage_v) == (1.8e9, 0.85)
    assert big.peak.macs_per_s["float32"] == pytest.approx(8 * 4 * 1.8e9 * 0.56, rel=1e-3)


def test_a_processor_of_another_part_takes_the_place_of_the_chips():
    text = f"{HEAD}chip: rk3588\nprocessors: [{{name: npu, part: VIP8000}}]\n"
    assert read(text).names == ("little", "big", "gpu", "npu")
    assert read(text).processors[3].backend == "onnxruntime-vsinpu"


def test_the_place_of_an_expanded_figure_is_the_line_that_stands_for_it(tmp_path):
    file = tmp_path / "toy.yaml"
    file.write_text(PARTS)
    place = load_placed(str(file)).place(("processors", 2, "launch", "overhead_s"))
    assert (place.line, place.key) == (6, "processors[2].launch.overhead_s")
    assert place.source.startswith("nominal: ResNet-50")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("Cortex-A76", "Cortex-A67"), "5: processors[0].part: 'Cortex-A67' is no part"),
        (("lpddr4x-32bit", "lpddr4x-31bit"), "3: memory: 'lpddr4x-31bit' is no memory"),
        (("count: 2", "count: 33"), "6: processors[1].count: must be a whole number from 0 to 32"),
        (("count: 2", "count: two"), "6: processors[1].count: must be a whole number"),
        (("[0, 1]}", "[0, 1], count: 2}"), "5: processors[0].count: a CPU's cores have numbers"),
        ((", cores: [0, 1]", ""), "5: processors[0].part: needs the numbers of its cores"),
        (("count: 2", "units: 0"), "6: processors[1].part: needs a whole number from 1 to 1000"),
        (
            ("count: 2", "cuont: 2"),
            "6: processors[1].cuont: is no known key; did you mean 'count'?",
        ),
        (("count: 2", "launch: {overhead_s: 9}"), "6: processors[1].launch.source: is missing"),
    ],
)
def test_one_mistake_is_told_once_at_its_line(change, said):
    (mistake,) = mistakes(PARTS.replace(*change))
    assert mistake.startswith(said)


@pytest.mark.parametrize("from_", ["chip: rk3588", "base: amlogic-a311d"])
@pytest.mark.parametrize("name", ["gpu", "gpuu", "npu9"])
def test_only_a_processor_that_is_there_can_be_left_out(from_, name):
    text = f"schema: parapipe/platform/1\nname: mine\n{from_}\nprocessors:\n"
    text += f"  - {{name: {name}, count: 0}}\n"
    if name == "gpu":
        assert name not in [each.name for each in read(text).processors]
        return
    with pytest.raises(PlatformError) as caught:
        read(text)
    (told,) = caught.value.mistakes
    assert f"5: processors[0].count: is 0, and '{name}' is no processor" in told
    assert ("did you mean 'gpu'?" in told) == (name == "gpuu")


def test_an_unknown_chip_is_answered_with_the_near_one():
    (mistake,) = mistakes(f"{HEAD}chip: rk3598\n")
    assert mistake.startswith("3: chip: 'rk3598' is no chip of the catalogue; known: a311d, ")
    assert mistake.endswith("; did you mean 'rk3588'?")


def test_a_link_between_what_are_no_kinds_is_refused():
    (mistake,) = mistakes(
        f"{PARTS}links: [{{between: [cpu, tpu], latency_s: 1, source: mine}}]\n{MINE}"
    )
    assert mistake == "7: links[0].between: must name two kinds, as in [cpu, npu]"


def test_a_source_that_the_catalogue_uses_too_is_to_be_renamed():
    text = f"{PARTS}sources: {{npu-peak: {{provenance: measured, title: My meter}}}}\n"
    (mistake,) = mistakes(text)
    assert mistake.startswith("7: sources.npu-peak: is the name of a source that the catalogue")


BASED = f"{HEAD}base: bst-a1000\n"


def test_a_variant_of_a_shipped_platform_has_everything_that_it_does_not_state_itself():
    base, variant = load_platform("bst-a1000"), read(BASED)
    assert variant.name == "toy"
    assert variant.model_copy(update={"name": base.name}) == base


def test_a_variant_changes_sections_of_the_processors_that_it_names():
    watts = "alpha_w_per_v2_hz: 1e-9, beta_w_per_v: 0.1, utilisation: {default: 1}"
    power = f"power: {{{watts}, source: mine}}"
    platform = read(f"{BASED}processors:\n  - {{name: dsp0, {power}}}\n{MINE}")
    base = load_platform("bst-a1000")
    assert platform.names == base.names
    changed = platform.processors[platform.index("dsp0")]
    before = base.processors[base.index("dsp0")]
    assert changed.power.alpha_w_per_v2_hz == 1e-9
    assert changed.model_copy(update={"power": before.power}) == before
    assert platform.sources["mine"].title == "My meter"


def test_a_variant_of_a_variant_has_what_both_state():
    platform = read(f"{HEAD}base: amlogic-a311d-2024\n")
    assert platform.profile_name == "amlogic-a311d-2024"
    assert platform.links == load_platform("amlogic-a311d").links


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("base: bst-a10000\n", "3: base: 'bst-a10000' is no .*; did you mean 'bst-a1000'\\?"),
        ("base: [1]\n", "3: base: '.*' is no shipped platform; shipped: .*"),
        ("base: bst-a1000\nchip: rk3588\n", "3: base: stands beside 'chip'; keep one of them"),
    ],
)  # fmt: skip
def test_a_base_that_is_not_shipped_or_stands_beside_a_chip_is_refused(lines, told):
    (mistake,) = mistakes(HEAD + lines)
    assert re.fullmatch(told, mistake)
