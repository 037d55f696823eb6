"""`python -m benchmarks.scaling`: processor time to the first front, by operators and processors.

Generated models (`benchmarks.generated`): chains, blocks like those of GoogLeNet, layers of a
decoder; an operator is a node, and weights are in a file beside the model. Boards of 2 to 10
processors, made of a big and a little cluster, a GPU and NPU cores; the cores are identical, or
each is a little slower than the one before. Counted are user and system time of the plain command,
all processes together, nothing kept: until there is a first front, until its least latency and its
shortest period are within 1 % of the final ones, and until all is written.

Watched because each stage of the way should take time in proportion to the operators: `ratio` is
seconds per operator to the first front over those of the smallest model in the same column, so 1 is
linear.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import le
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory

import click

from benchmarks.generated import FAMILIES, write
from benchmarks.machine import description
from benchmarks.scaling_run import OVER
from benchmarks.tables import markdown_table

OPERATORS = (100, 1_000, 10_000)
PROCESSORS = (2, 4, 6, 8, 10)
SIZE_FOR_PROCESSORS = 300  # operators while processors vary
NEAR = 1.01  # times the final figures
LIMIT_S = 24.0  # of processor time for a run, and
MORE_S = 0.004  # more for each operator
PAGE = Path(__file__).parent / "results" / "scaling.md"
WHAT = f"""Seconds of processor time of `parapipe map` without options, by the model's operators and
the board's processors, with all its processes and imports: until there is a first front, until its
least latency and its shortest period are within 1 % of the final ones, and until all is written.
`identical`: whether all NPU cores are. `more`: not before the run was ended, after {LIMIT_S:.0f} s
and {1000 * MORE_S:.0f} ms for each operator; `within 1 %` is then of the best known by that time,
which a longer run may improve. MB is the largest memory of a process, but not less than that of the
benchmark, which Linux counts, too. `ratio`: seconds per operator to the first front
over those of the first row with the same model and as many processors; over operators 1 is linear,
and start-up makes it less. How it is measured: `benchmarks/scaling.py`."""
HEAD = (
    *("model", "operators", "processors", "identical"),
    *("first front", "within 1 %", "all", "MB", "ratio"),
)

_FIXED = (
    ("big", "cpu", 60e9, 8e9, 1.0),
    ("little", "cpu", 18e9, 5e9, 0.4),
    ("gpu", "gpu", 90e9, 9e9, 1.2),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One model on one board, and what mapping it takes, in seconds of processor time.

    Parameters
    ----------
    first_s, near_s, all_s
        Until the first front, until one near the final one, until the end; None if that did not
        come in time.
    megabytes
        Largest memory of a process.
    """

    family: str
    operators: int
    processors: int
    identical: bool
    first_s: float | None
    near_s: float | None
    all_s: float | None
    megabytes: float


def board(processors: int, *, identical: bool) -> dict[str, object]:
    """Return the platform file of a made-up board: the fixed processors, then NPU cores."""
    rows = [*_FIXED[:processors]]
    for core in range(processors - len(rows)):
        share = 1.0 if identical else 1 - 0.05 * core
        rows.append((f"npu{core}", "npu", 300e9 * share, 12e9 * share, 0.8))
    names = [name for name, *_ in rows]
    source = {"source": "made-up"}
    return {
        "schema": "parapipe/platform/1",
        "name": f"made-up-{processors}{'-identical' if identical else ''}",
        "description": f"{processors} processors",
        "board": {"idle_power_w": 1.0, **source},
        "memory": {"bandwidth_bytes_per_s": 20e9, **source},
        "processors": [
            {
                "name": name,
                "kind": kind,
                "backend": "nominal",
                "data_types": ["float32", "int64"],
                "clock": {
                    "default_frequency_hz": 1e9,
                    "points": [{"frequency_hz": 1e9, "voltage_v": 1.0}],
                    **source,
                },
                "launch": {"overhead_s": 20e-6, **source},
                "peak": {"macs_per_s": {"float32": macs_per_s, "int64": macs_per_s / 8}, **source},
                "memory": {"bandwidth_bytes_per_s": bandwidth, **source},
                "power": {
                    "alpha_w_per_v2_hz": watts * 1e-9,
                    "beta_w_per_v": 0.1,
                    "utilisation": {"default": 1.0},
                    **source,
                },
                "input": {"latency_s": 0, **source},
                "output": {"latency_s": 0, **source},
                **source,
            }
            for name, kind, macs_per_s, bandwidth, watts in rows
        ],
        "links": [
            {"from": a, "to": b, "latency_s": 50e-6, "bandwidth_bytes_per_s": 4e9, **source}
            for a in names
            for b in names
            if a != b
        ],
        "sources": {"made-up": {"provenance": "nominal", "title": "Made up for this benchmark"}},
    }


def measured(family: str, operators: int, processors: int, *, identical: bool) -> Run:
    """Map one model in processes of its own and count what they take."""
    with TemporaryDirectory() as folder:
        model, platform = Path(folder) / "model.onnx", Path(folder) / "board.yaml"
        write(FAMILIES[family](operators), model)
        platform.write_text(json.dumps(board(processors, identical=identical)), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.scaling_run", str(model), str(platform)]
        command += [str(Path(folder) / "out"), str(LIMIT_S + MORE_S * operators)]
        with Popen(command, stdout=PIPE, text=True) as process:
            assert process.stdout
            told = [tuple(map(float, json.loads(line))) for line in process.stdout]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, OVER):
        raise click.ClickException(f"{' '.join(command)} failed")
    near_s = None
    if told:
        limits = [NEAR * figure for figure in told[-1][1:]]
        near_s = next(at_s for at_s, *best in told if all(map(le, best, limits)))
    return Run(
        family,
        operators,
        processors,
        identical,
        told[0][0] if told else None,
        near_s,
        None if process.returncode else usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
    )


def runs(most_operators: int, families: Sequence[str]) -> Iterator[Run]:
    """Yield every run: operators on three processors, then processors."""
    for family in families:
        for operators in OPERATORS:
            if operators <= most_operators:
                yield measured(family, operators, 3, identical=False)
    for processors in PROCESSORS:
        for family in families:
            for identical in (False, True):
                if not identical or processors > len(_FIXED) + 1:
                    yield measured(family, SIZE_FOR_PROCESSORS, processors, identical=identical)


def page(found: Sequence[Run], machine: dict[str, str]) -> str:
    """Return the page of results."""
    cells = []
    for run in found:
        first = next(
            each
            for each in found
            if each.family == run.family and each.processors == run.processors
        )
        ratio = ""
        if run.first_s and first.first_s:
            ratio = f"{run.first_s / run.operators / (first.first_s / first.operators):.2f}"
        cells.append(
            (
                run.family,
                run.operators,
                run.processors,
                "yes" if run.identical else "no",
                *map(_told, (run.first_s, run.near_s, run.all_s)),
                f"{run.megabytes:.0f}",
                ratio,
            )
        )
    parts = [
        "# Processor time to the first front",
        WHAT,
        markdown_table(HEAD, cells),
        markdown_table(("measured on", ""), list(machine.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _told(seconds: float | None) -> str:
    return "more" if seconds is None else f"{seconds:.1f}"


@click.command()
@click.argument("families", nargs=-1, type=click.Choice(list(FAMILIES)))
@click.option("--most", default=max(OPERATORS), show_default=True, help="Operators at most.")
@click.option("--out", default=PAGE, type=click.Path(path_type=Path), help="The page.")
def main(families: tuple[str, ...], most: int, out: Path) -> None:
    """Measure FAMILIES of models (all if none is named)."""
    machine = description()
    found: list[Run] = []
    for run in runs(most, families or list(FAMILIES)):
        found.append(run)
        click.echo(f"{run}")
        out.write_text(page(found, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
