"""Strategies by name, one's own, and what is told of wrong ones."""

import json
import sys

import pytest

import parapipe
from parapipe.errors import StrategyError
from parapipe.strategies.registry import strategy
from parapipe.strategies.work import Job
from tests.cases.branchy import branchy


class Oldest:
    """The oldest frame first."""

    follows_plan = False

    def __init__(self, work):
        self.work = work

    def schedule(self, state):
        for processor in state.free:
            able = [job for job in state.ready() if self.work.runs(job.task, processor)]
            if able:
                state.execute(min(able, key=lambda job: (job.frame, job.task)), on=processor)


class Wrong(Oldest):
    def schedule(self, state):
        state.execute(Job(0, 10**6), on=state.free[0])


class Broken(Oldest):
    def schedule(self, state):
        raise KeyError("lost")


class Listing(Oldest):
    def schedule(self, state):
        state.execute([0, 0], on=state.free[0])


class Unmade(Oldest):
    def __init__(self, work):
        raise ValueError("no such work")


class Waiting(Oldest):
    def schedule(self, state):
        pass


class Leaving(Oldest):
    def schedule(self, state):
        sys.exit(3)


class Empty:
    pass


@pytest.fixture(scope="module")
def plan(branchy_front):
    return branchy_front["para-only"].plan()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stael", "barriers, micro-batches, plan, ready-pool, steal, streams, or name one"),
        ("stael", "as MODULE:CLASS; did you mean 'steal'?"),
        ("there_is_no_such:Class", "No module named 'there_is_no_such'); put its folder"),
        ("math:Class", "module math has no class 'Class'"),
        ("math:pi", "module math has no class 'pi'"),
        (f"{__name__}:Empty", "has no schedule and no follows_plan"),
        (Empty, "has no schedule and no follows_plan"),
        (":", "cannot be imported"),
    ],
)  # fmt: skip
def test_what_is_no_strategy_is_told(plan, name, words):
    with pytest.raises(StrategyError) as caught:
        plan.simulate(strategy=name)
    assert words in str(caught.value)


class Nowhere(Oldest):
    def schedule(self, state):
        state.execute(state.ready()[0], on=7)


class Idle(Oldest):
    def schedule(self, state):
        state.execute([], on=state.free[0])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Nowhere, ": there is no processor 7: execute on one of state.free"),
        (Idle, " is given what it cannot do now (): execute jobs of"),
        (Wrong, ": 'big' is given what it cannot do now ((0, 1000000, 0)): execute jobs of"),
        (Listing, ": 'big' is given what it cannot do now (0, 0): execute jobs of"),
        (Broken, "has failed: KeyError: 'lost'"),
        (Unmade, "has failed: ValueError: no such work"),
        (Leaving, "has failed: SystemExit: 3"),
    ],
)
def test_a_strategy_that_goes_wrong_is_named(plan, wrong, words):
    with pytest.raises(StrategyError) as caught:
        plan.simulate(strategy=wrong)
    assert str(caught.value).startswith(f"strategy '{__name__}:{wrong.__name__}'")
    assert words in str(caught.value)


class Cuts(Oldest):
    """A method that forgets that there is no instance yet."""

    def cut(self, operators):
        return {}


class CutsNothing(Oldest):
    @staticmethod
    def cut(_operators):
        pass


class CutsOthers(Oldest):
    @staticmethod
    def cut(_operators):
        return {"nosuch": "x"}


class Splits(Oldest):
    def splits(self, batch):
        return [(batch,)]


class Halves(Oldest):
    @staticmethod
    def splits(batch):
        return [[batch / 2, batch / 2]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Halves, r"splits\(1\) are to be lists of whole numbers from 1 on, .* is \[0.5, 0.5\]"),
        (Cuts, r"'cut' has failed: TypeError: .*make it a static method"),
        (CutsNothing, "'cut' has to return names of pieces by the ids of operators"),
        (CutsOthers, "'cut' names operators that the plan lacks: nosuch"),
        (Splits, r"'splits\(1\)' has failed: TypeError: .*make it a static method"),
    ],
)
def test_members_of_a_class_that_go_wrong_are_named(plan, wrong, words, tmp_path):
    with pytest.raises(StrategyError, match=words):
        plan.simulate(strategy=wrong)
    cores = {each.name: (0,) for each in plan.processors}
    with pytest.raises(StrategyError, match=words):
        plan.run(model=branchy(tmp_path / "branchy.onnx"), strategy=wrong, cores=cores)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class X:\n  def\n", "cannot be imported .SyntaxError: "),
        ("1 / 0", "cannot be imported .ZeroDivisionError: division by zero.$"),
        ("import sys; sys.exit(4)", "cannot be imported .SystemExit: 4.$"),
    ],
)
def test_a_module_that_goes_wrong_is_named(plan, text, words, tmp_path, monkeypatch):
    (tmp_path / "wrong_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StrategyError, match=f"'wrong_module:X' {words}"):
        plan.simulate(strategy="wrong_module:X")


def test_a_strategy_that_waits_for_ever_is_named(plan):
    with pytest.raises(parapipe.ParapipeError, match="all processors wait for ever"):
        plan.simulate(strategy=Waiting)


def test_ones_own_is_taken_as_a_class_or_by_its_name(plan, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(f"from {__name__} import Oldest")
    monkeypatch.syspath_prepend(tmp_path)
    runs = [plan.simulate(strategy=given, frames=9) for given in (Oldest, "mine:Oldest")]
    assert runs[0].record == runs[1].record
    assert [run.document.strategy for run in runs] == [f"{__name__}:Oldest", "mine:Oldest"]
    assert strategy("steal")[0] == "steal"


def test_the_report_says_what_ran_elsewhere(plan):
    planned = plan.simulate(saturate=True, frames=30).document
    assert planned.strategy == "plan"
    assert {task.elsewhere for task in planned.tasks} == {0.0}
    decided = plan.simulate(saturate=True, frames=30, strategy="ready-pool")
    document = decided.document
    assert any(0 < task.elsewhere <= 1 for task in document.tasks)
    for row in document.resources:
        mine = [span for span in decided.record.spans if span.resource == row.name]
        counted = [s.end_s - s.start_s for s in mine if s.frame >= document.warm_up]
        assert row.observed_s == pytest.approx(sum(counted) / (30 - document.warm_up))


@pytest.mark.parametrize("name", ["plan", "ready-pool"])
def test_a_trace_has_every_job_and_both_ends_of_every_arrow(plan, name, tmp_path):
    run = plan.simulate(strategy=name, frames=9, saturate=True)
    run.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    jobs = [event for event in events if event["ph"] == "X"]
    assert len(jobs) == len(run.record.spans) == 9 * len(run.document.tasks)
    begun, ended = ({e["id"] for e in events if e["ph"] == phase} for phase in "sf")
    assert begun == ended
    assert len(begun) == 9 * len(run.record.arrows) > 0


@pytest.mark.parametrize("unit", ["operator", "segment"])
@pytest.mark.parametrize("name", ["plan", "steal", "ready-pool"])
def test_a_plan_is_run_on_this_machine(plan, name, unit, tmp_path):
    cores = {each.name: (0,) for each in plan.processors}
    model = branchy(tmp_path / "branchy.onnx")
    run = plan.run(model=model, strategy=name, unit=unit, cores=cores, frames=12, saturate=True)
    simulated = plan.simulate(unit=unit, frames=1).document
    assert [row.operators for row in run.document.tasks] == [
        row.operators for row in simulated.tasks
    ]
    assert (run.document.strategy, run.document.frames) == (name, 12)
    assert len(run.record.spans) == 12 * len(run.document.tasks)
