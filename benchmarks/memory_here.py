"""`python -m benchmarks.memory_here FOLDER`: memory of plans that run here, and what they promise.

FOLDER holds fronts that `parapipe map --max-memory` wrote, as `docs/memory_curves.py` keeps them.
Of each front of the curves, the configurations of least latency and of most throughput run on this
machine, identical ones once: processors of the platform are threads on this machine's cores, in
turn. Each operator is a session of its own, so that the run holds the tensors that the plan counts,
and none is hidden in a session. Tensors lie at the plan's offsets (`parapipe run --arena`), and
work begins in the plan's order (`--in-step`), since a limit is of use only if runs keep it, on a
machine whose times are others than the plan's.

*promised* is the plan's peak, and *measured* the most bytes of tensors held at one time, each by
itself: that is what the limit speaks of. *arena* is the memory that they lie in: less where they
share bytes, more where it has gaps. *outside* is the most bytes of tensors that lie in no arena:
results, which are the caller's. *resident* is what the process needs at most (`VmHWM`) beyond what
it has before the first frame, when the runtime and all weights are there. It holds what operators
need for themselves, and what allocators keep, too; neither is predicted. All are without weights.

A plan takes 10 to 60 s on a machine at rest, most of it for frames: 26 plans about ten minutes. One
that takes five minutes is given up.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import click

from benchmarks.machine import description
from benchmarks.tables import markdown_table
from parapipe.api.load import load_plan, locate_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import random_frames

PAGE = Path(__file__).parent / "results" / "memory_here.md"
CURVES = ("zoo:unet", "zoo:inception-v4", "zoo:yolo-pan")
MORE_FRAMES = 4  # than are under way at once
MOST_S = 300.0
HEAD = (
    *("model", "limit, MB", "configuration", "kind", "frames under way", "frames"),
    *("promised, MB", "measured, MB", "of it", "within the limit", "arena, MB", "of it"),
    *("outside, MB", "resident, MB", "of it"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A configuration of a front; bytes without weights."""

    model: str
    plan: Path
    kind: str
    limit_bytes: float
    promised_bytes: int


def cases(folder: Path) -> Iterator[Case]:
    """Yield what the fronts of a folder have to run, each configuration under its least limit."""
    known: set[tuple[object, ...]] = set()
    for path in sorted(folder.rglob("front.json")):
        front = json.loads(path.read_text(encoding="utf-8"))
        limit = front["options"]["max_memory_bytes"]
        if limit is None:
            continue
        rows: list[Mapping[str, Any]] = front["configurations"]
        first = min(rows, key=lambda row: (row["latency_s"], row["period_s"]))
        most = min(rows, key=lambda row: (row["period_s"], row["latency_s"]))
        for row in (first, most):
            key = front["model"], row["drawing"], row["latency_s"], row["period_s"]
            if key in known:
                continue
            known.add(key)
            weights = sum(each["weights_bytes"] for each in row["memories"])
            yield Case(
                front["model"],
                path.parent / "plans" / f"{row['id']}.json",
                row["kind"],
                limit - weights,
                row["peak_memory_bytes"] - weights,
            )


def status_bytes(field: str) -> int:
    """Return a size that the system tells of this process."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(each for each in text.splitlines() if each.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def held(folder: Path) -> dict[str, int]:
    """Run a folder's plan; return the bytes that it held, and those that the process took."""
    opened = open_folder(folder)
    lent = sorted(os.sched_getaffinity(0))
    names = [each.name for each in opened.processors]
    opened = opened.on_cores({name: [lent[i % len(lent)]] for i, name in enumerate(names)})
    executor = Executor(opened, remembered=1, in_step=True, arena=True)
    under_way = 1 + max(each.lag for each in opened.segments)
    fed = list(random_frames(opened, under_way + MORE_FRAMES))
    gc.collect()
    before = status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins again
    for _ in executor.run(fed):
        pass
    return {
        "under way": under_way,
        "measured": executor.record.peak_tensor_bytes or 0,
        "outside": executor.record.peak_outside_bytes or 0,
        "arena": sum(each.size_bytes for each in opened.arenas),
        "resident": status_bytes("VmHWM") - before,
    }


def row(case: Case, scratch: Path) -> tuple[object, ...]:
    """Run a case in a process of its own; return its row."""
    plan = load_plan(case.plan)
    scratch.mkdir()
    with locate_model(plan) as model:
        write_session_folder(plan, model, scratch, single=True, in_place=False)
    command = [sys.executable, "-m", "benchmarks.memory_here", str(scratch), "--held"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=MOST_S)
    except subprocess.TimeoutExpired as error:
        told = f"{case.plan} did not end in {MOST_S:.0f} s: run it on a machine that is at rest"
        raise click.ClickException(told) from error
    rmtree(scratch)
    found = json.loads(done.stdout)
    promised = case.promised_bytes
    return (
        case.model.removeprefix("zoo:"),
        f"{case.limit_bytes / 1e6:.1f}",
        case.plan.stem,
        case.kind,
        found["under way"],
        found["under way"] + MORE_FRAMES,
        f"{promised / 1e6:.1f}",
        f"{found['measured'] / 1e6:.1f}",
        f"{found['measured'] / promised:.0%}",
        "yes" if found["measured"] <= case.limit_bytes else "no",
        f"{found['arena'] / 1e6:.1f}",
        f"{found['arena'] / promised:.0%}",
        f"{found['outside'] / 1e6:.1f}",
        f"{found['resident'] / 1e6:.1f}",
        f"{found['resident'] / promised:.0%}",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--model", "models", multiple=True, default=CURVES, help="Run those alone.")
@click.option("--most", type=int, help="Run so many of each model alone, the first in FOLDER.")
@click.option("--held", "alone", is_flag=True, help="Run one exported folder in this process.")
def main(*, folder: Path, models: Sequence[str], most: int | None, alone: bool) -> None:
    """Run the plans of a folder's fronts on this machine; write the page."""
    if alone:
        click.echo(json.dumps(held(folder)))
        return
    about: dict[str, Any] = description() | {"ONNX Runtime": version("onnxruntime")}
    rows: list[tuple[object, ...]] = []
    with TemporaryDirectory() as scratch:
        every = [*cases(folder)]
        of_model = ([each for each in every if each.model == name][:most] for name in models)
        for number, case in enumerate(case for chosen in of_model for case in chosen):
            rows.append(row(case, Path(scratch) / str(number)))
            click.echo(" | ".join(map(str, rows[-1])))
            PAGE.write_text(page(rows, about), encoding="utf-8")


def page(rows: Sequence[Sequence[object]], about: Mapping[str, str]) -> str:
    """Return the page."""
    return (
        "# Memory of plans on this machine\n\n"
        "Written by `python -m benchmarks.memory_here`; `benchmarks/memory_here.py` says how. "
        "All plans of least latency and of most throughput for the A311D under limits, run here "
        "with each operator a session of its own, in step, tensors at the plan's offsets in an "
        "arena; *outside* are results, which are the caller's. All sizes are without "
        "weights.\n\n"
        f"{markdown_table(HEAD, rows)}\n\n"
        f"{markdown_table(['measured on', ''], list(about.items()))}\n"
    )


if __name__ == "__main__":
    main()
