"""Platform files in short form, of a chip or of parts."""

import pytest

import parapipe
from parapipe.errors import PlatformError
from parapipe.platform.catalogue import catalogue
from parapipe.platform.load import read_platform

A76, A55 = "4xCortex-A76@2.4GHz", "4xCortex-A55@1.8GHz"


@pytest.mark.parametrize("chip", catalogue().chips)
def test_a_chip_takes_at_most_ten_lines(chip):
    assert len(parapipe.new_platform(chip=chip).text.splitlines()) <= 10


def test_an_rk3588_of_parts_takes_at_most_ten_lines():
    made = parapipe.new_platform(
        cpu=[A76, A55], gpu=["Mali-G610"], npu=["3xRK3588-NPU"], memory="lpddr4x-64bit"
    )
    assert made.processors == ("little", "big", "gpu", "npu0", "npu1", "npu2")
    assert len(made.text.splitlines()) <= 10
    chip = read_platform(parapipe.new_platform(chip="rk3588").text, "chip.yaml")
    parts = read_platform(made.text, "parts.yaml")
    for one, other in zip(chip.processors, parts.processors, strict=True):
        assert (one.cores, one.peak.macs_per_s) == (other.cores, other.peak.macs_per_s)
    assert chip.links == parts.links


def test_a_file_says_what_was_asked_for_and_no_more():
    made = parapipe.new_platform(
        cpu=["2xcortex-a55@1800MHz"], gpu=["2xMali-G52"], memory="ddr4-32bit"
    )
    assert made.text.splitlines()[1:] == [
        "schema: parapipe/platform/1",
        "name: board",
        "memory: ddr4-32bit",
        "processors:",
        "  - {name: cpu, part: Cortex-A55, cores: [0, 1], frequency_hz: 1.8e9}",
        "  - {name: gpu, part: Mali-G52, units: 2}",
    ]


def test_slow_cores_are_counted_first():
    made = parapipe.new_platform(
        cpu=["Cortex-X3", "4xCortex-A510", "3xCortex-A715"], memory="lpddr5x-64bit", name="phone"
    )
    platform = read_platform(made.text, "phone.yaml")
    assert platform.name == "phone"
    assert platform.names == ("little", "big", "prime")
    assert [p.cores for p in platform.processors] == [(0, 1, 2, 3), (4, 5, 6), (7,)]


def test_a_chip_gets_another_npu():
    made = parapipe.new_platform(chip="raspberry-pi-5", npu=["2xRK3588-NPU"])
    assert made.processors == ("cpu", "npu0", "npu1")


def test_two_npus_of_different_parts_are_told_apart():
    made = parapipe.new_platform(chip="raspberry-pi-5", npu=["RK3588-NPU", "VIP8000"])
    assert made.processors == ("cpu", "rk3588-npu", "vip8000")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing says what the platform is made of: give a chip \\(a311d, "),
        ({"cpu": [A76]}, "the memory is missing; give one of ddr3-32bit, "),
        ({"chip": "rk3589"}, "has no chip 'rk3589'; it has .*; did you mean 'rk3588'\\?"),
        ({"chip": "rk3588", "cpu": [A76]}, "rk3588 has its CPU; leave out `cpu`, or `chip`"),
        ({"chip": "rk3588", "memory": "ddr9"}, "has no memory 'ddr9'; it has ddr3-32bit, "),
        (
            {"cpu": ["4xCortex-A77x@2.4GHz"], "memory": "ddr4-32bit"},
            "has no cpu 'Cortex-A77x'; it has Cortex-A53, .*; did you mean 'Cortex-A7",
        ),
        (
            {"chip": "rk3588", "gpu": ["Cortex-A76"]},
            "Cortex-A76 is a cpu; give it as cpu, not as gpu",
        ),
        (
            {"chip": "rk3588", "gpu": ["Mali-G610@fast"]},
            "'Mali-G610@fast' is no part and its clock",
        ),
        (
            {"chip": "rk3588", "gpu": ["Mali-G610@1.2.3GHz"]},
            "'1.2.3' of 'Mali-G610@1.2.3GHz' is no",
        ),
        ({"chip": "rk3588", "npu": ["0xVIP8000"]}, "'0xVIP8000' asks for 0 units; give 1 to 1000"),
        ({"chip": "rk3588", "npu": ["99xVIP8000"]}, "has one mistake"),
        ({"chip": "rk3588", "gpu": ["Mali-G610@9999999GHz"]}, "has .*mistake"),
    ],
)
def test_what_cannot_be_made_is_told(asked, said):
    with pytest.raises(PlatformError, match=said):
        parapipe.new_platform(**asked)


def test_a_file_is_written_whole(tmp_path):
    made = parapipe.new_platform(chip="rk3566")
    made.write(tmp_path / "board.yaml")
    assert (tmp_path / "board.yaml").read_text() == made.text
    assert parapipe.load_platform(tmp_path / "board.yaml").names == ("cpu", "gpu", "npu")
