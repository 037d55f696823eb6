"""What `simulate_plan` does with the times of a run, and how it chooses slots of channels."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from parapipe.digits import plain
from parapipe.documents.build_run import warm_up_frames
from parapipe.documents.model_runs import percentile
from parapipe.documents.run_schema import SCHEMA, QueueRow, RunDocument, SlotsRow
from parapipe.errors import SimulationError
from parapipe.files.documents import read_document
from parapipe.plan.schema import Plan
from parapipe.plan.slots import with_slots, written_with_slots
from parapipe.runtime.record import done_while_admitted
from parapipe.search.options import FilePath
from parapipe.simulate.queues import Run, least_slots
from parapipe.simulate.simulation import Simulation
from parapipe.simulate.variation import MeasuredTimes, TaskTimes


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
    decided: str = "",
) -> None:
    """Refuse options that contradict a choice of slots; raise a SimulationError."""
    asked = p99_latency_s is not None or p99_period_s is not None
    if out is not None and not asked:
        raise SimulationError(
            "there is a plan to write where slots are chosen only: give `p99_latency_s` or "
            "`p99_period_s` with `out`"
        )
    if not asked:
        return
    if decided:
        raise SimulationError(f"slots are chosen for the plan's order, not for '{decided}'")
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

    def p99s(made: Simulation) -> tuple[float, float]:
        counted = made.record.frames[warm_up_frames(frames, max(made.program.graph.lag) + 1) :]
        latencies_s = sorted(frame.done_s - frame.admitted_s for frame in counted)
        done_s = done_while_admitted(counted)
        between_s = sorted(later - one for one, later in pairwise(done_s))
        return percentile(latencies_s, 0.99), percentile(between_s, 0.99) if between_s else 0.0

    def keeps(made: Simulation) -> bool:
        asked = zip(p99s(made), (p99_latency_s, p99_period_s), strict=True)
        return all(most is None or found <= most for found, most in asked)

    room = run(with_slots(plan, [frames] * len(plan.transfers)))
    # More slots make no frame later, but may make results come less evenly.
    hopeless = p99_period_s is None and not keeps(room)
    found = None if hopeless else least_slots(plan, run, keeps, frames)
    if found is None:
        latency_s, period_s = (f"{plain(each * 1e3)} ms" for each in p99s(room))
        raise SimulationError(
            "no slots keep the p99 that is asked for: with room for all frames it is "
            f"{latency_s} of latency, and {period_s} between results; ask for less, or take "
            "another plan"
        )
    chosen = written_with_slots(plan, found.slots)
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
        least=found.least,
        more_bytes=sum(each.more_bytes for each in channels),
        channels=channels,
    )
    return chosen, found.simulation, row
