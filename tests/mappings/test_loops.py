"""A step of a recurrent model waits for the one before: loops of states bound every period."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import isclose
from random import Random

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import AssignmentError, VerificationError
from parapipe.graph.operator_graph import State
from parapipe.graph.states import longest_loop_path
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.feedback import keep_loops, loop_period_s, with_feedback
from parapipe.mappings.lifetimes import Lives, Storage
from parapipe.mappings.mapping import Mapping, Placement
from parapipe.mappings.memory import peaks_of
from parapipe.plan.build import build_plan
from parapipe.plan.verify import verify_plan
from parapipe.search.configurations_from_costs import explore
from parapipe.search.interleaved import InterleavedSearch
from parapipe.search.options import MapOptions
from parapipe.search.stages.finest_cuts import finest_partition
from parapipe.search.stages.stage_search import StageSearch
from parapipe.simulate.simulation import simulate
from tests.cases import hand_built
from tests.cases.pipeline_cases import every_division, random_costs

SEARCHES = (StageSearch(), InterleavedSearch())
MS = 1e-3


def chain(count, *, reader, writer, sequences=1):
    """Operators in a row; a state is read by one and made by another one."""
    builder = hand_built.GraphBuilder(x=(1, 4), h=(1, 4))
    names = ["x"]
    for v in range(count):
        reads = [names[-1], "h"] if v == reader else [names[-1]]
        names.append(builder.add("Add" if v == reader else "Relu", reads, (1, 4)))
    graph = builder.graph(*dict.fromkeys((names[writer + 1], names[-1])))
    return replace(graph, states=(State("h", names[writer + 1]),), sequences=sequences)


def costs_of(graph, times_ms, *, moves_ms=0):
    """Costs of plain numbers: times by operator, the same on each of two processors."""
    costs = random_costs(graph, 2, 0)
    rows = [[each * MS] * 2 for each in times_ms]
    object.__setattr__(costs, "times", rows)
    matrix = ((0.0, moves_ms * MS), (moves_ms * MS, 0.0))
    object.__setattr__(costs, "transfers", dict.fromkeys(graph.tensors, matrix))
    return with_loop(graph, costs)


def with_loop(graph, costs):
    """Costs that know the loop of their graph, as those of a platform do."""
    path = longest_loop_path(graph, [min(row) for row in costs.times])
    object.__setattr__(costs, "loop", path)
    object.__setattr__(costs, "sequences", graph.sequences)
    return costs


def taken(graph, costs, processors, stages):
    return evaluate(mapping_of(graph, None, costs, Assignment(processors, stages)), graph, costs)


TWO_STAGES = (0, 0, 1), ((0, 1), (2,))


def test_a_pipeline_that_a_state_passes_through_has_the_period_of_one_processor():
    graph = chain(3, reader=0, writer=2)
    found = taken(graph, costs_of(graph, (4, 2, 4)), *TWO_STAGES)
    assert found.longest_stage_s == pytest.approx(6 * MS)
    assert found.period_s == found.loop_s == pytest.approx(10 * MS)
    assert found.sustained_period_s == pytest.approx(10 * MS)
    assert found.sequences == 2


def test_two_sequences_in_turn_fill_it():
    graph = chain(3, reader=0, writer=2, sequences=2)
    found = taken(graph, costs_of(graph, (4, 2, 4)), *TWO_STAGES)
    assert found.period_s == found.sustained_period_s == pytest.approx(6 * MS)
    assert found.loop_s == pytest.approx(10 * MS)


def test_the_way_back_of_a_state_to_another_processor_counts():
    graph = chain(3, reader=0, writer=2)
    costs = costs_of(graph, (4, 2, 4), moves_ms=1)
    found = taken(graph, costs, *TWO_STAGES)
    assert found.loop_s == pytest.approx((4 + 2 + 1 + 4 + 1) * MS)
    assert found.sustained_period_s == pytest.approx(12 * MS)
    three = replace(graph, sequences=3)
    found = taken(three, with_loop(three, costs), *TWO_STAGES)
    assert found.period_s == pytest.approx(6 * MS)


def test_a_token_that_is_chosen_outside_takes_no_time_on_its_way():
    graph = chain(3, reader=0, writer=2)
    token = replace(graph, states=tuple(replace(each, kind="token") for each in graph.states))
    found = taken(token, costs_of(token, (4, 2, 4), moves_ms=1), *TWO_STAGES)
    assert found.loop_s == pytest.approx((4 + 2 + 1 + 4) * MS)


def test_a_state_of_one_operator_lets_a_pipeline_be():
    graph = chain(3, reader=1, writer=1)
    found = taken(graph, costs_of(graph, (4, 2, 4)), *TWO_STAGES)
    assert found.period_s == pytest.approx(6 * MS)
    assert (found.loop_s, found.sequences) == (pytest.approx(2 * MS), 1)


def test_what_is_written_before_it_is_read_sets_no_period():
    graph = chain(3, reader=2, writer=0)
    found = taken(graph, costs_of(graph, (4, 2, 4)), *TWO_STAGES)
    assert (found.loop_s, found.sequences) == (0, 1)


def test_energy_counts_static_power_for_the_period_of_the_loop():
    graph = chain(3, reader=0, writer=2)
    costs = costs_of(graph, (4, 2, 4))
    alone = replace(graph, states=())
    found, free = taken(graph, costs, *TWO_STAGES), taken(alone, costs, *TWO_STAGES)
    static_w = sum(costs.static_power_w)
    assert found.energy_j - free.energy_j == pytest.approx(static_w * 4 * MS)


def test_identical_processors_in_turn_hand_a_state_over_unless_sequences_come_back_to_them():
    graph = chain(2, reader=0, writer=1)
    costs = costs_of(graph, (4, 4), moves_ms=1)
    mapping = mapping_of(graph, None, costs, Assignment((0, 0), ((0, 1),))).with_replicas([(0, 1)])
    found = evaluate(mapping, graph, costs)
    assert found.period_s == found.loop_s == pytest.approx(9 * MS)
    two = replace(graph, sequences=2)
    assert evaluate(mapping, two, costs).period_s == pytest.approx(4 * MS)


def repeating(*lags_and_starts_ms, period_ms):
    """A mapping of operators of 4 ms that is made for a period, each on a processor of its own."""
    placements = tuple(
        Placement(v, v, start * MS, (start + 4) * MS, lag)
        for v, (lag, start) in enumerate(lags_and_starts_ms)
    )
    return Mapping(placements, period_s=period_ms * MS)


def test_a_repeating_mapping_is_stretched_until_its_states_are_there_in_time():
    graph = chain(2, reader=0, writer=1)
    costs = costs_of(graph, (4, 4))
    early = repeating((0, 0), (0, 4), period_ms=5)
    assert loop_period_s(with_feedback(early, graph, costs)) == pytest.approx(8 * MS)
    assert keep_loops(early, graph, costs).period_s == pytest.approx(8 * MS)
    late = repeating((0, 0), (1, 0), period_ms=5)
    assert keep_loops(late, graph, costs) is None
    two = replace(graph, sequences=2)
    assert keep_loops(late, two, costs) is late


def test_a_processor_cannot_wait_for_what_comes_later_in_its_own_order():
    graph = chain(3, reader=0, writer=2)
    costs = costs_of(graph, (4, 2, 4))
    shared = Assignment((0, 1, 0), ((0,), (1,), (2,)))
    mapping = mapping_of(graph, None, costs, shared)
    with pytest.raises(AssignmentError, match="wait for a state"):
        evaluate(mapping, graph, costs)
    assert keep_loops(mapping, graph, costs) is None
    assert evaluate(mapping, replace(graph, sequences=3), costs).period_s == pytest.approx(8 * MS)


@pytest.mark.parametrize("seed", range(12))
def test_sustained_periods_lie_between_the_loops_path_and_the_period(seed):
    rng = Random(seed)
    reader = rng.randint(0, 3)
    graph = chain(5, reader=reader, writer=rng.randint(reader, 4), sequences=rng.randint(1, 3))
    costs = with_loop(graph, random_costs(graph, 3, seed))
    for processors, stages in placed(graph, costs):
        found = taken(graph, costs, processors, stages)
        work_s = sum(costs.times[v][processors[v]] for v in costs.loop)
        assert found.sustained_period_s >= work_s / graph.sequences * (1 - 1e-9)
        assert found.sustained_period_s <= found.period_s * (1 + 1e-9)
        assert found.period_s >= costs.least_period_s * (1 - 1e-9)


def placed(graph, costs):
    """Every way to place operators in stages that share no processor."""
    count = len(graph.operators)
    for processors in product(range(len(costs.processors)), repeat=count):
        for stages in every_division(range(count)):
            used = [{processors[v] for v in stage} for stage in stages]
            if sum(map(len, used)) == len(set().union(*used)):
                yield processors, tuple(map(tuple, stages))


@pytest.mark.parametrize("seed", range(6))
def test_the_front_of_a_tiny_recurrent_model_is_that_of_exhaustive_search(seed):
    rng = Random(seed)
    reader = rng.randint(0, 2)
    graph = chain(4, reader=reader, writer=rng.randint(reader, 3), sequences=1 + seed % 2)
    costs = with_loop(graph, random_costs(graph, 2, seed))
    options = MapOptions(
        mapper="fine", jobs=1, cache=False, objectives="latency-throughput", resolution=0
    )
    parts = finest_partition(graph, [costs])
    found = [
        (each.evaluated.latency_s, each.period_s)
        for each in explore(graph, parts, costs, options, searches=(StageSearch(),)).found
    ]
    every = [taken(graph, costs, *each) for each in placed(graph, costs)]
    for each in every:
        assert any(
            latency_s <= each.latency_s * (1 + 1e-6) and period_s <= each.period_s * (1 + 1e-6)
            for latency_s, period_s in found
        )
    possible = {(round(each.latency_s / MS), round(each.period_s / MS)) for each in every}
    assert {(round(a / MS), round(b / MS)) for a, b in found} <= possible


def board_case(sequences=1):
    """A chain of convolutions with a state through the last two, on two processors."""
    builder = hand_built.GraphBuilder(x=(1, 8, 16, 16), h=(1, 8, 16, 16))
    first = builder.conv("x", 8)
    second = builder.add("Add", [builder.conv(first, 8), "h"], (1, 8, 16, 16))
    last = builder.conv(second, 8)
    graph = replace(builder.graph(last), states=(State("h", last),), sequences=sequences)
    platform = hand_built.platform()
    return graph, platform, build_cost_table(graph, platform)


def board_plan(sequences=1):
    graph, platform, costs = board_case(sequences)
    assignment = Assignment((0, 0, 0, 1), ((0, 1, 2), (3,)))
    mapping = mapping_of(graph, None, costs, assignment)
    return build_plan(graph, platform, costs, mapping), evaluate(mapping, graph, costs)


@pytest.mark.parametrize("sequences", [1, 2, 3])
def test_a_plan_says_its_states_and_a_simulation_keeps_its_sustained_period(sequences):
    plan, evaluated = board_plan(sequences)
    assert [each.input for each in plan.states] == ["h"]
    assert plan.states[0].ways_back[0].source == "little"
    assert plan.predicted.period_s == evaluated.period_s
    simulation = simulate(plan, frames=40, saturate=True)
    assert isclose(simulation.pace_s, plan.predicted.sustained_period_s, rel_tol=1e-9)
    assert (sequences == 1) == (evaluated.period_s > evaluated.longest_stage_s)


def changed(plan, **update):
    return plan.model_copy(update=update)


def test_the_verifier_counts_the_loop_by_itself():
    plan, evaluated = board_plan()
    longest_s, state = evaluated.longest_stage_s, plan.states[0]
    times = {"period_s": longest_s, "throughput_fps": 1 / longest_s}
    short = changed(plan, predicted=plan.predicted.model_copy(update=times))
    breaks = {
        "a state needs": short,
        "the sustained period": changed(
            plan,
            predicted=plan.predicted.model_copy(update={"sustained_period_s": longest_s}),
        ),
        "no input of the plan": changed(plan, states=(state.model_copy(update={"input": "y"}),)),
        "no output of the plan": changed(plan, states=(state.model_copy(update={"output": "y"}),)),
        "is of 2 states": changed(plan, states=(state, state)),
        "take turns, and there is no state": changed(plan, states=None, sequences=2),
    }
    for words, wrong in breaks.items():
        with pytest.raises(VerificationError) as caught:
            verify_plan(wrong)
        assert any(words in each for each in caught.value.violations), words


def test_no_configuration_of_a_front_is_faster_than_its_loop_and_all_plans_are_verified():
    for sequences in (1, 2):
        graph, platform, costs = board_case(sequences)
        options = MapOptions(mapper="coarse", jobs=1, cache=False)
        parts = finest_partition(graph, [costs])
        for each in explore(graph, parts, costs, options, searches=SEARCHES).found:
            assert each.period_s >= costs.least_period_s * (1 - 1e-9)
            verify_plan(build_plan(graph, platform, costs, each.mapping))


@pytest.mark.parametrize("sequences", [1, 2, 3])
def test_states_take_memory_at_any_time_one_for_each_sequence(sequences):
    graph, platform, costs = board_case(sequences)
    size_bytes = graph.tensors["h"].size_bytes
    mapping = mapping_of(graph, None, costs, Assignment((0, 0, 0, 0), ((0, 1, 2, 3),)))
    period_ps = round(evaluate(mapping, graph, costs).period_s * 1e12)
    lives = {each.name: each for each in Lives(mapping, Storage.of(graph, costs), period_ps).all()}
    state = lives["h"]
    assert (state.content, state.frames, state.size_bytes) == ("queue", sequences, size_bytes)
    assert lives["x"].content == "tensor"
    peak = peaks_of(graph, lambda _: costs)(
        Configuration(mapping, evaluate(mapping, graph, costs), proven=True, gap=0.0, table=0)
    )
    stateless = replace(graph, states=())
    without = peaks_of(stateless, lambda _: costs)(
        Configuration(mapping, evaluate(mapping, stateless, costs), proven=True, gap=0.0, table=0)
    )
    more_bytes = peak.total.size_bytes - without.total.size_bytes
    assert (sequences - 1) * size_bytes <= more_bytes <= sequences * size_bytes
    plan = build_plan(graph, platform, costs, mapping)
    [buffer] = [each for each in plan.buffers if each.tensor == "h"]
    assert buffer.content == "queue"


def test_an_empty_state_that_a_later_stage_reads_has_a_place_for_each_frame():
    builder = hand_built.GraphBuilder(x=(1, 8, 16, 16), h=(1, 0, 16, 16))
    first = builder.conv("x", 8)
    second = builder.add("Concat", [first, "h"], (1, 8, 16, 16), axis=1)
    graph = replace(builder.graph(second), states=(State("h", second),))
    costs = build_cost_table(graph, hand_built.platform())
    mapping = mapping_of(graph, None, costs, Assignment((0, 1), ((0,), (1,))))
    plan = build_plan(graph, hand_built.platform(), costs, mapping)
    (empty,) = (each for each in plan.buffers if each.tensor == "h")
    assert (empty.size_bytes, *empty.offset_bytes) == (0, 0, 0)
