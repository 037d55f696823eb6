"""Clusters and streams against the pseudo-code of PPD, and by hand."""

import pytest

from parapipe.solvers.streams import assign_streams, cluster_readers, clusters
from tests.cases.ppd import algorithm_1, algorithm_2, random_graph

SEEDS = range(1000)
MOST = (1, 2, 3.5, 10)


def readers_of(times, edges):
    return [{b for a, b in edges if a == v} for v in range(len(times))]


def test_clusters_and_streams_of_1000_random_graphs_are_those_of_the_pseudo_code():
    for seed in SEEDS:
        times, edges = random_graph(seed)
        readers, most = readers_of(times, edges), MOST[seed % len(MOST)]
        found = clusters(times, readers, most)
        assert [*map(list, found)] == algorithm_1(times, edges, most), seed
        between, count = cluster_readers(found, readers), 1 + seed % 4
        assert [*assign_streams(between, count)] == algorithm_2(found, edges, count), seed


def test_clusters_of_1000_random_graphs_hold_each_operator_once_and_have_no_circles():
    for seed in SEEDS:
        times, edges = random_graph(seed)
        found = clusters(times, readers_of(times, edges), MOST[seed % len(MOST)])
        of = {v: number for number, cluster in enumerate(found) for v in cluster}
        at = {v: i for i, v in enumerate(v for cluster in found for v in cluster)}
        assert sorted(at) == [*range(len(times))]
        assert all(of[a] <= of[b] and at[a] < at[b] for a, b in edges), seed


def test_clusters_of_1000_random_graphs_exceed_the_threshold_by_their_last_operator_at_most():
    for seed in SEEDS:
        times, edges = random_graph(seed)
        most = MOST[seed % len(MOST)]
        threshold = most * sum(times) / len(times)
        for cluster in clusters(times, readers_of(times, edges), most):
            assert len(cluster) == 1 or sum(times[v] for v in cluster[:-1]) < threshold


# An operator, three branches of two, and their join:
#     0 -> 1 -> 4 -> 7,  0 -> 2 -> 5 -> 7,  0 -> 3 -> 6 -> 7
BRANCHES = [{1, 2, 3}, {4}, {5}, {6}, {7}, {7}, {7}, set()]


def test_three_branches_are_cut_as_by_hand():
    # M = 2, so a cluster is full at 2 s. 0 takes the first branch's 1. What is next least deep is
    # 2, which goes on with its own reader; so does 3; and 4, with fewer producers than 7, takes it.
    found = clusters([1.0] * 8, BRANCHES, 2)
    assert found == ((0, 1), (2, 5), (3, 6), (4, 7))
    between = cluster_readers(found, BRANCHES)
    assert between == ({1, 2, 3}, {3}, {3}, set())
    assert assign_streams(between, 2) == (0, 1, 0, 1)
    assert assign_streams(between, 4) == (0, 1, 2, 3)


def test_an_operator_of_a_long_time_is_a_cluster_by_itself():
    # The mean is 2 s. The fourth operator reaches the threshold of 4 s alone.
    assert clusters([1.0, 1.0, 1.0, 6.0, 1.0], [{1}, {2}, {3}, {4}, ()], 2) == ((0, 1, 2, 3), (4,))
    assert clusters([6.0, 1.0, 1.0, 1.0, 1.0], [{1}, {2}, {3}, {4}, ()], 2) == ((0,), (1, 2, 3, 4))


def test_with_m_of_one_equal_operators_stay_single():
    assert clusters([1.0] * 8, BRANCHES, 1) == tuple((v,) for v in range(8))


def test_an_operator_with_two_edges_from_the_cluster_goes_before_one_with_one():
    # 0 and 1 are inputs; 3 reads both, 2 reads 0 only and is met first
    assert clusters([1.0] * 4, [{2, 3}, {3}, (), ()], 4) == ((0, 2, 1, 3),)
    assert clusters([1.0] * 4, [{1, 2, 3}, {3}, (), ()], 4) == ((0, 1, 3, 2),)


def test_streams_go_in_turn_over_several_inputs_first():
    # clusters 0 and 2 read from no other; 1 reads 0, 3 reads 2
    assert assign_streams([{1}, set(), {3}, set()], 4) == (0, 2, 1, 3)


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_a_chain_is_one_stream_after_the_other(streams):
    chain = [{1}, {2}, {3}, set()]
    assert assign_streams(chain, streams) == tuple(c % streams for c in range(4))


def test_of_nothing_there_are_no_clusters():
    assert clusters([], []) == ()
    assert assign_streams([], 2) == ()
