"""`python -m benchmarks.memory_here FOLDER`: memory of plans that run here, and what they promise.

FOLDER holds fronts that `parapipe map --max-memory` wrote, as `docs/memory_curves.py` keeps them.
Of each, the configurations of least latency and of most throughput run on this machine: processors
of the platform are threads on this machine's cores, in turn. Each operator is a session of its own,
so that the run holds the tensors that the plan counts, and none is hidden in a session.

*measured* is the most bytes of tensors held at one time. *resident* is what the process needs at
most (`VmHWM`) beyond what it has before the first frame, when the runtime and all weights are
there. It holds what operators need for themselves, and what allocators keep, too; neither is
predicted. Both stand beside *promised*, the plan's peak, and the limit, all without weights.

Watched because a limit is of use only if runs keep it, on a machine whose times are others than the
plan's. So all run in step (`parapipe run --in-step`); *free* is what was measured without that.
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
from tempfile import TemporaryDirectory
from typing import Any

import click

from benchmarks.machine import description
from benchmarks.tables import markdown_table
from parapipe.api.load import load_plan, located_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import random_frames

PAGE = Path(__file__).parent / "results" / "memory_here.md"
MORE_FRAMES = 4  # than are under way at once
HEAD = (
    *("model", "limit, MB", "configuration", "kind", "frames under way", "frames"),
    *("promised, MB", "measured, MB", "of it", "free, MB", "resident, MB", "within the limit"),
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
    executor = Executor(opened, remembered=1)
    under_way = 1 + max(each.lag for each in opened.segments)
    fed = list(random_frames(opened, under_way + MORE_FRAMES))
    gc.collect()
    before = status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins again
    found = {"under way": under_way}
    for name, in_step in (("measured", True), ("free", False)):
        executor.in_step = in_step
        for _ in executor.run(fed):
            pass
        found[name] = executor.record.peak_tensor_bytes or 0
        found.setdefault("resident", status_bytes("VmHWM") - before)
    return found


def row(case: Case, scratch: Path) -> tuple[object, ...]:
    """Run a case in a process of its own; return its row."""
    plan = load_plan(case.plan)
    scratch.mkdir()
    with located_model(plan) as model:
        write_session_folder(plan, model, scratch, single=True, in_place=False)
    command = [sys.executable, "-m", "benchmarks.memory_here", str(scratch), "--held"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return (
        case.model.removeprefix("zoo:"),
        f"{case.limit_bytes / 1e6:.1f}",
        case.plan.stem,
        case.kind,
        found["under way"],
        found["under way"] + MORE_FRAMES,
        f"{case.promised_bytes / 1e6:.1f}",
        f"{found['measured'] / 1e6:.1f}",
        f"{found['measured'] / case.promised_bytes:.0%}",
        f"{found['free'] / 1e6:.1f}",
        f"{found['resident'] / 1e6:.1f}",
        "yes" if found["measured"] <= case.limit_bytes else "no",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--model", "models", multiple=True, help="Run those alone.")
@click.option("--held", "alone", is_flag=True, help="Run one exported folder in this process.")
def main(*, folder: Path, models: Sequence[str], alone: bool) -> None:
    """Run the plans of a folder's fronts on this machine; write the page."""
    if alone:
        click.echo(json.dumps(held(folder)))
        return
    about: dict[str, Any] = description() | {"ONNX Runtime": version("onnxruntime")}
    rows: list[tuple[object, ...]] = []
    with TemporaryDirectory() as scratch:
        chosen = [each for each in cases(folder) if not models or each.model in models]
        for number, case in enumerate(chosen):
            rows.append(row(case, Path(scratch) / str(number)))
            click.echo(" | ".join(map(str, rows[-1])))
            PAGE.write_text(page(rows, about), encoding="utf-8")


def page(rows: Sequence[Sequence[object]], about: Mapping[str, str]) -> str:
    """Return the page."""
    return (
        "# Memory of plans on this machine\n\n"
        "Written by `python -m benchmarks.memory_here`; `benchmarks/memory_here.py` says how. "
        "Plans for the A311D under limits, of least latency and of most throughput, run here with "
        "each operator a session of its own, in step; *free* is measured without that. All sizes "
        "are without weights.\n\n"
        f"{markdown_table(HEAD, rows)}\n\n"
        f"{markdown_table(['measured on', ''], list(about.items()))}\n"
    )


if __name__ == "__main__":
    main()
