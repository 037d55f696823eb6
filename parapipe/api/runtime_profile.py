"""Measures operators with a runtime other than ONNX Runtime: out of runs of the whole model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import Model, PlatformFile, checked
from parapipe.api.load import load_model, load_platform, model_file, split_file
from parapipe.api.profile import profile_path
from parapipe.api.profile_tasks import part_rule_lists
from parapipe.errors import ProfilingError, SplitError
from parapipe.files.checked_arguments import Count, NotEmpty
from parapipe.files.progress import Progress, Tell
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.cost.profile import Measurement
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.plan.schema import Plan
    from parapipe.platform.platform import Platform
    from parapipe.profiling.from_run import SegmentTime
    from parapipe.profiling.profile_report import ProfileReport

MOST_FRAMES, LEAST_FRAMES, WARM_UP = 100, 5, 2
LONGEST_S = 8.0
"""Of a run, as nominal times have it: there are fewer frames where these take long."""


@checked
def profile_on_runtime(
    model: Model,
    platform: PlatformFile,
    runtime: NotEmpty,
    *,
    out: FilePath | None = None,
    parts: bool = False,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    progress: Tell | None = None,
) -> ProfileReport:
    """Measure each distinct operator of a model with a runtime's kernels.

    The whole model is run on each CPU of the platform by itself, on one of equal ones, for 100
    frames (fewer where they take long), and each operator's time is taken from there: neighbours
    are in the caches as in a plan. All times together are what a usual frame takes, from the end
    of the one before (`typical_times`): the first operator has what it takes to bring its frame.

    Parameters
    ----------
    platform
        This machine's, see `detect_platform`.
    runtime
        What computes, as for `run_plan`: native.
    out
        The profile, in which rows of equal operators are replaced. Default:
        `profiles/PLATFORM/native.csv`, named like the runtime, beside the platform's file.
    parts
        Measure parts of operators as well, as in `profile`.
    dims, shapes, rules, at_most
        As in `MapOptions`.
    progress
        Called after each run.

    Raises
    ------
    ArgumentError
        There is no such runtime.
    ProfilingError
        The platform has no CPU with cores to run on.
    RuntimeMissingError, ExportError, ExecutionError
        As of `run_plan`.
    """
    from parapipe.profiling.profiling_run import take_in

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    graph = load_model(model, rules=rules, **sizes)
    path = Path(profile_path(out, platform, target))
    path = path if out is not None else path.with_name(f"{runtime}.csv")
    runs = _Runs(target, runtime, progress)
    lost: list[str] = []
    with model_file(os.fspath(model)) as file:
        measured = list(runs.measurements(graph, file))
        report = take_in(measured, target, path)
        for lists in part_rule_lists(graph, target, path) if parts else ():
            for split in lists:
                try:
                    with split_file(
                        file, os.fspath(model), split, "fused", external=False, **sizes
                    ) as cut:
                        own = load_model(cut, rules=rules, note=lambda _: None)
                        measured += runs.measurements(own, cut)
                except SplitError as error:
                    lost.append(f"some parts are not measured: {error}")
            report = take_in(measured, target, path)
    return replace(report, notes=(*report.notes, *dict.fromkeys([*runs.notes, *lost])))


class _Runs:
    """Runs of whole models on the CPUs of a platform, one by one."""

    def __init__(self, platform: Platform, runtime: str, progress: Tell | None) -> None:
        from parapipe.profiling.tasks import hardware_groups

        self._platform, self._runtime = platform, runtime
        self._progress, self._done, self._all = progress, 0, 0
        self.notes: list[str] = []
        groups = hardware_groups(platform.processors)
        first = {
            groups[each.name]: number
            for number, each in reversed([*enumerate(platform.processors)])
            if each.kind == "cpu" and each.cores
        }
        self._places = sorted(first.values())
        if not self._places:
            raise ProfilingError(
                f"platform '{platform.name}' has no CPU with cores, on which the runtime "
                f"'{runtime}' could run; write `cores` in its file"
            )

    def measurements(self, graph: OperatorGraph, file: Path) -> Iterator[Measurement]:
        """Run a model on each CPU; yield what its operators took."""
        from parapipe.api.runtime_run import run_on_runtime
        from parapipe.documents.compared_runs import segment_times
        from parapipe.profiling.from_run import measurements_of
        from parapipe.runtime.typical_times import typical_times

        times: list[SegmentTime] = []
        self._all += len(self._places)
        for place in self._places:
            plan = _plan_on_one(graph, self._platform, place)
            run = run_on_runtime(
                plan, self._runtime, file, frames=_frames_for(plan.predicted.latency_s), input=None,
                warmup=WARM_UP, saturate=True, period_s=None, cores=None, keep=None,
                progress=self._progress,
            )  # fmt: skip
            self.notes += run.notes
            typical_s = typical_times(run.record.spans)
            times += [
                replace(each, time_s=sum(typical_s[name] for name in each.operators))
                for each in segment_times(run.document, graph, self._platform)
            ]
            self._done += 1
            if self._progress is not None:
                self._progress(Progress(self._done, self._all, 0.0, 0.0, phase="running"))
        yield from measurements_of(times, graph, self._platform)


def _frames_for(frame_s: float) -> int:
    """Return how many frames are run that take so long each."""
    return min(MOST_FRAMES, max(LEAST_FRAMES, round(LONGEST_S / frame_s)))


def _plan_on_one(graph: OperatorGraph, platform: Platform, place: int) -> Plan:
    """Return a plan with all operators on one processor, with nominal times."""
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.mappings.assembly import mapping_of
    from parapipe.mappings.assignment import Assignment
    from parapipe.plan.build import build_plan

    costs = build_cost_table(graph, platform, profiles=[], precision="model")
    count = len(graph.operators)
    alone = Assignment((place,) * count, (tuple(range(count)),), ordered=True)
    return build_plan(graph, platform, costs, mapping_of(graph, platform, costs, alone))
