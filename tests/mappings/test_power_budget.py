"""Plans within a power budget: slowed by the rule, left out, verified and explained."""

import json
from dataclasses import replace

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import MappingError, VerificationError
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate, keep_bandwidth
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import read_platform
from parapipe.platform.states import in_state
from tests.cases.soc_texts import spoil

OPTIONS = {"draws": 0, "cache": False, "mapper": "heft", "thermal_state": "sustained"}


def text(budget_w, *changes):
    budget = f"power_budget: {{sustained_w: {budget_w}, time_constant_s: 100, source: guess}}\n"
    return spoil(("links:\n", f"{budget}links:\n"), *changes)


def costs_at(budget_w, graph, state="sustained"):
    platform = in_state(read_platform(text(budget_w), "soc.yaml"), state)
    return build_cost_table(graph, platform, profiles=())


@pytest.fixture(scope="module")
def graph():
    return parapipe.load_model("zoo:squeezenet", note=lambda _: None)


def on_cpu(graph, costs):
    every = tuple(range(len(graph.operators)))
    return mapping_of(graph, None, costs, Assignment((0,) * len(every), (every,), ordered=True))


def test_a_period_is_stretched_until_the_average_power_is_the_budget(graph):
    free = costs_at(1000, graph)
    mapping = on_cpu(graph, free)
    before = evaluate(mapping, graph, free)
    # The CPU draws 0.5 W/V at 1 V when it does nothing, and 1 W is left for its operators.
    dynamic_j = sum(free.energy_j(v, 0) for v in range(len(graph.operators)))
    assert before.power.period_s < before.period_s
    after = evaluate(mapping, graph, costs_at(1.0, graph))
    assert after.power.period_s == pytest.approx(dynamic_j / 0.5)
    assert after.period_s == after.sustained_period_s == after.power.period_s
    assert after.energy_j / after.period_s == pytest.approx(1.0)
    assert after.latency_s == before.latency_s


def test_a_budget_that_is_kept_changes_nothing(graph):
    free, wide = costs_at(1.0, graph, "cold"), costs_at(1000, graph)
    mapping = on_cpu(graph, free)
    one, other = evaluate(mapping, graph, free), evaluate(mapping, graph, wide)
    assert one.power is None
    assert (one.period_s, one.latency_s, one.energy_j) == (
        other.period_s, other.latency_s, other.energy_j,
    )  # fmt: skip


def test_frames_that_come_slowly_enough_are_not_slowed(graph):
    costs = costs_at(1.0, graph)
    mapping = on_cpu(graph, costs)
    needed_s = evaluate(mapping, graph, costs).power.period_s
    slower = replace(costs, arrival_s=needed_s)
    assert evaluate(mapping, graph, slower).power is None
    assert evaluate(mapping, graph, replace(costs, arrival_s=needed_s * 0.99)).power is not None


def test_a_mapping_made_for_a_period_gets_one_that_the_budget_allows(graph):
    costs = costs_at(1.0, graph)
    mapping = replace(on_cpu(graph, costs), period_s=1e-3)
    kept = keep_bandwidth(mapping, costs)
    assert kept.period_s == evaluate(on_cpu(graph, costs), graph, costs).power.period_s


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    (folder / "soc.yaml").write_text(text(1.0))
    (folder / "wide.yaml").write_text(text(1000))
    return folder


@pytest.fixture(scope="module")
def front(folder):
    return parapipe.map("zoo:squeezenet", folder / "soc.yaml", **OPTIONS)


def test_no_row_of_a_front_draws_more_than_the_budget(front):
    for row in front:
        assert row.energy_j / row.period_s <= 1.0 + 1e-9
    assert any(row.energy_j / row.period_s == pytest.approx(1.0) for row in front)


def test_every_plan_is_verified_and_one_that_draws_more_is_refused(front):
    plan = front["cpu-alone"].plan()
    verify_plan(plan)
    predicted = plan.predicted
    power = predicted.power.model_copy(update={"budget_w": 0.9})
    wrong = plan.model_copy(update={"predicted": predicted.model_copy(update={"power": power})})
    with pytest.raises(VerificationError) as caught:
        verify_plan(wrong)
    assert "the processors draw 1 W, more than the budget of 0.9 W" in str(caught.value.violations)


def test_a_plan_is_slowed_no_more_than_the_budget_asks(front):
    plan = front["cpu-alone"].plan()
    power = plan.predicted.power.model_copy(update={"budget_w": 1.1})
    wrong = plan.model_copy(
        update={"predicted": plan.predicted.model_copy(update={"power": power})}
    )
    with pytest.raises(VerificationError) as caught:
        verify_plan(wrong)
    assert "and a frame takes only" in str(caught.value.violations)


def test_a_simulation_admits_frames_at_the_pace_of_the_budget(front, tmp_path):
    plan = front["cpu-alone"].plan()
    simulation = parapipe.simulate_plan(plan, frames=20).document
    assert simulation.pace_s == pytest.approx(front["cpu-alone"].period_s)
    assert simulation.period.median_s == pytest.approx(front["cpu-alone"].period_s)


def test_what_draws_the_budget_when_it_does_nothing_is_left_out(tmp_path):
    (tmp_path / "soc.yaml").write_text(text(0.4))
    front = parapipe.map("zoo:squeezenet", tmp_path / "soc.yaml", **OPTIONS)
    # The CPU draws 0.5 W then, the GPU 0.25.
    assert {p.name for row in front for stage in row.stages for p in stage.processors} == {"gpu"}
    (tmp_path / "soc.yaml").write_text(text(0.2))
    with pytest.raises(MappingError, match="draws more than the power budget even when it does"):
        parapipe.map("zoo:squeezenet", tmp_path / "soc.yaml", **OPTIONS)


def test_explain_says_what_the_budget_costs(front, folder):
    front.write(folder / "out")
    wide = parapipe.map("zoo:squeezenet", folder / "wide.yaml", **OPTIONS)
    explanation = parapipe.explain(folder / "out", "cpu-alone")
    said = " ".join(row.text for row in explanation.reasons)
    assert "The power budget sets the period: the processors may draw 1 W for ever" in said
    free_ms = wide["cpu-alone"].period_s * 1e3
    assert f"Without it, a frame could come every {free_ms:.4g} ms" in said
    assert explanation.figures.period_s.value == pytest.approx(front["cpu-alone"].period_s)


def test_explain_says_how_long_a_cold_chip_keeps_it_up(folder):
    options = {**OPTIONS, "thermal_state": "cold"}
    parapipe.map("zoo:squeezenet", folder / "soc.yaml", **options).write(folder / "cold")
    said = json.dumps(parapipe.explain(folder / "cold", "cpu-alone").model_dump(mode="json"))
    assert "more than the 1 W that the chip may draw for ever: it keeps this up for" in said
