"""What simulations need: sizes, platforms and prices, times of runs, and slots of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

from parapipe.api.checked import PlatformFile
from parapipe.api.load import load_platform, locate_model
from parapipe.cost.co_run import LinearContention, co_run_law
from parapipe.digits import plain
from parapipe.documents.build_run import warm_up_frames
from parapipe.documents.model_runs import percentile
from parapipe.documents.run_schema import SCHEMA, QueueRow, RunDocument, SlotsRow, SteadyRow
from parapipe.errors import PlatformError, SimulationError
from parapipe.files.documents import read_document
from parapipe.files.mistakes import listed
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.build import rebuild_with_slots, with_slots
from parapipe.plan.schema import Plan
from parapipe.plan.summary import Batches
from parapipe.platform.platform import Platform
from parapipe.runtime.record import done_while_admitted
from parapipe.search.option_types import FilePath
from parapipe.simulate.priced_work import Costs, price_operators
from parapipe.simulate.queues import Run, least_slots
from parapipe.simulate.simulation import Simulation
from parapipe.simulate.variation import MeasuredTimes, Memory, TaskTimes, stream_laws
from parapipe.strategies.strategy import Strategy, may_split, sizes_of

MOST_TASKS = 5_000_000  # some minutes, and some hundred bytes each


class SplitWork(TypedDict):
    """How a strategy may split batches: their size, and costs by the size of smaller ones."""

    batch: int
    sized: Mapping[int, Costs]


def check_size(plans: Sequence[Plan], frames: int) -> None:
    """Raise a SimulationError if that would take for ever."""
    tasks = sum(len(plan.operators) + len(plan.transfers) for plan in plans)
    if frames * tasks > MOST_TASKS:
        names = listed([f"'{plan.model.name}'" for plan in plans])
        raise SimulationError(
            f"{frames} frames of {tasks} operators and transfers are too many to simulate; at most "
            f"{MOST_TASKS // tasks} frames of {names} can be"
        )


def disturbed_shares(plans: Sequence[Plan], shares: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of disturbed processors; refuse processors that the plans lack."""
    names = list(dict.fromkeys(each.name for plan in plans for each in plan.processors))
    if unknown := sorted(set(shares) - set(names)):
        raise SimulationError(
            f"{listed(unknown)} cannot be disturbed: the plan's processors are {listed(names)}"
        )
    return {name: share for name, share in shares.items() if share}


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


def contended_memory(plan: Plan, target: Platform, contention: float | bool) -> Memory:
    """Return the memory that processors share, with the law by which they slow each other down.

    That is the contention given, or else the law of the platform.
    """
    streams = stream_laws(plan, target)
    if contention is not True:
        law = LinearContention(contention / target.memory.bandwidth_bytes_per_s)
        return Memory(law, streams, float(contention))
    stated = co_run_law(target)
    if stated is None and not streams:
        raise SimulationError(
            f"platform '{target.name}' does not say how much processors slow each other down; "
            "give its section co_run, contention in its section evaluation, or a share, as in "
            "`contention` 0.3"
        )
    return Memory(stated, streams, target.evaluation.contention if target.evaluation else 0.0)


def steady_row(simulation: Simulation) -> SteadyRow | None:
    """Return from when on a schedule repeats; None if it does not."""
    steady = simulation.steady
    if steady is None:
        return None
    period_s = float(steady.period_ps / PICOSECONDS)
    return SteadyRow(period_s=period_s, frames=steady.frames, since=steady.since)


def price_micro_batches(
    plan: Plan, target: Platform, strategy: type[Strategy], model: str | Path | None
) -> SplitWork:
    """Price the micro-batches that a strategy may split batches into."""
    if not may_split(strategy):
        return {"batch": 1, "sized": {}}
    with locate_model(plan, model) as file:
        batches = Batches(plan, file)
        sizes = sizes_of(strategy, batches.size)
        sized = {size: price_operators(batches.plan_of(size), target) for size in sizes}
    return {"batch": batches.size, "sized": sized}


def measured_times(path: Path, plan: Plan, seed: int) -> MeasuredTimes:
    """Read the times of a run of a plan.

    Raises
    ------
    SimulationError
        The file cannot be read, or is of a simulation or of another model.
    """
    document = read_document(path, RunDocument, schema=SCHEMA, what="run", error=SimulationError)
    if document.how != "run":
        raise SimulationError(f"{path} is a simulation: give what `parapipe run --json` prints")
    if document.model_sha256 != plan.model.sha256:
        raise SimulationError(
            f"{path} is a run of '{document.model}', and the plan is of '{plan.model.name}': run "
            "this plan, as in `parapipe run PLAN --json`"
        )
    tasks = [
        TaskTimes(each.resource, each.operators, each.times_s, each.handovers_s)
        for each in document.tasks
    ]
    return MeasuredTimes(str(path), tasks, seed)


def check_slots(
    p99_latency_s: float | None,
    p99_period_s: float | None,
    out: FilePath | None,
    *,
    queue: int | None = None,
    saturate: bool = False,
    strategy: str = "",
) -> None:
    """Refuse options that contradict a choice of slots; raise a SimulationError."""
    has_bound = p99_latency_s is not None or p99_period_s is not None
    if out is not None and not has_bound:
        raise SimulationError(
            "there is a plan to write where slots are chosen only: give `p99_latency_s` or "
            "`p99_period_s` with `out`"
        )
    if not has_bound:
        return
    if strategy:
        raise SimulationError(f"slots are chosen for the plan's order, not for '{strategy}'")
    if queue is not None:
        raise SimulationError("a p99 chooses the slots, and so does `queue`: give one of them")
    if saturate and p99_latency_s is not None:
        raise SimulationError(
            "latency holds queueing where frames are admitted as fast as they are taken: leave out "
            "`saturate`, or ask for `p99_period_s`"
        )


def with_chosen_slots(
    plan: Plan, run: Run, frames: int, p99_latency_s: float | None, p99_period_s: float | None
) -> tuple[Plan, Simulation, SlotsRow]:
    """Return a plan with the fewest bytes of slots that keep what is asked for.

    Raises
    ------
    SimulationError
        None do; the message says what there is with room for all frames.
    """

    def p99s(simulation: Simulation) -> tuple[float, float]:
        first = warm_up_frames(frames, max(simulation.program.graph.lag) + 1)
        counted = simulation.record.frames[first:]
        latencies_s = sorted(frame.done_s - frame.admitted_s for frame in counted)
        done_s = done_while_admitted(counted)
        between_s = sorted(later - one for one, later in pairwise(done_s))
        return percentile(latencies_s, 0.99), percentile(between_s, 0.99) if between_s else 0.0

    def meets_bounds(simulation: Simulation) -> bool:
        bounds = zip(p99s(simulation), (p99_latency_s, p99_period_s), strict=True)
        return all(most is None or p99_s <= most for p99_s, most in bounds)

    unbounded = run(with_slots(plan, [frames] * len(plan.transfers)))
    # More slots make no frame later, but may make results come less evenly.
    hopeless = p99_period_s is None and not meets_bounds(unbounded)
    best = None if hopeless else least_slots(plan, run, meets_bounds, frames)
    if best is None:
        latency_s, period_s = (f"{plain(each * 1e3)} ms" for each in p99s(unbounded))
        raise SimulationError(
            "no slots keep the p99 that is asked for: with room for all frames it is "
            f"{latency_s} of latency, and {period_s} between results; ask for less, or take "
            "another plan"
        )
    chosen = rebuild_with_slots(plan, best.slots)
    channels = tuple(
        QueueRow.of(
            now,
            slots=now.queue_depth,
            more_bytes=(now.queue_depth - before.queue_depth) * now.size_bytes,
        )
        for before, now in zip(plan.transfers, chosen.transfers, strict=True)
    )
    row = SlotsRow(
        p99_latency_s=p99_latency_s,
        p99_period_s=p99_period_s,
        least=best.least,
        more_bytes=sum(each.more_bytes for each in channels),
        channels=channels,
    )
    return chosen, best.simulation, row
