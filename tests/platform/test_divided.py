"""Divided clusters: the parts, their links and power, and mistakes in what a file says of them."""

import pytest

from parapipe.platform.divided import divisions_used, named_processors, variant_with, variants
from parapipe.platform.load import read_platform
from tests.cases.divided import divided
from tests.cases.soc_texts import SOC, line_of, mistakes, spoil

WHOLE = "cores: [0, 1]"
DIVIDED = """cores: [0, 1]
    divisions:
      into: [[1, 1]]
      parallel_share: {default: 0.5}
      hand_over: {latency_s: 2e-5, bandwidth_bytes_per_s: 1e9}
      source: guess"""


def text(*changes):
    return spoil((WHOLE, DIVIDED), *changes)


def test_without_divisions_there_is_the_platform_alone():
    platform = read_platform(SOC, "soc.yaml")
    assert [*variants(platform)] == [platform]


def test_parts_stand_behind_the_processors_and_take_their_cores_in_order():
    whole, pairs, uneven = variants(divided((2, 2), (1, 3)))
    assert whole.names == ("big", "gpu")
    assert pairs.names == ("big", "gpu", "big-4-5", "big-6-7")
    assert uneven.names == ("big", "gpu", "big-4", "big-5-7")
    assert [p.cores for p in uneven.processors] == [(4, 5, 6, 7), (), (4,), (5, 6, 7)]
    assert [p.divided_into for p in whole.processors] == [(), ()]
    assert pairs.processors[0].divided_into == ("big-4-5", "big-6-7")
    assert [pairs.whole(p) for p in range(4)] == [0, 1, 0, 0]


def test_parts_of_all_divisions_have_names():
    found = named_processors(divided((2, 2), (1, 3), (1, 1, 2)))
    assert {name: p.cores for name, p in found.items()} == {
        "big": (4, 5, 6, 7), "gpu": (), "big-4-5": (4, 5), "big-6-7": (6, 7), "big-4": (4,),
        "big-5-7": (5, 6, 7), "big-5": (5,),
    }  # fmt: skip


def test_divisions_of_several_clusters_are_combined():
    both = spoil(
        (WHOLE, DIVIDED),
        ("kind: gpu", "kind: cpu"),
        ("host: cpu", DIVIDED.replace("[0, 1]", "[2, 3, 4]").replace("[[1, 1]]", "[[1, 2]]")),
    )
    names = [platform.names[2:] for platform in variants(read_platform(both, "soc.yaml"))]
    assert names == [(), ("gpu-2", "gpu-3-4"), ("cpu-0", "cpu-1"),
                     ("cpu-0", "cpu-1", "gpu-2", "gpu-3-4")]  # fmt: skip


def test_a_part_has_the_links_of_its_cluster_and_the_hand_over_to_other_parts():
    _, platform = variants(read_platform(text(), "soc.yaml"))
    cpu, gpu, one, other = range(4)
    assert platform.transfer_s(1e6, one, gpu) == platform.transfer_s(1e6, cpu, gpu) == 2e-3
    assert platform.transfer_s(1e6, gpu, other) == 5e-4
    assert platform.transfer_s(1e6, one, other) == platform.transfer_s(1e6, other, one)
    assert platform.transfer_s(1e6, one, other) == pytest.approx(2e-5 + 1e-3)
    assert platform.link_path(one, gpu) == ("links", 0)
    assert platform.link_path(gpu, other) == ("links", 1)
    assert platform.link_path(one, other) == ("processors", 0, "divisions", "hand_over")


def test_a_part_draws_the_share_of_its_cores():
    _, platform = variants(divided((1, 3)))
    whole, _, one, three = platform.processors
    for figure in (lambda p: p.static_power_w, lambda p: p.dynamic_power_w("conv3x3")):
        assert figure(one) == pytest.approx(figure(whole) / 4)
        assert figure(three) == pytest.approx(figure(whole) * 3 / 4)


@pytest.mark.parametrize(
    ("share", "cores", "slowdown"), [(1, 2, 2), (1, 1, 4), (0, 1, 1), (0.6, 2, 1.6), (0.6, 1, 2.8)]
)
def test_only_the_parallel_share_takes_longer_on_fewer_cores(share, cores, slowdown):
    _, platform = variants(divided((cores, 4 - cores), share=share))
    assert platform.processors[2].part_slowdown("gemm").value == pytest.approx(slowdown)
    assert platform.processors[0].part_slowdown("gemm").value == 1


def test_a_part_keeps_the_clock_of_its_cluster():
    _, platform = variants(read_platform(text(), "soc.yaml"))
    slow = platform.at([1e9, 8e8, 1e9, 1e9]).processors[2]
    assert slow.point.frequency_hz == slow.whole.point.frequency_hz == 1e9


def test_parts_keep_their_tensors_in_the_memory_of_their_cluster():
    memories = "memories: [{name: dram, processors: [cpu], source: guess}, "
    memories += "{name: local, processors: [gpu], source: guess}]\nprocessors:\n"
    platform = read_platform(text(("processors:\n", memories)), "soc.yaml")
    _, parts = variants(platform)
    assert parts.memory_system.memory_of == {"cpu": 0, "gpu": 1, "cpu-0": 0, "cpu-1": 0}


def test_the_division_is_found_by_the_parts_that_are_used():
    platform = divided((2, 2), (1, 3))
    assert variant_with(platform, ["gpu", "big-5-7"]).names[2:] == ("big-4", "big-5-7")
    assert variant_with(platform, ["big", "gpu"]) == variant_with(platform, ["nobody"]) == platform
    assert variant_with(platform, ["big-4-5", "big-4"]) == platform
    _, pairs, _ = variants(platform)
    assert divisions_used(pairs, ["gpu", "big-6-7"]) == ("big 2+2",)
    assert divisions_used(pairs, ["gpu"]) == ()


@pytest.mark.parametrize(
    ("old", "new", "key", "sentence"),
    [
        ("[[1, 1]]", "[[1, 2]]", "into[0]", "1+2 are 3 cores, and there are 2"),
        ("[[1, 1]]", "[[1, 1], [1, 1]]", "into[1]", "1+1 is listed twice; keep one"),
        ("[[1, 1]]", "[[2]]", "into[0]", "must hold at least 2; add one"),
        ("[[1, 1]]", "[]", "into", "must hold at least 1; add one"),
        ("[[1, 1]]", "[[0, 2]]", "into[0][0]", "is 0, must be at least 1"),
        ("latency_s: 2e-5", "latency: 2e-5", "hand_over.latency",
         "is no known key; did you mean 'latency_s'?"),
        ("parallel_share", "parallel", "parallel",
         "is no known key; did you mean 'parallel_share'?"),
        ("[[1, 1]]", "[[1.5, 0.5]]", "into[0][0]", "must be a whole number"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_line(old, new, key, sentence):
    line = line_of(old, text())
    told = f"soc.yaml:{line}: processors[0].divisions.{key}: {sentence}"
    assert told in mistakes(text((old, new)))


def test_a_processor_without_cores_is_not_divided():
    own = DIVIDED.removeprefix("cores: [0, 1]\n    ")
    told = mistakes(spoil((WHOLE, own)))
    line = line_of("divisions", spoil((WHOLE, own)))
    sentence = "there are no cores to divide; list them under cores, or delete the key"
    assert f"soc.yaml:{line}: processors[0].divisions: {sentence}" in told


def test_a_part_is_not_called_as_another_processor():
    spoilt = text(("name: gpu", "name: cpu-1"))
    assert (
        "processors[0].divisions.into[0]: a part would be called cpu-1, as another processor; "
        "rename that one"
    ) in " ".join(mistakes(spoilt))
