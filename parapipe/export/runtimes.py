"""The runtimes of `parapipe run` beside ONNX Runtime, by name.

A new one is one module, and a line here or an entry point of a package that names the module. Its
module holds `run(plan, model, folder, frames, settings) -> RuntimeRun`: the plan keeps all rules,
the model is the file that it was made for, and the folder is empty and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from parapipe.errors import ArgumentError
from parapipe.files.plug_ins import Registry
from parapipe.files.progress import Tell
from parapipe.plan.schema import Plan
from parapipe.runtime.frames import Frame
from parapipe.runtime.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """How a plan is run.

    Parameters
    ----------
    frames, warmup
        Frames that count, and frames before them.
    period_s
        Seconds between frames; as fast as they are taken if None.
    cores
        Of processors, in place of the plan's.
    strategy
        Name of what decides which processor runs what.
    progress
        Is told how far a build has come, where the runtime has to be built first.
    """

    frames: int
    warmup: int
    period_s: float | None
    cores: Mapping[str, Sequence[int]]
    strategy: str = "plan"
    progress: Tell | None = None


@dataclass(frozen=True, slots=True)
class RuntimeRun:
    """What a runtime has done.

    Parameters
    ----------
    record
        Of the frames that count, a span for each operator of the plan.
    results
        The graph's outputs of each frame that was given.
    notes
        What else there is to know, a sentence each.
    """

    record: Record
    results: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()


RunOn = Callable[[Plan, Path, Path, Sequence[Frame], RuntimeSettings], RuntimeRun]


def _misfit(module: ModuleType) -> str:
    return "" if callable(getattr(module, "run", None)) else "has no function `run`"


RUNTIMES = Registry(
    "runtime",
    "parapipe.runtimes",
    {"native": "parapipe.targets.native.run"},
    ArgumentError,
    _misfit,
)


def runtime(name: str) -> RunOn:
    """Return what runs plans on a runtime.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    if not RUNTIMES.has(name):
        names = ("onnxruntime", *RUNTIMES.names())
        raise ArgumentError(f"there is no runtime '{name}': choose from {', '.join(names)}")
    run: RunOn = RUNTIMES.load(name).run
    return run
