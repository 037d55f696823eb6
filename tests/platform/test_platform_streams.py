"""Streams: the law, what they are called, their links and power, and mistakes in a file."""

import pytest

from parapipe.platform.divided import divisions_used, named_processors, variant_with, variants
from parapipe.platform.load import read_platform
from tests.cases.soc_texts import line_of, mistakes, spoil

GPU = "host: cpu"
STREAMS = """host: cpu
    streams:
      slowdown: [1, 1.25, 1.5]
      hand_over: {latency_s: 2e-5}
      source: guess"""


def text(*changes):
    return spoil((GPU, STREAMS), *changes)


def test_each_number_of_streams_is_a_variant_with_streams_behind_the_processors():
    whole, two, three = variants(read_platform(text(), "soc.yaml"))
    assert whole.names == ("cpu", "gpu")
    assert two.names == ("cpu", "gpu", "gpu-1of2", "gpu-2of2")
    assert three.names == ("cpu", "gpu", "gpu-1of3", "gpu-2of3", "gpu-3of3")
    assert three.processors[1].divided_into == three.names[2:]
    assert [p.stream_of for p in two.processors] == [None, None, "gpu", "gpu"]
    assert [two.whole(p) for p in range(4)] == [0, 1, 1, 1]
    assert set(named_processors(whole)) == {*two.names, *three.names}


def test_an_operator_takes_as_long_as_if_all_streams_were_at_work():
    _, two, three = variants(read_platform(text(), "soc.yaml"))
    assert two.processors[2].part_slowdown("gemm").value == 1.25
    assert three.processors[4].part_slowdown("conv3x3").value == 1.5
    assert two.processors[0].part_slowdown("gemm").value == 1


def test_streams_share_the_power_and_the_cores_of_their_processor():
    whole, two, _ = variants(read_platform(text((STREAMS, GPU), ("cores: [0, 1]", "cores: [0, 1]"
        + STREAMS.removeprefix(GPU))), "soc.yaml"))  # fmt: skip
    cpu, one = whole.processors[0], two.processors[2]
    assert one.cores == cpu.cores == (0, 1)
    assert one.static_power_w == pytest.approx(cpu.static_power_w / 2)
    assert one.dynamic_power_w("gemm") == pytest.approx(cpu.dynamic_power_w("gemm") / 2)


def test_a_stream_has_the_links_of_its_processor_and_the_hand_over_to_others():
    _, two, _ = variants(read_platform(text(), "soc.yaml"))
    cpu, gpu, one, other = range(4)
    assert two.transfer_s(1e6, cpu, one) == two.transfer_s(1e6, cpu, gpu)
    assert two.transfer_s(1e6, one, other) == 2e-5
    assert two.link_path(one, other) == ("processors", 1, "streams", "hand_over")


def test_the_number_of_streams_is_found_by_those_that_are_used():
    platform = read_platform(text(), "soc.yaml")
    assert variant_with(platform, ["cpu", "gpu-2of3"]).names[2:] == (
        "gpu-1of3",
        "gpu-2of3",
        "gpu-3of3",
    )
    _, _, three = variants(platform)
    assert divisions_used(three, ["gpu-2of3"]) == ("gpu 3 streams",)


@pytest.mark.parametrize(
    ("old", "new", "key", "sentence"),
    [
        ("[1, 1.25, 1.5]", "[1]", "slowdown", "must hold at least 2; add one"),
        ("[1, 1.25, 1.5]", "[1, 0.9]", "slowdown[1]", "is 0.9, must be at least 1"),
        ("[1, 1.25, 1.5]", "[1.1, 1.2]", "slowdown",
         "begins with 1.1: one operator by itself takes 1 times as long"),
        ("[1, 1.25, 1.5]", "[1, 1.5, 1.25]", "slowdown",
         "falls: with more operators at once, none takes less time"),
        ("      slowdown", "      slow_down", "slow_down",
         "is no known key; did you mean 'slowdown'?"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_line(old, new, key, sentence):
    line = line_of(old.strip(), text())
    told = f"soc.yaml:{line}: processors[1].streams.{key}: {sentence}"
    assert told in mistakes(text((old, new)))


def test_a_processor_with_divisions_has_no_streams():
    divided = """cores: [0, 1]
    divisions: {into: [[1, 1]], parallel_share: {default: 1}, hand_over: {latency_s: 0},
                source: guess}
    streams: {slowdown: [1, 2], hand_over: {latency_s: 0}, source: guess}"""
    told = " ".join(mistakes(spoil(("cores: [0, 1]", divided))))
    assert "processors[0].streams: its cores are divided already; delete this key or" in told


def test_a_stream_is_not_called_as_another_processor():
    keys = ("name", "host", "from", "to")
    renamed = text(*((f"{key}: cpu", f"{key}: gpu-1of2") for key in keys))
    told = " ".join(mistakes(renamed))
    assert "a stream would be called gpu-1of2, as another processor; rename that one" in told
