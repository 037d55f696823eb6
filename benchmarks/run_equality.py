"""`python -m benchmarks.run_equality`: whether plans compute what networks do.

Each network is mapped, and the best configuration of each kind is exported for ONNX Runtime and
executed: a thread for each processor, as many frames in flight as the queues hold. With y the
outputs of frame n of the network in one ONNX Runtime session, and z those of the plan,

    error = max over frames n and outputs of  max |z − y| / max |y|,

which must be at most 1e-5. Frames are seeded random numbers, each unlike those before and behind
it, so that a frame out of order would show. Networks of less than 15 G MACs run 50 frames, larger
ones 3. Processors of the platform that this machine does not have are run by the cores that it has.

Watched because segments are optimised one by one, and tensors go from thread to thread.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from benchmarks.machine import description
from benchmarks.tables import markdown_table, write_csv
from parapipe import api
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.loading import located_model
from parapipe.plan.schema import Plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, open_folder
from parapipe.runtime.frames import DISTINCT, random_frames

RESULTS = Path(__file__).parent / "results"
PLATFORM = "amlogic-a311d"
NAMES = ("pipe-only", "para-only", "hybrid-T")
LARGE_MACS = 15e9
FRAMES, FRAMES_OF_LARGE = 50, 3
TOLERANCE = 1e-5

Outputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A configuration that was executed.

    Parameters
    ----------
    names
        What it is the best of.
    segments
        Model files that it was cut into.
    frames
        How many went through.
    error
        The largest difference, as a share of the output's scale.
    export_s
        Wall seconds of the export, the weights' copy included.
    """

    model: str
    names: str
    stages: str
    segments: int
    frames: int
    error: float
    export_s: float


def runs_of(model: str, frames: int | None = None) -> Iterator[Run]:
    """Map a network, and execute the best configuration of each kind.

    Parameters
    ----------
    frames
        How many; by the network's size if not given.
    """
    graph = api.load_model(model)
    macs = sum(operator.work.macs for operator in graph.operators)
    count = frames or (FRAMES if macs < LARGE_MACS else FRAMES_OF_LARGE)
    front = api.map_model(
        model, PLATFORM, mapper="heft", objectives="latency-throughput", note=lambda _: None
    )
    named: dict[str, list[str]] = {}
    for mapped in front:
        named.setdefault(mapped.row.id, []).extend(n for n in mapped.row.names if n in NAMES)
    plans = {
        names: front[key].plan() for key, found in named.items() if (names := ", ".join(found))
    }
    expected: list[Outputs] = []
    with located_model(next(iter(plans.values()))) as path:
        for names, plan in plans.items():
            yield _run(names, plan, path, count, expected)


def _run(names: str, plan: Plan, path: Path, count: int, expected: list[Outputs]) -> Run:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begin_s = perf_counter()
        document = write_session_folder(plan, path, folder)
        export_s = perf_counter() - begin_s
        opened = open_folder(folder).on_cores(_cores(plan))
        if not expected:
            expected += _expected(path, opened, min(count, DISTINCT))
        found = Executor(opened).run(random_frames(opened, count))
        errors = [
            _error(outputs, expected[index % DISTINCT]) for index, outputs in enumerate(found)
        ]
    assert len(errors) == count
    stages = " → ".join("+".join(p.name for p in stage.processors) for stage in plan.stages)
    return Run(plan.model.name, names, stages, len(document.segments), count, max(errors), export_s)


def _cores(plan: Plan) -> dict[str, tuple[int, ...]]:
    here = sorted(os.sched_getaffinity(0))
    return {p.name: (here[i % len(here)],) for i, p in enumerate(plan.processors)}


def _expected(path: Path, folder: Folder, count: int) -> Iterator[Outputs]:
    """Yield the outputs of the network, run in one session."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = list(folder.outputs)
    for frame in random_frames(folder, count):
        yield dict(zip(names, session.run(names, dict(frame)), strict=True))


def _error(found: Outputs, expected: Outputs) -> float:
    """Return the largest difference as a share of the output's scale."""
    errors = []
    for name, wanted in expected.items():
        scale = float(np.abs(wanted).max()) or 1.0
        errors.append(float(np.abs(found[name].astype(np.float64) - wanted).max()) / scale)
    assert found.keys() == expected.keys()
    return max(errors)


def page(runs: Sequence[Run]) -> str:
    """Return the results as Markdown."""
    about = "\n".join(f"- {key}: {value}" for key, value in description().items())
    rows = [
        (run.model, run.names, f"`{run.stages}`", run.segments, run.frames, f"{run.error:.1e}")
        for run in runs
    ]
    head = ("model", "best of", "stages", "segments", "frames", "largest error")
    worst = max(run.error for run in runs)
    return (
        "# Plans compute what the network computes\n\n"
        f"{len(runs)} configurations of {len({run.model for run in runs})} networks, mapped for "
        f"{PLATFORM}, executed on this machine. The largest difference from one ONNX Runtime "
        f"session is {worst:.1e} of the output's scale; {TOLERANCE:g} is the most allowed. "
        "`python -m benchmarks.run_equality` says what is measured.\n\n"
        f"{about}\n\n{markdown_table(head, [[str(cell) for cell in row] for row in rows])}\n"
    )


def _kept(path: Path) -> list[Run]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Run(
                row["model"], row["names"], row["stages"], int(row["segments"]),
                int(row["frames"]), float(row["error"]), float(row["export_s"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


@click.command()
@click.option("--only", multiple=True, help="A network; may be repeated.  [default: all]")
@click.option("--frames", type=int, help="How many, whatever the network's size.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Where to write.")
def main(*, only: tuple[str, ...], frames: int | None, out: Path) -> None:
    """Execute plans of the zoo's networks and compare what they give.

    Networks whose results stand in --out are not run again.
    """
    runs = _kept(out / "run_equality.csv")
    there = {run.model for run in runs}
    for model in (f"zoo:{name}" for name in only or api.zoo_examples()):
        for run in runs_of(model, frames) if model not in there else ():
            runs.append(run)
            print(
                f"{run.model:26}{run.names:34}{run.segments:4} segments {run.error:.1e}", flush=True
            )
        runs.sort(key=lambda run: run.model)
        write_csv([asdict(each) for each in runs], out / "run_equality.csv")
        (out / "run_equality.md").write_text(page(runs))
    failed = [run for run in runs if run.error > TOLERANCE]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(runs)} configurations differ by too much")


if __name__ == "__main__":
    main()
