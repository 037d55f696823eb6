"""How benchmarks.profiling compares the fronts that two profiles give."""

from dataclasses import replace

import pytest

import parapipe
from benchmarks.profiling import agreement, all_cuts, kendall_apart, priced, regret, replay
from parapipe.cost.profile import read_profile, write_profile
from tests.cases.hand_built import platform as hand_built
from tests.cases.small_network import saved


@pytest.fixture
def fronts(tmp_path):
    """The small network's fronts by a profile and by one that is a tenth slower throughout."""
    import yaml

    file = tmp_path / "by-hand.yaml"
    file.write_text(yaml.safe_dump(hand_built().model_dump(mode="json", by_alias=True)))
    model = saved(tmp_path)
    graph = parapipe.load_model(model)
    rows = [
        row
        for scale, name in ((1, "big"), (3, "little"))
        for row in measurements(graph, name, scale)
    ]
    found = []
    for number, factor in enumerate((1.0, 1.1)):
        path = tmp_path / f"{number}.csv"
        write_profile(path, [replace(row, time_s=row.time_s * factor) for row in rows])
        assert len(read_profile(path).measurements) == len(rows)
        found.append(
            parapipe.map(model, file, profiles=[path], resolution=0, note=print, interleave="none")
        )
    return found


def measurements(graph, processor, scale):
    from parapipe.cost.profile import Measurement
    from parapipe.profiling.single_models import distinct_units

    for position, unit in enumerate(distinct_units(graph)):
        yield Measurement(
            unit.signature, unit.operator_class, unit.macs, unit.size_bytes, processor, 1e9,
            scale * (position + 1) * 1e-3, 5, 0.0, "timed", unit.then,
        )  # fmt: skip


def test_a_profile_that_is_slower_throughout_ranks_all_configurations_the_same(fronts):
    rows = priced(fronts)
    found = agreement(rows)
    assert len(rows) > 2
    assert found["rank correlation of latency"] == pytest.approx(1)
    assert found["rank correlation of period"] == pytest.approx(1)
    assert 0 < found["median difference of latency"] <= 0.1 + 1e-9


def test_pairs_that_differ_by_less_than_a_hundredth_are_not_asked_for():
    # 10.00 and 10.05 change places, which counts for nothing; 20 and 21 change places, which does
    first, second = [10.00, 10.05, 20.0, 21.0], [10.05, 10.00, 21.2, 20.0]
    assert kendall_apart(first[:3], second[:3]) == (1, 2)
    correlation, pairs = kendall_apart(first, second)
    assert (correlation, pairs) == (1, 4)  # 20 and 21.2 are 20.6 and 20.5 in the mean
    correlation, pairs = kendall_apart([1, 2, 3], [1, 3.5, 3])
    assert (correlation, pairs) == (pytest.approx(1 / 3), 3)


def test_every_cut_of_two_stages_is_priced_like_the_front_prices_it(fronts):
    first = fronts[0].configurations[0]
    cuts = all_cuts(first.graph, [front.configurations[0].costs for front in fronts])
    assert len(cuts) == 2 * len(first.graph.operators)
    alone = {row.stages: row.latency_1_ms for row in cuts if row.kind == "sequential"}
    for each in fronts[0].configurations:
        if each.kind == "sequential":
            (processor,) = each.stages[0].processors
            assert alone[processor.name] == pytest.approx(each.latency_s * 1e3)
    assert agreement(cuts)["rank correlation of period"] == pytest.approx(1)


def test_a_profile_that_ranks_the_same_costs_nothing_to_rely_on(fronts):
    found = regret(fronts)
    assert found["regret of period"] == pytest.approx(0, abs=1e-3)


def test_a_replay_at_its_own_costs_is_no_longer_than_the_configuration_says(fronts):
    for each in fronts[0].configurations:
        latency_s, period_s = replay(each.configuration, each.graph, each.costs)
        assert latency_s <= each.latency_s + 1e-9
        assert period_s <= each.period_s + 1e-9
        if each.kind == "sequential":
            assert latency_s == pytest.approx(each.latency_s)
