"""Simulates plans, one by itself or several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from parapipe.api.checked import Model, PlanLike, PlatformFile, StrategyLike, checked
from parapipe.api.load import open_plan
from parapipe.api.several import random_pace_s
from parapipe.errors import SimulationError
from parapipe.files.checked_arguments import Count, FromZero, Must, Seconds, Share
from parapipe.files.mistakes import listed
from parapipe.search.option_types import FilePath
from parapipe.strategies import registry
from parapipe.strategies.failures import attribute_failures

if TYPE_CHECKING:
    from parapipe.front.run import Run
    from parapipe.platform.platform import Platform
    from parapipe.simulate.simulation import Simulation
    from parapipe.simulate.variation import RandomFactors

_Positive = Annotated[float, Must("a positive finite number", gt=0)]
Disturbed = Annotated[
    Mapping[str, Share],
    Must("shares of at least 0 and less than 1 by processor, as in {'big': 0.5}"),
]
Contention = Annotated[bool | _Positive, Must("True, False or a positive finite number")]


class _Common(TypedDict):
    frames: int
    queue: int | None
    luck: RandomFactors | None
    saturate: bool


def strategy_names() -> tuple[str, ...]:
    """Names of all strategies, sorted."""
    return registry.STRATEGIES.names()


def check_strategy(name: str) -> None:
    """Raise a StrategyError if there is no strategy of that name."""
    registry.strategy(name)


@checked
@attribute_failures
def simulate_plan(
    plan: PlanLike,
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
    strategy: StrategyLike = "plan",
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
        many bytes as the memory can, in place of the plan's law of co-runs; True for the law of the
        platform, False for that of the plan. Unless it is False, operators on streams take less
        while other streams do nothing, by the platform's law.
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
    from parapipe.api import simulating
    from parapipe.documents.build_run import run_document
    from parapipe.documents.run_schema import SimulationRow
    from parapipe.front.run import Run
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.priced_work import price_operators, simulation_notes
    from parapipe.simulate.simulation import simulate
    from parapipe.simulate.strategies import price_plan, simulate_decided
    from parapipe.simulate.variation import RandomFactors
    from parapipe.strategies.failures import call_with_timeout

    opened = open_plan(plan)
    verify_plan(opened)
    simulating.check_size([opened], frames)
    name, strategy_class = registry.strategy(strategy)
    pace_s = random_pace_s(opened, name, SimulationError) if random_arrivals else None
    if name != registry.PLAN and contention is not False:
        raise SimulationError(
            f"contention is simulated with the strategy 'plan' only, and not with '{name}'"
        )
    needed = contention is not False or name != registry.PLAN
    target = simulating.platform_of(opened, platform) if needed else None
    memory = None
    if target is not None and contention is not False:
        memory = simulating.contended_memory(opened, target, contention)
    luck = RandomFactors(jitter, simulating.disturbed_shares([opened], disturb or {}), seed)
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
        measured = simulating.measured_times(Path(jitter_from), opened, seed)
    chosen = None
    if target is not None and name != registry.PLAN:
        simulating.check_slots(p99_latency_s, p99_period_s, out, strategy=name)

        def simulate_strategy(target: Platform = target) -> Simulation:
            split = simulating.price_micro_batches(opened, target, strategy_class, model)
            costs = price_operators(opened, target)
            one = price_plan(opened, costs, strategy_class, queue=queue, unit=unit, **split)
            return simulate_decided([one], strategy_class, name, **common)[0]

        simulated = call_with_timeout(simulate_strategy, patience_s)
    else:
        simulating.check_slots(p99_latency_s, p99_period_s, out, queue=queue, saturate=saturate)
        run = partial(
            simulate, memory=memory, measured=measured, unit=unit, pace_s=pace_s, **common
        )
        if p99_latency_s is None and p99_period_s is None:
            simulated = run(opened)
        else:
            opened, simulated, chosen = simulating.with_chosen_slots(
                opened, run, frames, p99_latency_s, p99_period_s
            )
            if out is not None:
                opened.save(Path(out))
    settings = SimulationRow(
        unit=measured.unit if measured else unit,
        queue=queue,
        jitter=jitter,
        measured=None if jitter_from is None else str(jitter_from),
        chosen=chosen,
        disturbed=dict(luck.disturbed) or None,
        seed=seed,
        contention=memory.contention if memory else None,
        steady=simulating.steady_row(simulated),
    )
    document = run_document(
        opened,
        simulated.program,
        simulated.record,
        how="simulation",
        saturated=saturate,
        pace_s=pace_s,
        strategy=name,
        simulation=settings,
        exact_s=simulated.pace_s,
        arrivals_seed=seed if random_arrivals else None,
    )
    notes = simulation_notes(
        opened, target, name, document.period.observed_s, contends=memory is not None
    )
    return Run(document, simulated.record, tuple(notes))


@checked
@attribute_failures
def simulate_plans(
    plans: Sequence[PlanLike],
    *,
    frames: Count = 100,
    queue: Count | None = None,
    jitter: Share = 0.0,
    disturb: Disturbed | None = None,
    seed: FromZero = 0,
    saturate: bool = False,
    platform: PlatformFile | None = None,
    unit: Literal["operator", "segment"] = "operator",
    strategy: StrategyLike = "ready-pool",
    patience_s: Seconds | None = None,
) -> tuple[Run, ...]:
    """Simulate several plans together: a strategy takes the work of all from one pool.

    A frame of each is admitted at a time, saturated or one per longest period that is predicted.
    Every processor of the plans may run the work of all.

    Parameters
    ----------
    plans
        Plans, or their files, for one platform, in the order in which runs are returned.
    frames, queue, jitter, disturb, seed, saturate, platform, unit, patience_s
        As of `simulate_plan`.
    strategy
        One that follows no plan: ready-pool, barriers, or a class of your own as MODULE:CLASS.

    Returns
    -------
    tuple
        A run of each plan.

    Raises
    ------
    PlanError, VerificationError, SimulationError, StrategyError
        As of `simulate_plan`; also if plans are for different platforms, or have a processor at
        different operating points, or the strategy follows a plan.
    """
    from parapipe.api import simulating
    from parapipe.documents.build_run import run_document
    from parapipe.documents.run_schema import SimulationRow
    from parapipe.front.run import Run
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.priced_work import frequencies_hz, price_operators, simulation_notes
    from parapipe.simulate.strategies import price_plan, simulate_decided
    from parapipe.simulate.variation import RandomFactors
    from parapipe.strategies.failures import call_with_timeout

    name, strategy_class = registry.strategy(strategy)
    opened = [open_plan(plan) for plan in plans]
    registry.check_several(name, strategy_class, len(opened))
    for each in opened:
        verify_plan(each)
    simulating.check_size(opened, frames)
    if odd := {each.platform for each in opened} - {opened[0].platform}:
        raise SimulationError(
            f"plans are for different platforms ({listed(sorted({opened[0].platform, *odd}))}): "
            "simulate those together that are for one"
        )
    target, points = simulating.platform_of(opened[0], platform), frequencies_hz(opened)
    luck = RandomFactors(jitter, simulating.disturbed_shares(opened, disturb or {}), seed)

    def simulate_strategy() -> tuple[Simulation, ...]:
        return simulate_decided(
            [
                price_plan(
                    plan,
                    price_operators(plan, target, points),
                    strategy_class,
                    queue=queue,
                    unit=unit,
                )
                for plan in opened
            ],
            strategy_class,
            name,
            frames=frames,
            queue=queue,
            luck=None if luck.is_none else luck,
            saturate=saturate,
        )

    simulated = call_with_timeout(simulate_strategy, patience_s)
    settings = SimulationRow(
        unit=unit,
        queue=queue,
        jitter=jitter,
        disturbed=dict(luck.disturbed) or None,
        seed=seed,
        contention=None,
        steady=None,
    )
    pace_s = max(each.predicted.period_s for each in opened)
    runs = []
    for each, one in zip(opened, simulated, strict=True):
        document = run_document(
            each,
            one.program,
            one.record,
            how="simulation",
            saturated=saturate,
            pace_s=pace_s,
            strategy=name,
            simulation=settings,
        )
        notes = simulation_notes(each, target, name, document.period.observed_s)
        runs.append(Run(document, one.record, tuple(notes)))
    return tuple(runs)
