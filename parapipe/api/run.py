"""Runs plans on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parapipe.api.checked import Model, PlanLike, StrategyLike, checked
from parapipe.api.load import open_plan
from parapipe.api.several import random_pace_s
from parapipe.errors import ExecutionError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty, Seconds
from parapipe.files.progress import Tell
from parapipe.runtime.machine import cores_of
from parapipe.search.option_types import FilePath
from parapipe.strategies import registry
from parapipe.strategies.failures import attribute_failures

if TYPE_CHECKING:
    from parapipe.front.run import Run

_CoreList = Annotated[Sequence[FromZero], Must("core numbers", filled=True)]
Cores = Annotated[
    Mapping[str, _CoreList],
    Must("lists of core numbers by processor, as in {'big': [0, 1]}"),
]


def read_cores(values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each processor, from values as big=0,2-3; ValueError for a wrong one."""
    return cores_of(values)


def check_place(path: FilePath) -> None:
    """Raise an ExecutionError if a run could write no file there: before it runs."""
    from parapipe.runtime.folder import RunError
    from parapipe.runtime.results import check_place as check

    try:
        check(Path(path))
    except RunError as error:
        raise ExecutionError(str(error)) from error


@checked
@attribute_failures
def run_plan(
    plan: PlanLike,
    *,
    model: Model | None = None,
    frames: Count | None = None,
    input: Annotated[NotEmpty | Path, Must("the path of an .npz file")] | None = None,
    warmup: FromZero = 3,
    saturate: bool = False,
    period_s: Seconds | None = None,
    random_arrivals: bool = False,
    seed: FromZero = 0,
    queue: Count | None = None,
    in_step: bool = False,
    arena: bool = False,
    cores: Cores | None = None,
    patience_s: Seconds | None = None,
    keep: FilePath | None = None,
    strategy: StrategyLike = "plan",
    unit: Literal["operator", "segment"] = "segment",
    runtime: NotEmpty = "onnxruntime",
    progress: Tell | None = None,
) -> Run:
    """Run a plan: a thread for each processor, frames overlapping.

    Parameters
    ----------
    plan
        A plan, or its file.
    model
        The ONNX file, or `zoo:NAME`, if it is not where the plan says. It must be the model that
        the plan was made for.
    frames
        How many. Default: as many as are given, or 100.
    input
        An `.npz` file with an array for each graph input, of its shape or with one more axis in
        front for the frames. Default: random numbers. They are repeated if more frames are wanted.
    warmup
        Frames to run first; they are not counted.
    saturate
        Admit frames as fast as the pipeline takes them, not one per period.
    period_s
        Time between frames; what the plan predicts if not given.
    random_arrivals
        Of a plan of several models: let frames of each come at random times, at its rate on
        average, while the pattern repeats as fast as it can, and say how long they take.
    seed
        Seed of random arrivals.
    queue
        Slots of every channel between processors, two or more, instead of the plan's.
    in_step
        Let processors begin their work in the plan's order on all of them together: then a run
        holds no more tensors than the plan, whatever its times are, but may take longer.
    arena
        Let tensors between sessions lie at the plan's offsets, in one arena for each memory. Who
        writes to a place waits until those have ended that used it before in the plan, of later
        frames too: so results may come out only when further frames have come in.
    cores
        Cores of processors, instead of the plan's; a GPU or NPU then runs as a CPU on these cores.
    patience_s
        Give up after this time without progress. Default: a minute, or ten times the predicted
        latency if that is longer.
    keep
        Write the results to this `.npz` file, those of an unfinished run too.
    strategy
        What decides which processor runs what: plan, steal, ready-pool, barriers, micro-batches,
        streams, or a class of your own as MODULE:CLASS. All but plan first measure, on the frames
        of `warmup`, what every segment takes on every processor. The native runtime has plan,
        steal, ready-pool and streams, for single operators.
    unit
        What a processor runs without interruption: segments of the plan, or single operators, so
        that a strategy decides on each of them.
    runtime
        What computes: onnxruntime, or native, the C++ runner, which is built at its first use and
        runs every processor as a CPU.
    progress
        Called now and then, when frames are through.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, breaks rules, or was made for another model.
    ArgumentError
        There is no such runtime, or it cannot do what is asked for.
    ExportError
        Operators have no form in the runtime.
    RuntimeMissingError
        ONNX Runtime is not installed, or what the runtime is built with.
    StrategyError
        There is no such strategy.
    ExecutionError
        The plan cannot be run here, or the run ended before its time: where, and why.
    """
    if runtime != "onnxruntime":
        from parapipe.api.runtime_run import run_on_runtime
        from parapipe.plan.verify import verify_plan

        if keep is not None:
            check_place(keep)
        opened = open_plan(plan)
        verify_plan(opened)
        return run_on_runtime(
            opened, runtime, model, frames=frames, input=input, warmup=warmup, saturate=saturate,
            period_s=period_s, cores=cores, keep=keep, random_arrivals=random_arrivals, seed=seed,
            queue=queue, in_step=in_step, arena=arena, patience_s=patience_s, strategy=strategy,
            unit=unit, progress=progress,
        )  # fmt: skip
    (run,) = _run_together(
        [plan], model, frames=frames, input=input, warmup=warmup, saturate=saturate,
        period_s=period_s, random_arrivals=random_arrivals, seed=seed, queue=queue,
        in_step=in_step, arena=arena, cores=cores, patience_s=patience_s, keep=keep,
        strategy=strategy, unit=unit, progress=progress,
    )  # fmt: skip
    return run


@checked
@attribute_failures
def run_plans(
    plans: Sequence[PlanLike],
    *,
    frames: Count | None = None,
    input: Annotated[NotEmpty | Path, Must("the path of an .npz file")] | None = None,
    warmup: FromZero = 3,
    saturate: bool = False,
    period_s: Seconds | None = None,
    queue: Count | None = None,
    cores: Cores | None = None,
    patience_s: Seconds | None = None,
    keep: FilePath | None = None,
    strategy: StrategyLike = "ready-pool",
    unit: Literal["operator", "segment"] = "segment",
    progress: Tell | None = None,
) -> tuple[Run, ...]:
    """Run several plans together: a strategy takes the work of all from one pool.

    A frame of each is admitted at a time. Processors of one name are one, and run the segments of
    all plans.

    Parameters
    ----------
    plans
        Plans, or their files, in the order in which runs are returned.
    frames, warmup, saturate, queue, cores, patience_s, unit, progress
        As of `run_plan`.
    input, keep
        As of `run_plan`; the number of the plan stands before the names of arrays, as in `2/data`.
    period_s
        Time between frames; the longest that the plans predict if not given.
    strategy
        One that follows no plan: ready-pool, barriers, or a class of your own as MODULE:CLASS.

    Returns
    -------
    tuple
        A run of each plan.

    Raises
    ------
    PlanError, VerificationError, RuntimeMissingError, StrategyError, ExecutionError
        As of `run_plan`; also if the strategy follows a plan, since there are several.
    """
    return _run_together(
        plans, None, frames=frames, input=input, warmup=warmup, saturate=saturate,
        period_s=period_s, queue=queue, in_step=False, cores=cores, patience_s=patience_s,
        keep=keep, strategy=strategy, unit=unit, progress=progress,
    )  # fmt: skip


def _run_together(
    plans: Sequence[PlanLike],
    model: str | Path | None,
    *,
    strategy: str | type,
    input: str | Path | None,
    keep: str | Path | None,
    cores: Mapping[str, Sequence[int]] | None,
    **options: Any,  # noqa: ANN401 - those of `RunSettings`
) -> tuple[Run, ...]:
    if keep is not None:
        check_place(keep)
    from parapipe.plan.verify import verify_plan
    from parapipe.profiling.providers import onnx_runtime

    name, strategy_class = registry.strategy(strategy)
    opened = [open_plan(plan) for plan in plans]
    registry.check_several(name, strategy_class, len(opened))
    for each in opened:
        verify_plan(each)
    if options.get("random_arrivals"):
        random_pace_s(opened[0], name, ExecutionError)
    onnx_runtime()
    from parapipe.api.running import RunSettings, run_all

    settings = RunSettings(
        name=name,
        strategy=strategy_class,
        input=None if input is None else Path(input),
        keep=None if keep is None else Path(keep),
        cores=cores or {},
        **options,
    )
    return run_all(opened, settings, model)
