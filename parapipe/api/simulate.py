"""Simulates plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from parapipe.api.checked import Model, PlanGiven, PlatformFile, StrategyGiven, checked
from parapipe.api.load import load_platform, located_model, opened_plan
from parapipe.api.several import random_pace_s
from parapipe.errors import PlatformError, SimulationError
from parapipe.files.checked_arguments import Count, FromZero, Must, Seconds, Share
from parapipe.files.mistakes import listed
from parapipe.search.options import FilePath
from parapipe.strategies import registry
from parapipe.strategies.failures import decided

if TYPE_CHECKING:
    from parapipe.documents.run_schema import SteadyRow
    from parapipe.front.run import Run
    from parapipe.plan.schema import Plan
    from parapipe.platform.platform import Platform
    from parapipe.simulate.contention import Memory
    from parapipe.simulate.priced_work import Costs
    from parapipe.simulate.simulation import Simulation
    from parapipe.simulate.variation import Luck
    from parapipe.strategies.strategy import Strategy


MOST_TASKS = 5_000_000  # some minutes, and some hundred bytes each
_Positive = Annotated[float, Must("a positive finite number", gt=0)]
Disturbed = Annotated[
    Mapping[str, Share],
    Must("shares of at least 0 and less than 1 by processor, as in {'big': 0.5}"),
]
Contention = Annotated[bool | _Positive, Must("True, False or a positive finite number")]


class _Common(TypedDict):
    frames: int
    queue: int | None
    luck: Luck | None
    saturate: bool


class _Split(TypedDict):
    batch: int
    sized: Mapping[int, Costs]


def strategy_names() -> tuple[str, ...]:
    """Names of all strategies, sorted."""
    return registry.STRATEGIES.names()


def check_strategy(name: str) -> None:
    """Raise a StrategyError if there is no strategy of that name."""
    registry.strategy(name)


@checked
@decided
def simulate_plan(
    plan: PlanGiven,
    *,
    frames: Count = 100,
    queue: Count | None = None,
    jitter: Share = 0.0,
    jitter_from: FilePath | None = None,
    disturb: Disturbed | None = None,
    seed: FromZero = 0,
    saturate: bool = False,
    random_arrivals: bool = False,
    contention: Contention = False,
    platform: PlatformFile | None = None,
    unit: Literal["operator", "segment"] = "operator",
    strategy: StrategyGiven = "plan",
    patience_s: Seconds | None = None,
    p99_latency_s: _Positive | None = None,
    p99_period_s: _Positive | None = None,
    out: FilePath | None = None,
    model: Model | None = None,
) -> Run:
    """Simulate frames through a plan, event by event.

    Parameters
    ----------
    plan
        A plan, or its file.
    frames
        How many.
    queue
        Slots of every channel between processors, instead of the plan's.
    jitter
        How much the times of operators and transfers vary: their standard deviation as a share of
        the time.
    jitter_from
        A run of this plan, as `run --json` prints it: each frame takes the times that some frame of
        the run took, in place of the predicted ones, for the run's segments or operators.
    disturb
        By a processor's name: share of the frames, drawn at random, in which another program takes
        half of the processor, so that its work takes twice as long.
    seed
        Seed of the jitter, of the frames that are disturbed, and of random arrivals.
    saturate
        Admit frames as fast as the pipeline takes them, not one per predicted period.
    random_arrivals
        Of a plan of several models: let frames of each come at random times, at its rate on
        average, while the pattern repeats as fast as it can, and say how long they take.
    contention
        Lengthening of an operator, as a share of its time, while other processors together move as
        many bytes as the memory can; True for that of the platform, False for none. Unless it is
        False, operators on streams take less while other streams do nothing, by the platform's law.
    platform
        The platform whose memory is shared, and that says what operators take on other processors
        than the plan's. Default: the shipped platform that the plan names.
    unit
        What a processor runs without interruption; ONNX Runtime runs segments.
    strategy
        What decides which processor runs what: plan, steal, ready-pool, barriers, micro-batches,
        streams, or a class of your own as MODULE:CLASS.
    patience_s
        Give up if the strategy does not answer for so long. Default: a minute.
    p99_latency_s
        Choose the slots of each channel: those of fewest bytes with which 99 % of the frames are
        done in this time.
    p99_period_s
        The same for the time between results.
    out
        Write the plan with the slots that were chosen to this file.
    model
        The ONNX file, or `zoo:NAME`, if it is not where the plan says. Only strategies that split
        batches need it.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, or breaks rules.
    SimulationError
        Frames would block each other, are too many, or no contention is known; the strategy cannot
        be simulated with this plan; the run is of another one; or no slots keep what is asked for.
    StrategyError
        There is no such strategy, or it fails.
    """
    from parapipe.api.simulate_slots import check_slots, measured_times, with_chosen_slots
    from parapipe.documents.build_run import run_document
    from parapipe.documents.run_schema import SimulationRow
    from parapipe.front.run import Run
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.priced_work import costs_of, notes_of
    from parapipe.simulate.simulation import simulate
    from parapipe.simulate.strategies import priced, simulate_decided
    from parapipe.simulate.variation import Luck
    from parapipe.strategies.failures import patient

    opened = opened_plan(plan)
    verify_plan(opened)
    check_size([opened], frames)
    name, decides = registry.strategy(strategy)
    pace_s = random_pace_s(opened, name, SimulationError) if random_arrivals else None
    if name != registry.PLAN and contention is not False:
        raise SimulationError(
            f"contention is simulated with the strategy 'plan' only, and not with '{name}'"
        )
    needed = contention is not False or name != registry.PLAN
    target = platform_of(opened, platform) if needed else None
    memory = None
    if target is not None and contention is not False:
        memory = _memory(opened, target, contention)
    luck = Luck(jitter, disturbed_of([opened], disturb or {}), seed)
    common: _Common = {
        "frames": frames,
        "queue": queue,
        "luck": None if luck.is_none else luck,
        "saturate": saturate,
    }
    measured = None
    if jitter_from is not None:
        if jitter or contention is not False or name != registry.PLAN:
            raise SimulationError(
                "times of a run hold jitter and contention already, and are those of a plan: give "
                "`jitter_from` without `jitter`, `contention` and `strategy`"
            )
        measured = measured_times(Path(jitter_from), opened, seed)
    chosen = None
    if target is not None and name != registry.PLAN:
        check_slots(p99_latency_s, p99_period_s, out, decided=name)

        def as_decided(target: Platform = target) -> Simulation:
            split = _split(opened, target, decides, model)
            costs = costs_of(opened, target)
            one = priced(opened, costs, decides, queue=queue, unit=unit, **split)
            return simulate_decided([one], decides, name, **common)[0]

        found = patient(as_decided, patience_s)
    else:
        check_slots(p99_latency_s, p99_period_s, out, queue=queue, saturate=saturate)
        run = partial(
            simulate, memory=memory, measured=measured, unit=unit, pace_s=pace_s, **common
        )
        if p99_latency_s is None and p99_period_s is None:
            found = run(opened)
        else:
            opened, found, chosen = with_chosen_slots(
                opened, run, frames, p99_latency_s, p99_period_s
            )
            if out is not None:
                opened.save(Path(out))
    how = SimulationRow(
        unit=measured.unit if measured else unit,
        queue=queue,
        jitter=jitter,
        measured=None if jitter_from is None else str(jitter_from),
        chosen=chosen,
        disturbed=dict(luck.disturbed) or None,
        seed=seed,
        contention=memory.contention if memory else None,
        steady=_steady(found),
    )
    document = run_document(
        opened,
        found.program,
        found.record,
        how="simulation",
        saturated=saturate,
        pace_s=pace_s,
        strategy=name,
        simulation=how,
        exact_s=found.pace_s,
        arrivals_seed=seed if random_arrivals else None,
    )
    notes = notes_of(opened, target, name, contends=memory is not None)
    return Run(document, found.record, tuple(notes))


def check_size(plans: Sequence[Plan], frames: int) -> None:
    """Raise a SimulationError if that would take for ever."""
    tasks = sum(len(plan.operators) + len(plan.transfers) for plan in plans)
    if frames * tasks > MOST_TASKS:
        names = listed([f"'{plan.model.name}'" for plan in plans])
        raise SimulationError(
            f"{frames} frames of {tasks} operators and transfers are too many to simulate; at most "
            f"{MOST_TASKS // tasks} frames of {names} can be"
        )


def _steady(found: Simulation) -> SteadyRow | None:
    from parapipe.documents.run_schema import SteadyRow
    from parapipe.mappings.event_graph import PICOSECONDS

    steady = found.steady
    if steady is None:
        return None
    period_s = float(steady.period_ps / PICOSECONDS)
    return SteadyRow(period_s=period_s, frames=steady.frames, since=steady.since)


def _split(
    plan: Plan, target: Platform, strategy: type[Strategy], model: str | Path | None
) -> _Split:
    """Price the micro-batches that a strategy may split batches into."""
    from parapipe.plan.summary import Batches
    from parapipe.simulate.priced_work import costs_of
    from parapipe.strategies.strategy import may_split, sizes_of

    if not may_split(strategy):
        return {"batch": 1, "sized": {}}
    with located_model(plan, model) as file:
        batches = Batches(plan, file)
        sizes = sizes_of(strategy, batches.size)
        sized = {size: costs_of(batches.plan_of(size), target) for size in sizes}
    return {"batch": batches.size, "sized": sized}


def disturbed_of(plans: Sequence[Plan], given: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of disturbed processors; refuse processors that the plans lack."""
    names = list(dict.fromkeys(each.name for plan in plans for each in plan.processors))
    if unknown := sorted(set(given) - set(names)):
        raise SimulationError(
            f"{listed(unknown)} cannot be disturbed: the plan's processors are {listed(names)}"
        )
    return {name: share for name, share in given.items() if share}


def platform_of(plan: Plan, platform: PlatformFile | None) -> Platform:
    """Return the platform whose memory is contended, or that says what operators take."""
    if platform is not None:
        return load_platform(platform)
    try:
        return load_platform(plan.platform)
    except PlatformError as error:
        raise SimulationError(
            f"contention and strategies need the platform '{plan.platform}', which the plan was "
            "made for and which is none of the shipped ones: give its file by `platform`"
        ) from error


def _memory(plan: Plan, target: Platform, contention: float | bool) -> Memory:
    from parapipe.simulate.contention import Memory, laws_of

    laws = laws_of(plan, target)
    if contention is True:
        contention = target.evaluation.contention if target.evaluation else 0.0
        if not contention and not laws:
            raise SimulationError(
                f"platform '{target.name}' does not say how much processors slow each other down; "
                "give contention in its section evaluation, or a share, as in `contention` 0.3"
            )
    return Memory(target.memory.bandwidth_bytes_per_s, float(contention), laws)
