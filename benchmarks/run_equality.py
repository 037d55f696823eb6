"""`python -m benchmarks.run_equality`: a plan that is run gives what one session gives.

For each network of the zoo and each kind of configuration (sequential, pipe-only, para-only,
hybrid), the plan of the kind's best throughput on the A311D runs on the cores at hand: 50 frames of
seeded random numbers for networks below 15 GMACs, 3 for the others. With y the results of one ONNX
Runtime session on the whole model and ŷ those of the executor, frame by frame in order, the error
is max |ŷ − y| / max |y|, the largest of all outputs and frames; at most 1e-5. Watched because a
pipeline that is quick and wrong, or mixes frames up, is worth nothing.

ONNX Runtime fuses operators across the whole model and within a segment, so that sums are taken in
another order where a segment ends: hence the tolerance.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table, write_csv
from parapipe.api.load import locate_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.schema import Plan
from parapipe.profiling.measure import session
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, open_folder
from parapipe.runtime.frames import random_frames

PLATFORM = "amlogic-a311d"
NETWORKS = (
    "alexnet", "bert-base", "bevformer", "densenet-121", "googlenet", "gpt:12",
    "inception-resnet-v2", "inception-v3", "inception-v4", "mobilenet-v1", "mobilenet-v2", "petr",
    "resnet-50", "squeezenet", "unet", "vit-b16", "yolo-pan",
)  # fmt: skip
KINDS = ("sequential", "pipe-only", "para-only", "hybrid")
RESULTS = Path(__file__).parent / "results"
LARGE_MACS = 15e9
FRAMES, FRAMES_OF_LARGE = 50, 3
TOLERANCE = 1e-5

Arrays = Mapping[str, Any]


def checked(network: str, mapper: str) -> Iterator[dict[str, object]]:
    """Map a network, run the best plan of each kind; yield a row for each."""
    model = f"zoo:{network}"
    graph = parapipe.load_model(model)
    macs = sum(operator.work.macs for operator in graph.operators)
    count = FRAMES if macs < LARGE_MACS else FRAMES_OF_LARGE
    front = parapipe.map(
        model, PLATFORM, mapper=mapper, objectives="latency-throughput", note=lambda _note: None
    )
    plans: dict[str, Plan] = {}
    for each in sorted(front.configurations, key=lambda each: each.period_s):
        if each.kind not in plans:
            plans[each.kind] = each.plan()
    with locate_model(next(iter(plans.values()))) as path:
        for kind in KINDS:
            row = {"network": network, "gmacs": macs / 1e9, "kind": kind, "frames": count}
            if kind in plans:
                yield row | _compared(plans[kind], path, count)
            else:
                yield row | {"stages": "none", "segments": 0, "error": 0.0}


def _compared(plan: Plan, model: Path, count: int) -> dict[str, object]:
    with TemporaryDirectory() as place:
        write_session_folder(plan, model, Path(place))
        folder = on_cores_here(open_folder(Path(place)))
        frames = list(random_frames(folder, count))
        whole = session(model, len(os.sched_getaffinity(0)), "CPUExecutionProvider")
        names = [each.tensor for each in folder.outputs]
        worst, seen = 0.0, 0
        with closing(Executor(folder).run(frames)) as run:
            for number, results in enumerate(run):
                expected = dict(zip(names, whole.run(names, frames[number]), strict=True))
                worst = max(worst, error(results, expected))
                seen += 1
        if seen != count:
            raise RuntimeError(f"{seen} of {count} frames came out")
        stages = " │ ".join("+".join(p.name for p in stage.processors) for stage in plan.stages)
        return {"stages": stages, "segments": len(folder.segments), "error": worst}


def on_cores_here(folder: Folder) -> Folder:
    """Return a folder with its processors on the cores at hand, in turn."""
    lent = sorted(os.sched_getaffinity(0))
    return folder.on_cores(
        {each.name: (lent[at % len(lent)],) for at, each in enumerate(folder.processors)}
    )


def error(found: Arrays, expected: Arrays) -> float:
    """Return the largest difference over the largest number of the same output."""
    worst = 0.0
    for name, wanted in expected.items():
        scale = float(np.abs(wanted).max()) or 1.0
        off = np.abs(found[name].astype(np.float64) - wanted.astype(np.float64))
        worst = max(worst, float(off.max()) / scale)
    return worst


@click.command()
@click.option("--only", "networks", multiple=True, default=NETWORKS, help="Networks of the zoo.")
@click.option("--mapper", default="heft", show_default=True, help="Any gives plans to run.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="For the results.")
def main(*, networks: Sequence[str], mapper: str, out: Path) -> None:
    """Compare runs of plans with whole models; exit code 1 where they differ by too much."""
    about = description() | {"ONNX Runtime": version("onnxruntime")}
    rows: list[dict[str, object]] = []
    for network in networks:
        for row in checked(network, mapper):
            click.echo(f"{row['network']} {row['kind']}: {row['error']:.1e}", err=True)
            rows.append(row)
            write(rows, about, out)
    sys.exit(any(float(str(row["error"])) > TOLERANCE for row in rows))


def write(rows: Sequence[Mapping[str, object]], about: Mapping[str, str], out: Path) -> None:
    """Write the table and the page."""
    write_csv(list(rows), out / "run_equality.csv")
    cells = [
        [
            row["network"], f"{row['gmacs']:.2f}", row["kind"], row["stages"], row["segments"],
            row["frames"], f"{row['error']:.1e}" if row["segments"] else "",
        ]
        for row in rows
    ]  # fmt: skip
    text = (
        "# Plans that run give what one session gives\n\n"
        + markdown_table(["machine", ""], list(about.items()))
        + "\n\nLargest difference, as a share of the output's scale, over all frames in order:\n\n"
        + markdown_table(
            ["network", "GMACs", "kind", "stages", "segments", "frames", "difference"], cells
        )
        + "\n"
    )
    (out / "run_equality.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
