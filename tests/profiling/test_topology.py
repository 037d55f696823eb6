"""Clusters from recorded kernel trees."""

import pytest

from parapipe.errors import ProfilingError
from parapipe.profiling.topology import clusters_of, cpu_list, read_cores
from tests.cases import recorded_trees as trees


def found(root):
    return {cluster.name: cluster.cpus for cluster in clusters_of(read_cores(root))}


@pytest.mark.parametrize(
    ("tree", "clusters"),
    [
        (trees.rk3399, {"big": (4, 5), "little": (0, 1, 2, 3)}),
        (trees.a311d, {"big": (2, 3, 4, 5), "little": (0, 1)}),
        (trees.two_fast_clusters, {"big0": (4, 5), "big1": (6, 7), "little": (0, 1, 2, 3)}),
        (trees.x86_with_threads, {"cpu": (0, 1, 2, 3)}),
        (trees.virtual, {"cpu": (0, 1)}),
        (trees.phone, {"big": (7,), "mid": (4, 5, 6), "little": (0, 1, 2, 3)}),
        (
            trees.x86_of_two_kinds,
            {"big": (0, 2, 4, 6), "little0": (8, 9, 10, 11), "little1": (12, 13, 14, 15)},
        ),
    ],
)
def test_cores_are_grouped_as_the_chip_has_them(tmp_path, tree, clusters):
    assert found(tree(tmp_path)) == clusters


def test_the_fastest_cluster_comes_first(tmp_path):
    assert list(found(trees.rk3399(tmp_path))) == ["big", "little"]


def test_a_core_knows_its_model_frequencies_and_data_caches(tmp_path):
    core = clusters_of(read_cores(trees.rk3399(tmp_path)))[0].cores[0]
    assert core.model == "Cortex-A72"
    assert core.frequencies_hz == (408e6, 1.2e9, 1.8e9)
    assert [(cache.level, cache.size_bytes) for cache in core.caches] == [
        (1, 32 << 10),
        (2, 1 << 20),
    ]


def test_a_core_with_two_threads_is_listed_once(tmp_path):
    cores = read_cores(trees.x86_with_threads(tmp_path))
    assert [core.threads for core in cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_without_cpufreq_the_clock_is_the_one_in_cpuinfo(tmp_path):
    assert read_cores(trees.virtual(tmp_path))[0].frequencies_hz == (2596128000.0,)


def test_a_core_that_is_offline_is_left_out(tmp_path):
    root = trees.a311d(tmp_path)
    (root / "sys/devices/system/cpu/online").write_text("0-4\n")
    assert found(root) == {"big": (2, 3, 4), "little": (0, 1)}


def test_without_the_kernels_files_it_is_said_what_to_do(tmp_path):
    with pytest.raises(ProfilingError, match=r"Linux only; describe it by hand"):
        read_cores(tmp_path)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,6", {0, 1, 2, 3, 6}), ("4 5", {4, 5}), ("7", {7}), ("", set()), ("x-y", set())],
)
def test_the_kernels_lists_of_cpus_are_read(text, cpus):
    assert cpu_list(text) == cpus


def test_the_machine_at_hand_has_clusters():
    clusters = clusters_of(read_cores())
    assert all(cluster.cpus for cluster in clusters)
