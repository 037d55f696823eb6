"""`python -m benchmarks.cpp_here`: programs of `export --to cpp`, against the native runner.

Two plans of each network: all operators on the first core, and the one of most throughput that
`map` finds for two processors of one core each, with nominal times. Each is exported for the runner
and as a program, and both are built for this machine. In each round both run the same frames in
turn; which is first changes from round to round. A run has as many frames as the runner passes in
about a second, at least 3 and at most 60.

Compared is the time from a frame's end to the next one's, the program's over the runner's; the
program's is the time of a call with twice as many frames less that of one with so many, over their
number, as a call waits for its last frame. 1.03 is allowed.
Figures are medians over rounds; those in brackets are of the least disturbed round of each.
Watched because the program has another way to give frames to the processors, and tensors at the
plan's offsets, where the runner chooses its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

import parapipe
from benchmarks.machine import description, load
from benchmarks.native_runs import LEAST_FRAMES, frames_for, one_core_plan
from benchmarks.run_cases import detected
from benchmarks.tables import markdown_table
from parapipe.api.plan import Plan
from parapipe.files.titles import model_title
from parapipe.targets.cpp.source import identifier
from parapipe.targets.native.folder import write_library_folder
from parapipe.targets.native.runner import backend_here, built_runner
from parapipe.zoo.registry import write

NETWORKS = (
    *("squeezenet", "googlenet", "mobilenet-v2", "resnet-50", "unet", "vit-b16", "bert-base"),
)
ROUNDS = 9
PAGE = Path(__file__).parent / "results" / "cpp_here.md"
HEAD = ("network", "runner, ms", "one core", "runner, ms", "two cores", "in the pool")


@dataclass
class Case:
    """A plan, exported for the runner and built as a program."""

    runner: tuple[Path, Path]
    program: Path
    folder: Path
    frames: int = 0
    runner_s: list[float] = field(default_factory=list)
    program_s: list[float] = field(default_factory=list)
    pool: str = ""

    def warm_up(self) -> None:
        """Run the runner once, and set how many frames a run has."""
        self.frames = frames_for(self._runner_period_s(LEAST_FRAMES))

    def measure(self, *, runner_first: bool) -> None:
        """Run both once."""
        ways = (self._time_runner, self._time_program)
        for way in ways if runner_first else ways[::-1]:
            way()

    def _time_runner(self) -> None:
        self.runner_s.append(self._runner_period_s(self.frames))

    def _runner_period_s(self, frames: int) -> float:
        program, folder = self.runner
        words: list[str | Path] = [program, folder, "--json", "--frames", str(frames)]
        period_s: float = json.loads(_output(words, folder))["period_s"]
        return period_s

    def _time_program(self) -> None:
        counts = (self.frames, 2 * self.frames)
        few, many = (self._figures(count)["mean_ms"] * count for count in counts)
        self.program_s.append((many - few) / self.frames / 1e3)

    def _figures(self, frames: int) -> dict[str, float]:
        words: list[str | Path] = [self.program, "--frames", str(frames)]
        lines = _output(words, self.folder).splitlines()
        figures = {name: float(value) for name, value in map(str.split, lines)}
        inside, outside = figures["inside_bytes"], figures["outside_bytes"]
        self.pool = f"{inside / max(1, inside + outside):.0%}"
        return figures

    def ratio(self) -> str:
        """Return the program's time over the runner's, of the least disturbed in brackets."""
        typical = median(self.program_s) / median(self.runner_s)
        return f"{typical:.3f} ({min(self.program_s) / min(self.runner_s):.3f})"


def _output(words: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr.strip())
    return done.stdout


def prepared(plan: Plan, file: Path, folder: Path, build: Path) -> Case:
    """Return a plan exported for the runner and as a program, built in a folder of all programs."""
    backend = backend_here(plan.processors[0])
    native, program = folder / "native", folder / "program"
    for each in (native, program):
        each.mkdir(parents=True)
    write_library_folder(plan, file, native, backend=backend)
    here = tuple(each.model_copy(update={"backend": backend}) for each in plan.processors)
    parapipe.export_plan(plan.model_copy(update={"processors": here}), "cpp", program, model=file)
    name = identifier(model_title(plan.model.name))
    build.mkdir(exist_ok=True)
    for path in program.rglob("*"):
        target = build / path.relative_to(program)
        if path.is_file() and path.name != "weights.bin":
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != path.read_bytes():
                target.write_bytes(path.read_bytes())
    prefix = f"-DCMAKE_PREFIX_PATH={sys.prefix}"
    _output(["cmake", "-S", ".", "-B", "build", prefix], build)
    _output(["cmake", "--build", "build", "--parallel", str(os.cpu_count())], build)
    built = program / name
    built.write_bytes((build / "build" / name).read_bytes())
    built.chmod(0o755)
    return Case((built_runner(backend), native), built, program)


def two_core_plan(file: Path, platform: Path) -> Plan:
    """Return the plan of most throughput that no processors take in turn."""
    front = parapipe.map(
        file, platform, profiles=[], objectives="latency-throughput", note=lambda _: None
    )
    rows = [each for each in front if each.kind != "replicated"]
    return min(rows, key=lambda each: each.sustained_period_s).plan()


def measured(network: str, platform: Path, folder: Path, rounds: int) -> tuple[Case, Case]:
    """Return the cases of one core and of two, measured in turn."""
    file = folder / f"{network}.onnx"
    write(network, file)
    plans = {"one": one_core_plan(file, platform), "two": two_core_plan(file, platform)}
    one, two = (
        prepared(plan, file, folder / network / name, folder / "build")
        for name, plan in plans.items()
    )
    for case in (one, two):
        case.warm_up()
    for turn in range(rounds):
        for case in (one, two):
            case.measure(runner_first=turn % 2 == 0)
    return one, two


def page(rows: Sequence[tuple[object, ...]], about: dict[str, str]) -> str:
    """Return the page of results."""
    return f"""# Generated programs against the native runner

Written by `python -m benchmarks.cpp_here`; `benchmarks/cpp_here.py` says how.

Time from frame to frame, the program's over the runner's, with all operators on one core, and with
the plan of most throughput that `map` finds for two. Medians of rounds, in brackets the least
disturbed round of each. *in the pool*: share of the tensors' bytes at the plan's offsets, with two
cores.

{markdown_table(HEAD, rows)}

{markdown_table(("measured on", ""), list(about.items()))}
"""


def _rows(networks: Sequence[str], folder: Path, rounds: int) -> Iterator[tuple[object, ...]]:
    platform = detected(folder)
    for network in networks:
        one, two = measured(network, platform, folder, rounds)
        times = [f"{median(case.runner_s) * 1e3:.2f}" for case in (one, two)]
        row = (network, times[0], one.ratio(), times[1], two.ratio(), two.pool)
        click.echo("  ".join(row))
        yield row


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(*, networks: Sequence[str], rounds: int, out: Path) -> None:
    """Measure and write the page."""
    about = description()
    with TemporaryDirectory() as scratch:
        rows = list(_rows(networks, Path(scratch), rounds))
    about["load when ended"] = load()
    out.write_text(page(rows, about), encoding="utf-8")


if __name__ == "__main__":
    main()
