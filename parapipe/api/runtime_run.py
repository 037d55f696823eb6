"""Runs a plan on this machine with a runtime other than ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from parapipe.api.load import locate_model
from parapipe.documents.build_run import run_document
from parapipe.documents.run_schema import MachineRow
from parapipe.errors import ArgumentError, ExecutionError
from parapipe.export.runtimes import RuntimeSettings, runtime
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Tell
from parapipe.front.run import Run
from parapipe.plan.program import program
from parapipe.plan.schema import Plan
from parapipe.runtime.document import State, Tensor
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import DISTINCT, frames_in, random_frames
from parapipe.runtime.machine import OtherLoad, busy_note
from parapipe.runtime.results import ResultFile
from parapipe.strategies import registry

FRAMES = 100


@dataclass(frozen=True, slots=True)
class _GraphInputs:
    """The graph inputs of a plan, as `frames_in` and `random_frames` want them."""

    inputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    states: tuple[State, ...] = ()


def run_on_runtime(
    plan: Plan,
    name: str,
    model: str | Path | None,
    *,
    frames: int | None,
    input: str | Path | None,
    warmup: int,
    saturate: bool,
    period_s: float | None,
    cores: Mapping[str, Sequence[int]] | None,
    keep: str | Path | None,
    strategy: str | type = "plan",
    progress: Tell | None = None,
    **others: Any,  # noqa: ANN401 - those that only ONNX Runtime's executor has
) -> Run:
    """Run a plan as `run_plan` does.

    Parameters
    ----------
    plan
        One that `verify_plan` accepts.
    name
        Of the runtime.

    Raises
    ------
    ArgumentError
        If there is no such runtime, or it cannot do what is asked for.
    StrategyError
        If there is no such strategy.
    RuntimeMissingError, ExportError, ExecutionError
        As of `run_plan`; an operator has no form in the runtime.
    """
    run_on = runtime(name)
    defaults = {"unit": "segment"}
    odd = [key for key, value in others.items() if value not in (None, False, 0, defaults.get(key))]
    decides, _ = registry.strategy(strategy)
    if odd:
        raise ArgumentError(f"the runtime '{name}' takes no {', '.join(f'`{key}`' for key in odd)}")
    clear_abandoned_scratch()
    pace_s = None if saturate else period_s or plan.predicted.period_s
    others_load = OtherLoad()
    with ExitStack() as stack:
        scratch = stack.enter_context(LockedFolder()).path
        file = stack.enter_context(locate_model(plan, model))
        folder = scratch / name
        folder.mkdir()
        try:
            given = _graph_inputs(plan)
            stored = None if input is None else frames_in(Path(input), given)
            count = frames or (FRAMES if stored is None else len(stored))
            fed = stored or tuple(random_frames(given, min(count, DISTINCT)))
            fed = tuple(islice(fed, count))
            settings = RuntimeSettings(
                frames=count,
                warmup=warmup,
                period_s=pace_s,
                cores=cores or {},
                strategy=decides,
                progress=progress,
            )
            done = run_on(plan, file, folder, fed, settings)
            with ResultFile(None if keep is None else Path(keep)) as kept:
                for index in range(count):
                    kept.add(done.results[index % len(done.results)])
        except RunError as error:
            raise ExecutionError(str(error)) from error
    share = others_load.share()
    document = run_document(
        plan,
        program(plan, unit="operator", moves=False),
        done.record,
        how="run",
        saturated=saturate,
        pace_s=pace_s,
        machine=MachineRow(
            cores={
                each.name: tuple((cores or {}).get(each.name, each.cores))
                for each in plan.processors
            },
            other_programs=share,
        ),
    )
    notes = (*done.notes, *filter(None, [busy_note(share)]))
    return Run(document, done.record, notes)


def _graph_inputs(plan: Plan) -> _GraphInputs:
    tensors = {
        name: Tensor(each.dtype, each.shape, each.size_bytes)
        for name, each in ((name, plan.tensors[name]) for name in plan.inputs)
    }
    return _GraphInputs(plan.inputs, tensors)
