"""Compares files of runs with predictions, and takes the times of segments from runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path

from parapipe.cost.measured_rows import MeasuredRun, read_measured_runs
from parapipe.documents.board_run import SCHEMA as BOARD_SCHEMA
from parapipe.documents.board_run import pairs_of_board_run, read_board_run
from parapipe.documents.comparison import Comparison, Pair, compare, errors_of, read_evaluations
from parapipe.documents.evaluation import EvaluationDocument
from parapipe.documents.run_schema import SCHEMA as RUN_SCHEMA
from parapipe.documents.run_schema import RunDocument, TaskRow
from parapipe.errors import ComparisonError, ProfilingError
from parapipe.files.documents import read_document
from parapipe.files.shipped import require_regular
from parapipe.files.titles import stages_title
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.program import program
from parapipe.plan.schema import SCHEMA as PLAN_SCHEMA
from parapipe.plan.schema import Plan
from parapipe.plan.sharing import executed_plan
from parapipe.plan.summary import replicas_of, stages_of
from parapipe.plan.verify import verify_plan
from parapipe.platform.divided import variant_with
from parapipe.platform.platform import Link, Platform
from parapipe.profiling.from_run import SegmentTime
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
        mismatches = {file: _describe_mismatch(run, each) for file, each in predictions.items()}
        fitting = [predictions[file] for file, differs in mismatches.items() if not differs]
        if predictions and not fitting:
            why = "; ".join(f"'{file}' {differs}" for file, differs in mismatches.items())
            mistakes.append(f"run '{name}' belongs to none of the predictions: {why}")
            continue
        prediction = _prediction_of(fitting[0], run) if fitting else _own_prediction(run)
        pairs += _pairs_of_run(run, prediction)
        notes += _describe_omissions(name, run)
        notes += [f"'{name}': {each.sentence()}" for each in run.strays or ()]
    if mistakes:
        raise ComparisonError("; ".join(mistakes))
    return Comparison(tuple(pairs), tuple(errors_of(pairs)), (), tuple(notes))


def _describe_mismatch(run: RunDocument, prediction: Plan | EvaluationDocument) -> str:
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
        titles = stages_title(stages, replicas), stages_title(run.stages, run.replicas)
        return f"has stages {titles[0]}, and the run {titles[1]}"
    if isinstance(prediction, Plan):
        if (prediction.model.split.rules if prediction.model.split else ()) != run.split:
            return "splits other operators than the run"
        ran = {(task.resource, task.operators) for task in run.tasks if task.operators}
        if ran != set(_prediction_of(prediction, run).tasks_s):
            return "places operators differently from the run"
    return ""


def _prediction_of(source: Plan | EvaluationDocument, run: RunDocument) -> Prediction:
    if isinstance(source, EvaluationDocument):
        sustained_s = source.sustained_period_s
        return Prediction(source.latency_s, source.longest_stage_s, sustained_s, {})
    predicted = source.predicted
    ran = {operator for task in run.tasks for operator in task.operators}
    segments = program(executed_plan(source, ran), unit="segment", moves=False)
    times_s = {
        (task.resource, task.operators): time_ps / PICOSECONDS
        for task, time_ps in zip(segments.tasks, segments.graph.time_ps, strict=True)
    }
    period_s = predicted.period_s
    return Prediction(predicted.latency_s, period_s, predicted.sustained_period_s, times_s)


def _own_prediction(run: RunDocument) -> Prediction:
    times_s = {(task.resource, task.operators): task.predicted_s for task in run.tasks}
    period = run.period
    return Prediction(run.latency.predicted_s, period.predicted_s, period.sustained_s, times_s)


def _pairs_of_run(run: RunDocument, prediction: Prediction) -> Iterator[Pair]:
    """Yield latency, period, the work of each processor and of each segment, where they compare.

    Frames that queue hold the wait for their turn in their latency, and those admitted more slowly
    than the plan could take them say nothing of its period. Of a run that admits as fast as frames
    are taken, the period is that which can be sustained.
    """
    name = (run.model, stages_title(run.stages, run.replicas))
    if not _frames_queue(run):
        yield Pair(*name, "latency", prediction.latency_s, run.latency.median_s)
    if run.period.observed_s is not None and not _admits_slowly(run, prediction):
        period_s = prediction.sustained_s if run.saturated else prediction.period_s
        yield Pair(*name, "period", period_s, run.period.observed_s)
    tasks = [task for task in run.tasks if (task.resource, task.operators) in prediction.tasks_s]
    for resource in dict.fromkeys(task.resource for task in tasks):
        own = [task for task in tasks if task.resource == resource]
        predicted_s = sum(prediction.tasks_s[resource, task.operators] for task in own)
        observed_s = sum(map(_own_time_s, own))
        yield Pair(*name, "work of a processor", predicted_s, observed_s, resource)
    for task in tasks:
        predicted_s = prediction.tasks_s[task.resource, task.operators]
        yield Pair(*name, "work of a segment", predicted_s, _own_time_s(task), task.name)


def _own_time_s(task: TaskRow) -> float:
    """Return what a task took by itself: other programs count nothing where that is known."""
    return task.own.time_s if task.own else task.observed_s


def _frames_queue(run: RunDocument) -> bool:
    late = run.pace_s is not None and (run.period.observed_s or 0.0) > PACED * run.pace_s
    return run.saturated or late


def _admits_slowly(run: RunDocument, prediction: Prediction) -> bool:
    return run.pace_s is not None and run.pace_s > PACED * prediction.period_s


def _describe_omissions(name: str, run: RunDocument) -> Iterator[str]:
    if _frames_queue(run):
        yield f"the latency of '{name}' is left out: its frames queued for admission"
    if run.period.observed_s is None:
        yield f"'{name}' has a single frame, and so no period"
    elif _admits_slowly(run, _own_prediction(run)):
        yield f"the period of '{name}' is left out: its frames were admitted more slowly"
    others = run.machine.other_programs if run.machine else None
    if others is not None and others >= BUSY:
        yield f"other programs used {others:.0%} of the machine in '{name}': its times include that"


def compare_files(paths: Sequence[Path]) -> Comparison:
    """Compare what some files predict with what others say of runs.

    Raises
    ------
    ComparisonError
        If a file cannot be read, no run is given, or a run does not belong to any prediction.
    PlanError
        If a plan is damaged.
    VerificationError
        If a plan breaks rules.
    CostError
        If a CSV file of runs is wrong.
    """
    runs: dict[str, RunDocument] = {}
    plans: dict[str, Plan | EvaluationDocument] = {}
    evaluations: list[EvaluationDocument] = []
    measured: list[MeasuredRun] = []
    on_board: list[Pair] = []
    notes: list[str] = []
    for path in paths:
        schema = _read_schema(path)
        if schema is None:
            measured += read_measured_runs(path)
        elif _schema_family(schema) == _schema_family(RUN_SCHEMA):
            runs[str(path)] = read_run(path)
        elif _schema_family(schema) == _schema_family(BOARD_SCHEMA):
            board_run = read_board_run(path)
            on_board += pairs_of_board_run(board_run)
            said = (each.sentence() for each in board_run.segments)
            notes += [f"'{path}': {each}" for each in said if each]
        elif _schema_family(schema) == _schema_family(PLAN_SCHEMA):
            plans[str(path)] = plan = Plan.load(path)
            verify_plan(plan)
        else:
            documents = read_evaluations(path)
            evaluations += documents
            plans |= {f"{path}[{i}]": each for i, each in enumerate(documents)}
    if not runs and not measured and not on_board:
        raise ComparisonError(
            "no run is given: add what `parapipe run --json` printed, or a CSV file of runs"
        )
    here = compare_runs(runs, plans)
    listed = compare(evaluations, measured) if measured else Comparison((), (), (), ())
    pairs = (*listed.pairs, *on_board, *here.pairs)
    return Comparison(pairs, tuple(errors_of(pairs)), listed.missing, (*notes, *here.notes))


def read_run(path: Path) -> RunDocument:
    """Read what `parapipe run --json` printed; ComparisonError if it cannot be read or is wrong."""
    return read_document(path, RunDocument, schema=RUN_SCHEMA, what="run", error=ComparisonError)


def _schema_family(schema: str) -> str:
    return schema.rpartition("/")[0]


def _read_schema(path: Path) -> str | None:
    """Return the schema that a JSON file names, "" if none; None for what is no JSON."""
    try:
        require_regular(path)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ComparisonError(f"'{path}' cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ComparisonError(f"'{path}' is no text: give JSON or CSV files") from error
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        content = loads(text)
    except (JSONDecodeError, RecursionError, ValueError) as error:
        raise ComparisonError(f"'{path}' is no JSON text: {error}") from error
    schema = content.get("schema") if isinstance(content, dict) else ""
    return schema if isinstance(schema, str) else ""


LEAST_SHARE = 0.5  # of a segment's time that its operators took, whatever the hand-overs should


def load_runs(
    paths: Sequence[Path], graph: OperatorGraph, platform: Platform
) -> tuple[RunDocument, ...]:
    """Return runs of a model on a platform.

    Raises
    ------
    ComparisonError
        If a file is no document of a run.
    ProfilingError
        If one is a simulation, or of another model or platform; all are told.
    """
    runs = {path: read_run(path) for path in paths}
    mistakes = [
        f"'{path}' {why}"
        for path, run in runs.items()
        if (why := why_unusable(run, graph, platform))
    ]
    if mistakes:
        raise ProfilingError(
            f"nothing is learned: {'; '.join(mistakes)}; give what `parapipe run --json` printed "
            "of plans of this model and platform"
        )
    return tuple(runs.values())


def segment_times(
    run: RunDocument, graph: OperatorGraph, platform: Platform
) -> Iterator[SegmentTime]:
    """Yield what each segment took in a run; nothing of a simulation.

    A session brings the tensors of other processors into its own form, and those for others out of
    it. What the platform counts as work of hand-overs is none of the operators'.
    """
    divided = variant_with(platform, {task.resource for task in run.tasks})
    hand_over_s = _hand_over_s(run, graph, divided)
    for task in run.tasks:
        if run.machine is not None and task.own is not None and task.operators:
            own_s = task.own.time_s - sum(hand_over_s[each] for each in task.operators)
            yield SegmentTime(
                processor=task.resource,
                cores=run.machine.cores.get(task.resource, ()),
                operators=task.operators,
                predicted_s=task.predicted_operators_s,
                time_s=max(own_s, LEAST_SHARE * task.own.time_s),
                spread=task.own.spread,
                noisy=task.own.noisy,
            )


def _hand_over_s(run: RunDocument, graph: OperatorGraph, platform: Platform) -> Mapping[str, float]:
    """Return the seconds by operator that the bytes of hand-overs take, half of them at each end.

    Of links between CPUs and of those that occupy the receiver, that is: what others take is in no
    thread's time. What joins and cuts tensors in place runs nowhere: whoever reads its result reads
    what it is made of.
    """
    place = {name: platform.index(task.resource) for task in run.tasks for name in task.operators}
    times_s: dict[str, float] = defaultdict(float)
    for tensor, maker in graph.producer.items():
        source = graph.operators[maker].id
        if source not in place:
            continue
        here = place[source]
        readers: dict[int, tuple[str, int]] = {}
        for reader, size_bytes in _readers(tensor, graph, place):
            readers.setdefault(place[reader], (reader, size_bytes))
        ends_s = {
            reader: (link.time(size_bytes).value - link.time(0).value) / 2
            for p, (reader, size_bytes) in readers.items()
            if p != here and _is_thread_work(link := platform.link_of[here, p], platform)
        }
        for reader, end_s in ends_s.items():
            times_s[reader] += end_s
        times_s[source] += max(ends_s.values(), default=0.0)
    return times_s


def _is_thread_work(link: Link, platform: Platform) -> bool:
    ends = (platform.processors[platform.index(name)] for name in (link.sender, link.receiver))
    return link.occupies == "receiver" or all(each.kind == "cpu" for each in ends)


def _readers(tensor: str, graph: OperatorGraph, ran: Container[str]) -> Iterator[tuple[str, int]]:
    """Yield the operators that read a tensor and ran, with the bytes of it that each one reads.

    Through joins and cuts that did not run: at most as much as the smallest tensor on the way.
    """
    size_bytes = graph.tensors[tensor].size_bytes
    for v in graph.consumers.get(tensor, ()):
        operator = graph.operators[v]
        if operator.id in ran:
            yield operator.id, size_bytes
            continue
        for result in operator.outputs:
            for reader, behind_bytes in _readers(result, graph, ran):
                yield reader, min(size_bytes, behind_bytes)


def why_unusable(run: RunDocument, graph: OperatorGraph, platform: Platform) -> str:
    """Say why nothing can be learned from a run; empty if it can."""
    if run.machine is None:
        return "is a simulation"
    if run.model_sha256 != graph.source.sha256:
        return f"is a run of another model, '{run.model}'"
    if run.platform != platform.name:
        return f"ran a plan for platform '{run.platform}', not for '{platform.name}'"
    for each in run.providers or ():
        if each.substitute:
            return f"ran '{each.processor}' by {each.provider}, since {each.substitute}"
    return ""
