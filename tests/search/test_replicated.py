"""Replicated stages: solved by hand, by brute force, and never worse than without."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from parapipe.cost.operating_points import settings
from parapipe.errors import VerificationError
from parapipe.graph.partition import partition
from parapipe.mappings.event_graph import execution_of, sustained_period_s
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.mapping import Edge, Mapping, Placement, Transfer, channel_depth
from parapipe.mappings.memory import peak_memory
from parapipe.memory_search.low_memory import variants
from parapipe.pareto import nondominated
from parapipe.plan.build import build_plan
from parapipe.plan.verify import verify_plan
from parapipe.problems.identical_processors import NO_REPLICAS, Replicable, replica_sets
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.stages.labels import Bounds
from parapipe.search.stages.options import Option
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable
from parapipe.simulate.simulation import simulate
from tests.cases.divided import convolutions
from tests.cases.hand_built import platform, processor

EXACT = MapOptions(mapper="coarse", resolution=0.0, energy_resolution=0.0, jobs=1, cache=False)
MOVED = 2


def table(units, kinds, *, energy=True):
    """Return the stages of a chain: processor p is of kind `kinds[p]`."""

    def options(unit, locations):
        for p, kind in enumerate(kinds):
            moved = MOVED if locations and locations[0] != p else 0
            time = units[unit][kind] + moved
            yield Option(1 << p, (p,) if unit + 1 < len(units) else (), time, time, p)

    return StageTable(lambda unit, locations: tuple(options(unit, locations)), energy=energy)


def found(units, kinds, static_power_w, *, replicated=True, energy=True):
    group = tuple(p for p, kind in enumerate(kinds) if kind == 1)
    return search(
        len(units),
        table(units, kinds, energy=energy),
        static_power_w,
        identical=(group,),
        replicable=Replicable((group,), (group,)) if replicated else NO_REPLICAS,
    )


def brute_force(units, kinds, static_power_w):
    """Return the figures of all ways to cut a chain and place each stage on disjoint processors.

    A stage has processors for its units, one each, or several identical ones that take turns.
    """
    count, figures = len(units), set()
    one = [p for p, kind in enumerate(kinds) if kind == 1]
    groups = [group for r in range(2, len(one) + 1) for group in combinations(one, r)]

    def stages(begin, at, used):
        """Yield ((time, time between frames, processors), ...) for what is left of the chain."""
        if begin == count:
            yield ()
            return
        free = [p for p in range(len(kinds)) if p not in used]
        for end in range(begin + 1, count + 1):
            for places in product(free, repeat=end - begin):
                where = (at, *places)
                times = [
                    units[begin + i][kinds[p]] + (MOVED if where[i] not in (None, p) else 0)
                    for i, p in enumerate(places)
                ]
                own = frozenset(places)
                ways = [(own, 1)]
                if len(own) == 1:
                    ways += [(frozenset(g), len(g)) for g in groups if own <= set(g) <= set(free)]
                for taken, turns in ways:
                    for rest in stages(end, places[-1], used | taken):
                        yield ((sum(times), -(-sum(times) // turns), taken), *rest)

    for each in stages(0, None, frozenset()):
        period = max(every for _, every, _ in each)
        taken = frozenset().union(*(own for *_, own in each))
        time = sum(time for time, *_ in each)
        energy = time + sum(static_power_w[p] for p in taken) * period
        figures.add((time, period, round(energy, 6)))
    return figures


def front(figures):
    return set(nondominated(figures, lambda each: each))


def figures_of(candidates):
    return {(c.latency_ns, c.period_ns, round(c.energy_nj, 6)) for c in candidates}


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3),
    st.permutations([0, 1, 1, 1]),
)
@hypothesis_settings(deadline=None, max_examples=25)
def test_the_front_is_that_of_all_cuts_places_and_replicas(units, kinds):
    static_power_w = tuple((0.25, 0.125)[kind] for kind in kinds)
    mine = figures_of(found(units, kinds, static_power_w))
    assert front(mine) == front(brute_force(units, kinds, static_power_w))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.permutations([0, 1, 1, 1]),
    st.booleans(),
)
@hypothesis_settings(deadline=None)
def test_replicas_leave_nothing_out_and_lower_no_throughput(units, kinds, energy):
    power = (0.1,) * 4
    every, plain = (
        found(units, kinds, power, replicated=turns, energy=energy) for turns in (True, False)
    )
    assert min(c.period_ns for c in every) <= min(c.period_ns for c in plain)
    shown = [c.nano_objectives for c in every]
    for each in plain:
        assert any(
            all(
                a <= b + 1e-9
                for a, b in zip(mine[: 2 + energy], each.nano_objectives, strict=False)
            )
            for mine in shown
        )


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4))
@hypothesis_settings(deadline=None)
def test_no_configuration_has_a_shorter_period_than_the_bound(units):
    kinds = (0, 1, 1, 1)
    bounds = Bounds(len(units), table(units, kinds, energy=False), 4, replica_sets([(1, 2, 3)]))
    best = min(period for _, period, _ in brute_force(units, kinds, (0.0,) * 4))
    for whole in (True, False):
        assert bounds.least_periods_ns(every_cut=whole)[-1] <= best


def test_sets_that_take_turns_follow_each_other_in_their_group():
    assert replica_sets([(0, 1, 3), (2,)]) == {0b0001: [0b0011, 0b1011], 0b0010: [0b1010]}


def cores(count, **changes):
    """Return a platform of so many identical cores."""
    return platform(*(processor(f"core{i}", cores=[i], **changes) for i in range(count)))


def explored(graph, soc, options=EXACT):
    costs = settings(graph, soc, most=1, profiles=[]).combinations[0].costs
    return costs, explore(graph, partition(graph), costs, options)


@pytest.mark.parametrize("count", [2, 4])
def test_one_operator_on_identical_cores_has_so_many_times_the_throughput(count):
    graph, soc = convolutions(8), cores(count)
    costs, exploration = explored(graph, soc)
    best = min(exploration.found, key=lambda each: each.evaluated.period_s)
    time_s = costs.time_s(0, 0)
    assert best.evaluated.latency_s == pytest.approx(time_s)
    assert best.evaluated.period_s == pytest.approx(time_s / count)
    assert best.evaluated.sustained_period_s == pytest.approx(time_s / count)
    assert best.mapping.kind == "replicated"
    assert "replicated-T" in best.names
    assert best.mapping.processors == tuple(range(count))


def test_a_budget_of_a_moment_finds_the_cores_that_take_turns_on_the_whole_network():
    graph, soc = convolutions(8, 16, 8), cores(3)
    costs, exploration = explored(graph, soc, replace(EXACT, budget_s=1e-6))
    assert exploration.unfinished
    alone_s = sum(costs.time_s(v, 0) for v in range(len(graph.operators)))
    best = min(exploration.found, key=lambda each: each.evaluated.period_s)
    assert best.mapping.replicated == ((0, 1, 2),)
    assert best.evaluated.latency_s == pytest.approx(alone_s)
    assert best.evaluated.period_s == pytest.approx(alone_s / 3)


def test_under_a_limit_of_memory_fewer_cores_take_turns():
    graph, soc = convolutions(8, 16), cores(3)
    costs, exploration = explored(graph, soc)
    storage = Storage.of(graph, costs)
    best = min(exploration.found, key=lambda each: each.evaluated.period_s)
    assert best.mapping.replicated == ((0, 1, 2),)
    others = [*variants(best, graph, costs)]
    assert {each.mapping.replicated for each in others} == {((0, 1),), ()}
    peaks = [
        peak_memory(each.mapping, storage, each.evaluated.period_s).total.size_bytes
        for each in (best, *others)
    ]
    assert peaks[0] > max(peaks[1:])
    for each in others:
        verify_plan(build_plan(graph, soc, costs, each.mapping))
        assert each.evaluated.period_s > best.evaluated.period_s


def test_processors_that_differ_take_no_turns():
    graph = convolutions(8)
    soc = platform(
        processor("one", cores=[0]),
        processor("other", cores=[1], peak={"source": "guess", "macs_per_s": {"float32": 9e8}}),
    )
    _, exploration = explored(graph, soc)
    assert all(each.mapping.kind != "replicated" for each in exploration.found)


def chain():
    """Return a stage of 6 s on two cores in turn, then one of 3 s on a third, a second apart."""
    return Mapping(
        (Placement(0, 0, 0.0, 6.0, 0), Placement(1, 2, 1.0, 3.0, 1)),
        (Transfer("t", 0, 0, 2, 1, 1.0),),
        (Edge(0, 1, 0),),
    ).with_replicas([(0, 1)])


def test_a_stage_on_two_cores_in_turn_keeps_the_pace_of_one_of_half_its_time():
    mapping = chain()
    assert [stage.lag for stage in mapping.stages] == [0, 2]
    assert [transfer.lag for transfer in mapping.transfers] == [2]
    assert [stage.every_s for stage in mapping.stages] == [3.0, 3.0]
    assert mapping.slots(mapping.edges[0]) == channel_depth(0, 2) == 3
    assert sustained_period_s(mapping) == 3.0
    assert mapping.kind == "replicated"


def test_with_too_few_slots_the_cores_that_take_turns_wait():
    # Of two slots one is held from a frame's start on the first stage, 6 s, to its end, 3 s later.
    graph = execution_of(chain(), slots=[2]).graph
    assert graph.period_ps() == 4.5e12


def replicated_plan(graph, soc):
    costs, exploration = explored(graph, soc)
    best = min(
        (each for each in exploration.found if each.mapping.kind == "replicated"),
        key=lambda each: each.evaluated.period_s,
    )
    return build_plan(graph, soc, costs, best.mapping)


@pytest.mark.parametrize("channels", [(8,), (8, 16, 8)])
def test_a_simulation_comes_to_the_period_of_the_plan(channels):
    soc = platform(
        processor("core0", cores=[0]),
        processor("core1", cores=[1]),
        processor("core2", cores=[2], peak={"source": "guess", "macs_per_s": {"float32": 1.1e9}}),
    )
    plan = replicated_plan(convolutions(*channels), soc)
    made = simulate(plan, frames=40, saturate=True)
    assert made.steady is not None
    assert float(made.steady.period_ps) / 1e12 == pytest.approx(
        plan.predicted.sustained_period_s, abs=1e-12
    )
    assert plan.predicted.sustained_period_s == pytest.approx(plan.predicted.period_s)
    paced = simulate(plan, frames=40)
    latencies = [frame.done_s - frame.admitted_s for frame in paced.record.frames]
    assert max(latencies) <= plan.predicted.latency_s * (1 + 1e-9)
    where = {(span.frame, span.resource) for span in made.record.spans}
    turns = plan.stages[0].processors[0]
    if turns.replicas:
        names = (turns.name, *turns.replicas)
        assert {(n, p) for n, p in where if p in names} == {
            (n, names[n % len(names)]) for n in range(40)
        }


def changed(plan, **changes):
    stage = plan.stages[0]
    first = stage.processors[0].model_copy(update=changes)
    stages = (stage.model_copy(update={"processors": (first,)}), *plan.stages[1:])
    return plan.model_copy(update={"stages": stages})


def violations(plan):
    with pytest.raises(VerificationError) as caught:
        verify_plan(plan)
    return " ".join(caught.value.violations)


def test_the_verifier_refuses_wrong_replicas():
    plan = replicated_plan(convolutions(8), cores(3))
    assert plan.stages[0].processors[0].replicas == ("core1", "core2")
    assert "stands in the stages twice" in violations(changed(plan, replicas=("core1", "core1")))
    assert "is listed and not used" in violations(changed(plan, replicas=("core1",)))
    assert "is no processor listed" in violations(changed(plan, replicas=("core1", "core9")))
    period = violations(changed(plan, replicas=None))
    assert "the period is" in period
    slower = plan.processors[1].operating_point.model_copy(update={"frequency_hz": 9e8})
    other = plan.processors[1].model_copy(update={"operating_point": slower})
    odd = plan.model_copy(update={"processors": (plan.processors[0], other, plan.processors[2])})
    assert "'core1' is not identical to 'core0'" in violations(odd)


def test_what_is_behind_a_replicated_stage_lags_by_its_replicas():
    mapping = chain()
    third = replace(mapping.placements[1], lag=1)
    wrong = replace(mapping, placements=(mapping.placements[0], third))
    assert wrong.slots(wrong.edges[0]) == 2
    assert np.isclose(sustained_period_s(wrong), 4.5)
