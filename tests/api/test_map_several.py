"""Several small models on the A311D: from their files to runs of their plans."""

import os

import numpy as np
import onnx
import pytest

import parapipe
from parapipe.errors import ArgumentError, DemandError, ParapipeError, PlanError, VerificationError
from parapipe.plan.segments import segments
from parapipe.plan.verify import verify_plan
from tests.cases.session_runs import session
from tests.cases.small_network import two_models

LENT = sorted(os.sched_getaffinity(0))
CORES = {"big": (LENT[0],), "little": (LENT[-1],), "gpu": (LENT[-1],)}
RATES = {"detect": 40.0, "read": 20.0}
BOARD = "amlogic-a311d"
FRAMES = 30


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return two_models(tmp_path_factory.mktemp("models"))


def mapped(models, **given):
    quiet = {"note": lambda _note: None}
    return parapipe.map(models, BOARD, **{"rates": RATES, **quiet, **given})


@pytest.fixture(scope="module")
def front(models):
    return mapped(models)


def test_every_row_keeps_the_rates_and_says_what_each_model_gets(front):
    several = front.document.several
    # twice the shortest pattern: frames of each go two ways, and rates can grow by 7 % more
    assert [(each.name, each.frames) for each in several.models] == [("detect", 4), ("read", 2)]
    assert several.period_s == pytest.approx(0.1)
    assert several.bound >= several.shared >= several.in_turn.rate_factor
    assert several.shared >= several.own_processors.rate_factor
    for row in front:
        assert row.period_s == several.period_s
        assert 1 <= row.several.rate_factor <= several.bound * (1 + 1e-9)
        assert [*row.several.models] == ["detect", "read"]


@pytest.mark.parametrize("name", ["most-growth", "balanced"])
def test_frames_come_out_of_a_run_as_of_sessions_of_their_own(name, front, models, tmp_path):
    plan = front[name].plan()
    names = {processor.name for processor in plan.processors}
    fed, kept = tmp_path / "in.npz", tmp_path / "out.npz"
    rng = np.random.default_rng(1)
    given = {
        each: rng.random((FRAMES, *plan.tensors[each].shape), np.float32) for each in plan.inputs
    }
    np.savez(fed, **given)
    cores = {each: cores for each, cores in CORES.items() if each in names}
    run = plan.run(input=fed, keep=kept, saturate=True, cores=cores)
    assert [each.name for each in run.document.models] == ["detect", "read"]
    with np.load(kept) as results:
        for model in plan.models:
            opened = session(models[model.short_name])
            for prefix in model.prefixes:
                for frame in range(FRAMES):
                    own = {
                        each.name: given[prefix + each.name][frame] for each in opened.get_inputs()
                    }
                    for each, wanted in zip(
                        opened.get_outputs(), opened.run(None, own), strict=True
                    ):
                        found = results[prefix + each.name][frame]
                        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_simulation_says_what_each_model_gets(front):
    for row in front:
        plan = row.plan()
        document = plan.simulate(frames=40).document
        # the frames of a period are admitted together: one that starts early counts from then on
        early_s = max(0.0, *(at for each in plan.models for at in each.come_s))
        for model in document.models:
            predicted_s = row.several.models[model.name].latency_s
            assert model.predicted_s == predicted_s
            assert model.most_s <= predicted_s + early_s + 2e-9  # times are in whole nanoseconds
            assert model.observed_fps >= RATES[model.name] * (1 - 1e-6)  # the last ones come sooner


@pytest.mark.nightly
def test_frames_that_come_at_random_take_turns_of_the_pattern_as_fast_as_it_can(front):
    plan = front["most-growth"].plan()
    document = plan.simulate(frames=3000, random_arrivals=True, seed=2).document
    assert document.pace_s == plan.predicted.sustained_period_s
    for model in document.models:
        got, count = model.random, {"detect": 4, "read": 2}[model.name]
        assert got.rate_fps == pytest.approx(RATES[model.name])
        turn_s = plan.predicted.sustained_period_s / count
        assert got.predicted_utilisation == pytest.approx(RATES[model.name] * turn_s)
        assert got.utilisation == pytest.approx(got.predicted_utilisation, rel=1e-2)
        needed = 2400 * count * got.utilisation
        assert got.frames == pytest.approx(needed, abs=4 * needed**0.5)
        assert got.median_s <= got.p95_s <= got.p99_s <= got.most_s
        # so few come that each has the next turn, at most a pattern later
        assert got.most_s <= model.most_s + plan.predicted.sustained_period_s
    again = plan.simulate(frames=3000, random_arrivals=True, seed=2).document
    assert again.models == document.models
    other = plan.simulate(frames=3000, random_arrivals=True, seed=3).document
    assert other.models[0].random.median_s != document.models[0].random.median_s
    assert plan.simulate(frames=20).document.models[0].random is None


def test_frames_come_at_random_in_a_run_too(front):
    plan = front["balanced"].plan()
    cores = {each.name: CORES[each.name] for each in plan.processors}
    document = plan.run(frames=50, random_arrivals=True, seed=1, cores=cores).document
    assert document.pace_s == plan.predicted.sustained_period_s
    for model in document.models:
        assert model.random.seed == 1
        assert model.random.utilisation > 0
        assert model.random.predicted_utilisation < 1
        assert not model.random.frames or model.random.p99_s <= model.random.most_s


@pytest.mark.parametrize("way", ["simulate", "run"])
def test_frames_at_random_are_for_several_models_and_their_plan(way, front, models):
    single = parapipe.map(models["read"], BOARD, note=lambda _note: None)[0].plan()
    with pytest.raises(ParapipeError, match="for plans of several models"):
        getattr(single, way)(random_arrivals=True)
    with pytest.raises(ParapipeError, match="strategy 'plan' only, not for 'steal'"):
        getattr(front[0].plan(), way)(random_arrivals=True, strategy="steal")


def test_a_segment_is_of_one_frame_so_that_no_model_waits_for_another_ones_work(front):
    for row in front:
        plan = row.plan()
        for each in (each for found in segments(plan).values() for each in found):
            assert len({operator.partition("/")[0] for operator in each.operators}) == 1


def test_a_plan_that_says_another_latency_or_time_is_refused(front):
    plan = front["balanced"].plan()
    first, *others = plan.models
    for change in ({"latency_s": 9.0}, {"come_s": (9.0, 9.1)}, {"come_s": (0.0,)}):
        wrong = plan.model_copy(update={"models": (first.model_copy(update=change), *others)})
        with pytest.raises(VerificationError):
            verify_plan(wrong)
    with pytest.raises(VerificationError) as caught:
        verify_plan(plan.model_copy(update={"models": (first,)}))
    assert "are of no frame of a model" in caught.value.violations[0]


def test_a_file_that_has_changed_is_refused(front, models):
    plan = front["balanced"].plan()
    before = models["read"].read_bytes()
    other = onnx.load_from_string(before)
    other.doc_string = "another one"
    models["read"].write_bytes(other.SerializeToString())
    try:
        with pytest.raises(PlanError, match=r"SHA-256 of '.*read.onnx'"):
            plan.run(frames=1)
    finally:
        models["read"].write_bytes(before)


def test_rates_beyond_the_board_are_answered_by_what_stands_in_the_way(models):
    with pytest.raises(DemandError) as caught:
        mapped(models, rates={"detect": 4e6, "read": 2e6})
    told = str(caught.value)
    assert "the rates cannot be kept" in told
    assert "lower that rate first" in told
    assert "'detect' alone reaches" in told


def test_deadlines_that_cannot_be_kept_are_named_with_how_far(models):
    with pytest.raises(
        DemandError, match=r"'read' takes .* ms instead of 0.000001 ms, .* too long"
    ):
        mapped(models, deadline_s={"read": 1e-9})


@pytest.mark.nightly
def test_a_list_of_paths_is_named_by_its_files_and_priorities_come_first(models):
    found = mapped(
        [models["detect"], f"read={models['read']}"],
        rates={models["detect"].stem: 40.0, "read": 20.0},
        priority={"read": 2.0},
    )
    assert [each.name for each in found.document.several.models] == ["read", models["detect"].stem]
    assert "--priority read=2.0" in found.document.command


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rates": {"detect": 40.0}}, "give a rate for 'read', as in read=30"),
        ({"rates": {**RATES, "odd": 1.0}}, "rates names 'odd'"),
        ({"deadline_s": {"odd": 1.0}}, "deadline_s names 'odd'"),
        ({"dvfs": True}, "`dvfs` cannot be asked for several models"),
        ({"dims": {"batch": 1}}, "begin with the model's name, as in detect/batch"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_sentence(given, told, models):
    with pytest.raises(ArgumentError, match=told):
        mapped(models, **given)


def test_two_models_of_one_name_are_refused(models):
    with pytest.raises(ArgumentError, match="two models are called 'read'"):
        mapped([models["read"], models["read"]])
