"""Platform files of detected machines."""

from dataclasses import replace
from itertools import permutations
from math import sqrt

import numpy as np
import pytest

from parapipe.cost.spread import platform_spread
from parapipe.errors import ArgumentError, ProfilingError
from parapipe.platform.load import load_placed, read_platform
from parapipe.profiling.detect import MachineFigures, platform_text, processors_of
from parapipe.profiling.figures import Figures, StateSpread, state_spread
from parapipe.profiling.identical_figures import HandOver, same_figures
from parapipe.profiling.topology import clusters_of, read_cores
from tests.cases import recorded_trees as trees

FIGURES = Figures({"float32": 2e10, "int32": 3e9}, 1e-6, 8e9, 2e-5)


def described(root, *, split=None, chosen=(), accelerators=(), busy=False):
    clusters = processors_of(clusters_of(read_cores(root)), split, chosen)
    hand_over = HandOver(1e-5, 2e9, 0.2, busy)
    pairs = {
        (p, q): hand_over for p in range(len(clusters)) for q in range(len(clusters)) if p != q
    }
    others = dict.fromkeys(accelerators, FIGURES)
    measured = MachineFigures(
        (FIGURES,) * len(clusters), pairs, others, StateSpread(0.03, 0.02), 10
    )
    return read_platform(platform_text("mine", clusters, measured), "mine.yaml")


TREES = [
    trees.rk3399,
    trees.a311d,
    trees.two_fast_clusters,
    trees.x86_with_threads,
    trees.virtual,
    trees.phone,
    trees.x86_of_two_kinds,
]


@pytest.mark.parametrize("tree", TREES)
def test_a_detected_machine_is_a_platform_without_mistakes(tmp_path, tree):
    platform = described(tree(tmp_path))
    assert all(p.cores and p.backend == "onnxruntime-cpu" for p in platform.processors)


def test_what_a_hand_over_takes_is_synchronisation_and_has_a_spread(tmp_path):
    platform = described(trees.rk3399(tmp_path))
    assert platform.transfer_s(2e6, 0, 1) == pytest.approx(1e-5 + 1e-3)
    assert {(link.overhead_s, link.latency_s, link.occupies) for link in platform.links} == {
        (1e-5, 0, "nothing")
    }
    assert platform_spread(platform).transfers == 0.2
    assert platform_spread(platform).state == 0.03
    assert platform_spread(platform).common == 0.02


def test_hand_overs_that_are_work_keep_the_receiver_busy(tmp_path):
    platform = described(trees.rk3399(tmp_path), busy=True)
    assert {link.occupies for link in platform.links} == {"receiver"}
    assert platform.transfer_resource == ((None, 1), (0, None))


def test_what_processors_do_at_the_same_time_is_common():
    draw = np.random.default_rng(0)
    common, one, other = np.exp(draw.normal(0, 0.05, (3, 4000)))
    for count, share in ((0, 0), (1, sqrt(1 / 2)), (2, sqrt(4 / 5))):
        found = state_spread([common**count * one, common**count * other])
        state = 0.05 * sqrt(2 * (1 + count**2))
        assert found.state == pytest.approx(state, rel=0.05)
        assert found.common == pytest.approx(share * state, rel=0.05, abs=0.02)
    assert state_spread([common, common]).common == state_spread([common, common]).state
    assert state_spread([common, 1 / common]).common == 0  # not below
    assert state_spread([common]).common == 0


def test_a_disturbed_moment_says_nothing_of_the_others():
    times_s = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.03, 0.97]
    assert state_spread([[*times_s, 3.0]]).state < 1.5 * state_spread([times_s]).state


def test_identical_processors_have_the_same_figures_and_others_their_own():
    fast, other = replace(FIGURES, launch_s=1.1e-6), replace(FIGURES, launch_s=3e-6)
    moved = {
        (p, q): HandOver(1e-5 + 1e-7 * (3 * p + q), 1e12, 0.1, busy=p == 0)
        for p, q in permutations(range(4), 2)
    }
    cpus, found = same_figures("aabb", [FIGURES, fast, FIGURES, other], moved)
    assert cpus[0] == cpus[1]
    assert cpus[0].launch_s == pytest.approx(1.05e-6)
    assert cpus[2:] == (FIGURES, other)  # these two differ by more than tests scatter
    assert found[0, 1] == found[1, 0]
    assert found[0, 1].busy  # as one of the two says
    assert found[0, 2] == found[1, 2] != found[0, 3] == found[1, 3]
    assert found[2, 3] == moved[2, 3] != found[3, 2] == moved[3, 2]


def test_operating_points_are_the_kernels_and_the_default_is_the_highest(tmp_path):
    big = described(trees.a311d(tmp_path)).processors[0]
    assert [point.frequency_hz for point in big.operating_points] == [5e8, 2.208e9]
    assert big.point.frequency_hz == 2.208e9
    assert big.description == "4 × Cortex-A73, 32 KiB L1, 1 MiB L2"


def test_unknown_power_is_nominal_and_one_watt_for_each_core(tmp_path):
    platform = described(trees.a311d(tmp_path))
    big = platform.processors[0]
    assert big.static_power_w + big.dynamic_power_w("conv3x3") == pytest.approx(4)
    source = platform.sources[big.power.source]
    assert source.provenance == "nominal"
    assert "not known" in source.title


def test_placeholders_of_voltage_and_of_an_accelerators_clock_are_nominal(tmp_path):
    clusters = clusters_of(read_cores(trees.virtual(tmp_path)))
    measured = MachineFigures((FIGURES,), {}, {("onnxruntime-cuda", "gpu"): FIGURES})
    path = tmp_path / "mine.yaml"
    path.write_text(platform_text("mine", clusters, measured), encoding="utf-8")
    placed = load_placed(str(path))

    def provenance(processor, key):
        place = placed.place(("processors", processor, "clock", "points", 0, key))
        return place.source.partition(":")[0]

    assert [provenance(0, key) for key in ("frequency_hz", "voltage_v")] == ["measured", "nominal"]
    assert [provenance(1, key) for key in ("frequency_hz", "voltage_v")] == ["nominal", "nominal"]


def test_a_cluster_is_divided_into_processors_of_one_core(tmp_path):
    platform = described(trees.virtual(tmp_path), split=2)
    assert {p.name: p.cores for p in platform.processors} == {"cpu0": (0,), "cpu1": (1,)}


def test_a_cluster_is_divided_no_further_than_into_cores(tmp_path):
    platform = described(trees.rk3399(tmp_path), split=3)
    assert [p.cores for p in platform.processors] == [(4,), (5,), (0,), (1,), (2, 3)]


def test_processors_are_those_that_are_asked_for(tmp_path):
    platform = described(trees.rk3399(tmp_path), chosen=((4,), (5,), (0, 1)))
    assert {p.name: p.cores for p in platform.processors} == {
        "big0": (4,),
        "big1": (5,),
        "little": (0, 1),
    }


def test_all_that_is_wrong_with_processors_is_told_at_once(tmp_path):
    clusters = clusters_of(read_cores(trees.rk3399(tmp_path)))
    with pytest.raises(ArgumentError) as caught:
        processors_of(clusters, None, ((3, 4), (9,), (3,)))
    assert str(caught.value) == (
        "the processors asked for cannot be: core 9 is not among 0, 1, 2, 3, 4, 5; "
        "core 3 is listed twice; cores 3, 4 are of different clusters (big, little)"
    )


def test_an_accelerator_that_runs_is_a_processor_with_links_to_all_others(tmp_path):
    platform = described(trees.a311d(tmp_path), accelerators=[("onnxruntime-cuda", "gpu")])
    gpu = platform.processors[2]
    assert (gpu.name, gpu.kind, gpu.backend, gpu.host) == ("cuda", "gpu", "onnxruntime-cuda", "big")
    assert len(platform.link_of) == 6
    assert platform.link_of[0, 2].latency_s == pytest.approx(1e-5)


def test_without_any_frequency_the_machine_has_to_be_described_by_hand(tmp_path):
    with pytest.raises(ProfilingError, match="reports no frequency for core 0"):
        described(trees.virtual(tmp_path, clock=""))
