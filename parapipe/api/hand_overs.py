"""What hand-overs between the processors of this machine take, as plans are run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from parapipe.api.load import load_model, located_model
from parapipe.errors import ExecutionError
from parapipe.files.locked_folders import LockedFolder
from parapipe.profiling.identical_figures import (
    ELSEWHERE,
    FORMS,
    Form,
    Taken,
    hand_over_of,
    hand_overs_add,
    trunk_and_branch,
)

if TYPE_CHECKING:
    from parapipe.platform.platform import Platform
    from parapipe.profiling.identical_figures import HandOvers
    from parapipe.runtime.executor import Executor

ROUNDS, ROUND_S = 5, 0.3
FRAMES = (5, 20)  # least and most of a round
FIRST = 3  # frames that do not count
SPARE = 1.5  # of a latency, between frames: none waits for another one


@dataclass(slots=True)
class _ModuleRow:
    """A row of modules that is ready to run."""

    executor: Executor
    period_s: float = 0.0

    def measure(self) -> Taken:
        """Return the median latency of some frames, and for how long processors worked on one."""
        from parapipe.runtime.frames import random_frames

        least, most = FRAMES
        wanted = int(ROUND_S / self.period_s) if self.period_s else least
        count = FIRST + min(max(wanted, least), most)
        frames = random_frames(self.executor.folder, count)
        for _ in self.executor.run(frames, period_s=self.period_s or None):
            pass
        record = self.executor.record
        latency_s = median(frame.done_s - frame.admitted_s for frame in record.frames[FIRST:])
        busy_s: defaultdict[int, float] = defaultdict(float)
        for span in record.spans:
            busy_s[span.frame] += span.end_s - span.start_s
        self.period_s = SPARE * latency_s
        return Taken(latency_s, median(busy_s[frame] for frame in busy_s if frame >= FIRST))


def measured_hand_overs(platform: Platform, bandwidth_bytes_per_s: float) -> HandOvers:
    """Return what a hand-over takes between each two CPU processors, the same in both directions.

    Rows of modules run as plans do, by turns: with the branch on the slower one of two processors,
    and without forks on each processor alone.

    Parameters
    ----------
    platform
        This machine's.
    bandwidth_bytes_per_s
        Of a copy.

    Raises
    ------
    ExecutionError
        If ONNX Runtime does not run them.
    """
    from parapipe.runtime.folder import RunError

    cpus = [p for p, each in enumerate(platform.processors) if each.kind == "cpu"]
    pairs = list(combinations(cpus, 2))
    by_pair: dict[tuple[int, int], dict[Form, list[Taken]]] = {pair: {} for pair in pairs}
    with LockedFolder() as scratch:
        for form in FORMS:
            folder = scratch.path / f"{form.extent}x{form.outputs}"
            folder.mkdir()
            try:
                rounds = _measure_rounds(platform, form, cpus, folder)
            except RunError as error:
                raise ExecutionError(f"hand-overs cannot be measured: {error}") from error
            for pair in pairs:
                by_pair[pair][form] = rounds[pair]
    moved = {pair: hand_over_of(each, bandwidth_bytes_per_s) for pair, each in by_pair.items()}
    return moved | {(q, p): each for (p, q), each in moved.items()}


def _measure_rounds(
    platform: Platform, form: Form, cpus: list[int], folder: Path
) -> Mapping[tuple[int, int], list[Taken]]:
    """Return what the hand-overs of a form added between each two processors, round by round."""
    alone = {p: _prepared_row(platform, form, p, p, folder) for p in cpus}
    first_s = {p: each.measure().latency_s for p, each in alone.items()}  # queued; it warms up
    for each in alone.values():
        each.measure()
    ends = {pair: trunk_and_branch({p: first_s[p] for p in pair}) for pair in combinations(cpus, 2)}
    forked = {pair: _prepared_row(platform, form, *ends[pair], folder) for pair in ends}
    for each in forked.values():
        each.measure()
    added: dict[tuple[int, int], list[Taken]] = {pair: [] for pair in forked}
    for _ in range(ROUNDS):
        by_one = {p: each.measure() for p, each in alone.items()}
        for pair, each in forked.items():
            trunk, branch = (by_one[p] for p in ends[pair])
            added[pair].append(hand_overs_add(each.measure(), trunk, branch))
    return added


def _prepared_row(
    platform: Platform, form: Form, trunk: int, branch: int, folder: Path
) -> _ModuleRow:
    """Return a row of modules with a trunk and a branch on some processors, ready to run."""
    import onnx

    from parapipe.api.plan import Plan
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.export.onnxruntime.folder import write_session_folder
    from parapipe.mappings.assembly import mapping_of
    from parapipe.mappings.assignment import Assignment
    from parapipe.plan.build import build_plan
    from parapipe.runtime.executor import Executor
    from parapipe.runtime.folder import open_folder

    path, place = folder / f"{trunk}-{branch}.onnx", folder / f"{trunk}-{branch}"
    place.mkdir()
    onnx.save(form.model(forks=trunk != branch), path)
    graph = load_model(path, note=lambda _note: None)
    costs = build_cost_table(graph, platform, profiles=(), precision="model")
    placed = tuple(
        branch if operator.id.startswith(ELSEWHERE) else trunk for operator in graph.operators
    )
    order = tuple(range(len(placed)))
    mapping = mapping_of(graph, platform, costs, Assignment(placed, (order,), ordered=True))
    plan = Plan.of(build_plan(graph, platform, costs, mapping))
    with located_model(plan) as model:
        write_session_folder(plan, model, place)
    return _ModuleRow(Executor(open_folder(place)))
