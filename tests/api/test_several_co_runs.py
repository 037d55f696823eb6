"""Several models on processors that slow each other down."""

import pytest
import yaml

import parapipe
from parapipe.errors import DemandError, VerificationError
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import find_platform
from parapipe.simulate.simulation import simulate
from tests.cases.co_runs import disturbed_board
from tests.cases.small_network import two_models

RATES = {"detect": 40.0, "read": 20.0}
FACTOR = 1.5


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return two_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return disturbed_board(tmp_path_factory.mktemp("board"), FACTOR)


def mapped(models, board, notes=None, **given):
    note = notes.append if notes is not None else lambda _note: None
    return parapipe.map(models, board, **{"rates": RATES, "note": note, **given})


@pytest.fixture(scope="module")
def notes():
    return []


@pytest.fixture(scope="module")
def front(models, board, notes):
    return mapped(models, board, notes)


def test_rows_keep_the_rates_beside_co_runs_and_say_how_far_they_can_grow(front, notes):
    assert any("searched as if processors did not slow each other down" in each for each in notes)
    assert max(len(row.processors) for row in front) > 1
    for row in front:
        grown = row.several
        assert 1 <= grown.contended_rate_factor <= grown.rate_factor * (1 + 1e-9)
        assert grown.rate_factor <= grown.contended_rate_factor * FACTOR * (1 + 1e-9)
        assert row.period_s == front.document.several.period_s
        if len(row.processors) == 1:
            assert grown.contended_rate_factor == pytest.approx(grown.rate_factor)
    assert any(row.several.contended_rate_factor < row.several.rate_factor for row in front)


def test_plans_say_what_each_model_takes_beside_co_runs_and_simulations_agree(front):
    longer = 0
    for row in front:
        plan = row.plan()
        verify_plan(plan)
        assert plan.co_run.slowdowns or len(plan.processors) == 1
        paced = simulate(plan, frames=150, pace_s=plan.predicted.period_s)
        for model in plan.models:
            assert model.latency_s == pytest.approx(row.several.models[model.short_name].latency_s)
            for prefix, come_s in zip(model.prefixes, model.come_s, strict=True):
                own = [each for each in paced.record.spans if each.name.startswith(prefix)]
                for frame in (130, 140):
                    spans = [each for each in own if each.frame == frame]
                    comes_s = frame * plan.predicted.period_s + come_s
                    begin_s = min(comes_s, *(each.start_s for each in spans))
                    took_s = max(each.end_s for each in spans) - begin_s
                    assert took_s <= model.latency_s * (1 + 1e-6) + 3e-9
        longer += plan.predicted.sustained_period_s > plan.co_run.free.sustained_period_s
        grown_s = plan.predicted.period_s / row.several.contended_rate_factor
        faster = simulate(plan, frames=150, pace_s=grown_s)
        ends_s = [each.done_s - each.admitted_s for each in faster.record.frames]
        assert max(ends_s[130:140]) <= max(ends_s[:110]) * (1 + 1e-6)  # it does not fall behind
    assert longer


def test_a_latency_that_a_model_does_not_keep_beside_co_runs_is_told(front):
    slowed = (
        (plan, model)
        for plan in (row.plan() for row in front)
        if plan.co_run.spans_s
        for model in plan.models
    )
    plan, model = next(slowed)
    less = model.model_copy(update={"latency_s": model.latency_s * 0.95})
    models = tuple(less if each is model else each for each in plan.models)
    with pytest.raises(VerificationError) as caught:
        verify_plan(plan.model_copy(update={"models": models}))
    assert any("the latency of model" in each for each in caught.value.violations)


def test_rates_that_only_undisturbed_processors_keep_are_refused(models, board, front):
    most = front["most-growth"].several
    factor = (most.contended_rate_factor + most.rate_factor) / 2
    assert factor > most.contended_rate_factor * 1.01
    rates = {name: rate * most.rate_factor * 0.999 for name, rate in RATES.items()}
    with pytest.raises(DemandError, match="processors slow each other down"):
        mapped(models, board, rates=rates)


@pytest.mark.parametrize("captures", [False, True])
def test_several_models_say_that_graphs_are_not_captured(models, tmp_path, captures):
    raw = yaml.safe_load(find_platform("amlogic-a311d").read_text())
    if captures:
        raw["processors"][-1]["launch"]["graph_s"] = 1e-5
    (tmp_path / "board.yaml").write_text(yaml.safe_dump(raw))
    notes = []
    front = mapped(models, tmp_path / "board.yaml", notes)
    told = "each operator of 'gpu' counts its own launch, though graphs can be captured there"
    assert any(each.endswith(told) for each in notes) == captures
    assert all(row.plan().predicted for row in front)
