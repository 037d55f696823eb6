"""Runs on this machine against what was predicted: in their own document, or by a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.errors import ComparisonError
from parapipe.files.titles import stages_title
from parapipe.formats.comparison import Comparison, Pair, errors_of
from parapipe.formats.evaluation import EvaluationDocument
from parapipe.formats.run import RunDocument, TaskRow
from parapipe.pipeline.sustained import PICOSECONDS
from parapipe.plan.in_place import as_run
from parapipe.plan.program import program
from parapipe.plan.replicas import replicas_of, stages_of
from parapipe.plan.schema import Plan
from parapipe.strategies.registry import PLAN

PACED = 1.005  # an observed period this much beyond another one is longer
BUSY = 0.05  # share of the machine that other programs took


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is to be compared with a run.

    Parameters
    ----------
    tasks_s
        Seconds of each segment, by its processor and operators; empty where they are not known.
    """

    latency_s: float
    period_s: float
    sustained_s: float
    tasks_s: Mapping[tuple[str, tuple[str, ...]], float]


def compare_runs(
    runs: Mapping[str, RunDocument], predictions: Mapping[str, Plan | EvaluationDocument]
) -> Comparison:
    """Compare runs with the prediction that each belongs to, or with that in their documents.

    Parameters
    ----------
    runs, predictions
        By file, for messages.

    Raises
    ------
    ComparisonError
        If a run is a simulation or does not follow its plan, or belongs to none of the predictions
        that are given.
    """
    mistakes = [
        f"'{name}' is a simulation: give what `parapipe run --json` printed"
        for name, run in runs.items()
        if run.how == "simulation"
    ]
    mistakes += [
        f"'{name}' was decided by the strategy '{run.strategy}', and predictions are of runs that "
        "follow the plan: give a run without a strategy"
        for name, run in runs.items()
        if run.strategy != PLAN
    ]
    pairs: list[Pair] = []
    notes: list[str] = []
    for name, run in runs.items():
        why = {file: _differs(run, each) for file, each in predictions.items()}
        fitting = [predictions[file] for file, differs in why.items() if not differs]
        if predictions and not fitting:
            told = (f"'{file}' {differs}" for file, differs in why.items())
            mistakes.append(f"run '{name}' belongs to none of the predictions: {'; '.join(told)}")
            continue
        pairs += _pairs(run, _prediction(fitting[0], run) if fitting else _own_prediction(run))
        notes += _notes(name, run)
    if mistakes:
        raise ComparisonError("; ".join(mistakes))
    return Comparison(tuple(pairs), tuple(errors_of(pairs)), (), tuple(notes))


def _differs(run: RunDocument, prediction: Plan | EvaluationDocument) -> str:
    """Say in what a run is not of a prediction; empty if it is."""
    replicas: Sequence[Sequence[str]] = ()
    if isinstance(prediction, EvaluationDocument):
        model, same = prediction.model, prediction.model == run.model
        stages: Sequence[Sequence[str]] = [stage.processors for stage in prediction.stages]
    else:
        model, same = prediction.model.name, prediction.model.sha256 == run.model_sha256
        stages, replicas = stages_of(prediction), replicas_of(prediction)
    if not same:
        return f"is of another model, '{model}', and the run of '{run.model}'"
    if prediction.platform != run.platform:
        return f"is for platform '{prediction.platform}', and the run's plan for '{run.platform}'"
    if [sorted(names) for names in stages] != [sorted(names) for names in run.stages]:
        told = stages_title(stages, replicas), stages_title(run.stages, run.replicas)
        return f"has stages {told[0]}, and the run {told[1]}"
    if isinstance(prediction, Plan):
        if (prediction.model.split.rules if prediction.model.split else ()) != run.split:
            return "splits other operators than the run"
        ran = {(task.resource, task.operators) for task in run.tasks if task.operators}
        if ran != set(_prediction(prediction, run).tasks_s):
            return "places operators differently from the run"
    return ""


def _prediction(found: Plan | EvaluationDocument, run: RunDocument) -> Prediction:
    if isinstance(found, EvaluationDocument):
        sustained_s = found.sustained_period_s
        return Prediction(found.latency_s, found.longest_stage_s, sustained_s, {})
    told = found.predicted
    ran = {operator for task in run.tasks for operator in task.operators}
    made = program(as_run(found, ran), unit="segment", moves=False)
    times_s = {
        (task.resource, task.operators): time_ps / PICOSECONDS
        for task, time_ps in zip(made.tasks, made.graph.time_ps, strict=True)
    }
    return Prediction(told.latency_s, told.period_s, told.sustained_period_s, times_s)


def _own_prediction(run: RunDocument) -> Prediction:
    times_s = {(task.resource, task.operators): task.predicted_s for task in run.tasks}
    period = run.period
    return Prediction(run.latency.predicted_s, period.predicted_s, period.sustained_s, times_s)


def _pairs(run: RunDocument, told: Prediction) -> Iterator[Pair]:
    """Yield latency, period, the work of each processor and of each segment, where they compare.

    Frames that queue hold the wait for their turn in their latency, and those admitted more slowly
    than the plan could take them say nothing of its period. Of a run that admits as fast as frames
    are taken, the period is that which can be sustained.
    """
    name = (run.model, stages_title(run.stages, run.replicas))
    if not _queues(run):
        yield Pair(*name, "latency", told.latency_s, run.latency.median_s)
    if run.period.observed_s is not None and not _slowed(run, told):
        period_s = told.sustained_s if run.saturated else told.period_s
        yield Pair(*name, "period", period_s, run.period.observed_s)
    tasks = [task for task in run.tasks if (task.resource, task.operators) in told.tasks_s]
    for resource in dict.fromkeys(task.resource for task in tasks):
        own = [task for task in tasks if task.resource == resource]
        predicted_s = sum(told.tasks_s[resource, task.operators] for task in own)
        observed_s = sum(map(_taken_s, own))
        yield Pair(*name, "work of a processor", predicted_s, observed_s, resource)
    for task in tasks:
        predicted_s = told.tasks_s[task.resource, task.operators]
        yield Pair(*name, "work of a segment", predicted_s, _taken_s(task), task.name)


def _taken_s(task: TaskRow) -> float:
    """Return what a task took by itself: other programs count nothing where that is known."""
    return task.own.time_s if task.own else task.observed_s


def _queues(run: RunDocument) -> bool:
    late = run.pace_s is not None and (run.period.observed_s or 0.0) > PACED * run.pace_s
    return run.saturated or late


def _slowed(run: RunDocument, told: Prediction) -> bool:
    return run.pace_s is not None and run.pace_s > PACED * told.period_s


def _notes(name: str, run: RunDocument) -> Iterator[str]:
    if _queues(run):
        yield f"the latency of '{name}' is left out: its frames queued for admission"
    if run.period.observed_s is None:
        yield f"'{name}' has a single frame, and so no period"
    elif _slowed(run, _own_prediction(run)):
        yield f"the period of '{name}' is left out: its frames were admitted more slowly"
    took = run.machine.other_programs if run.machine else None
    if took is not None and took >= BUSY:
        yield f"other programs used {took:.0%} of the machine in '{name}': its times include that"
