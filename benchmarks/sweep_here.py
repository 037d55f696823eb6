"""`python -m benchmarks.sweep_here FOLDER`: a sweep with and without Dask, and with more workers.

The zoo's models on three shipped platforms, nothing kept in a cache: by two processes of this
machine, and by a Dask cluster of two worker processes, whose tables must be the same, byte for
byte. And a part of the models by one and by two Dask workers, for the ratio of their wall times.
Solvers count their work (`deterministic`), so that no result depends on the load of the machine.

Watched because a team runs sweeps at night: what it costs for each model and board, what its files
need, and whether more workers help. From these figures the page says what a sweep of 1,000 models
on 50 boards would cost.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import click

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table
from parapipe.zoo.registry import examples

PAGE = Path(__file__).parent / "results" / "sweep_here.md"
PLATFORMS = ("amlogic-a311d", "rockchip-rk3399pro", "bst-a1000")
TABLES = ("sweep.json", "sweep.csv", "sweep.parquet", "index.html")
OPTIONS: dict[str, Any] = {
    "objectives": "latency-throughput", "interleave": "none", "draws": 0, "deterministic": True,
    "time_limit_s": 5.0, "cache": False,
}  # fmt: skip
SMALL = ("alexnet", "squeezenet", "mobilenet-v1", "mobilenet-v2", "googlenet", "resnet-50")
PLANNED = (1000, 50)


def swept(models: Sequence[str], out: Path, **given: Any) -> float:  # noqa: ANN401 - of `sweep`
    """Sweep into a new folder; return wall seconds."""
    begin_s = perf_counter()
    parapipe.sweep(
        models=[f"zoo:{each}" for each in models], platforms=PLATFORMS, out=out, note=_ignore,
        progress=lambda told: print(f"{out.name}: {told.done} of {told.total}", file=sys.stderr),
        **given, **OPTIONS,
    )  # fmt: skip
    return perf_counter() - begin_s


def _ignore(_note: str) -> None:
    pass


def by_dask(models: Sequence[str], out: Path, workers: int) -> float:
    """Sweep by a Dask cluster of so many worker processes, which is up before the clock starts."""
    with import_module("distributed").LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as cluster:  # fmt: skip
        return swept(models, out, scheduler=cluster.scheduler_address)


def same(one: Path, other: Path) -> bool:
    """Tell whether the tables of two sweeps are equal, byte for byte."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in TABLES)


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def page(folder: Path) -> Iterator[str]:
    """Measure, and yield the lines of the page."""
    models = list(examples())
    local_s = swept(models, folder / "processes", jobs=2)
    dask_s = by_dask(models, folder / "dask", 2)
    equal = same(folder / "processes", folder / "dask")
    one_s = by_dask(SMALL, folder / "one", 1)
    two_s = by_dask(SMALL, folder / "two", 2)
    document = parapipe.load_sweep(folder / "dask").document
    tasks = len(document.results)
    rows = sum(row.configurations for row in document.results)
    yield "# Sweeps on this machine"
    yield ""
    yield f"Written by `{description()['command']}`; `benchmarks/sweep_here.py` says how."
    yield ""
    yield (
        f"{len(models)} models on {len(PLATFORMS)} platforms, {tasks} results, "
        f"{sum(row.error is not None for row in document.results)} of them without a front. The "
        f"tables of Dask and of local processes are {'equal' if equal else 'NOT EQUAL'}, byte for "
        "byte."
    )
    yield ""
    yield markdown_table(
        ("sweep", "workers", "results", "wall, s", "over one worker"),
        [
            ("processes", 2, tasks, f"{local_s:.1f}", ""),
            ("Dask", 2, tasks, f"{dask_s:.1f}", ""),
            ("Dask, small models", 1, len(SMALL) * 3, f"{one_s:.1f}", "1"),
            ("Dask, small models", 2, len(SMALL) * 3, f"{two_s:.1f}", f"{one_s / two_s:.2f}"),
        ],
    )
    yield ""
    yield from _on_paper(folder / "dask", tasks, rows, 2 * dask_s / tasks)
    yield ""
    yield markdown_table(("measured on", ""), list(description().items()))


def _on_paper(folder: Path, tasks: int, rows: int, each_s: float) -> Iterator[str]:
    """Say what a sweep of many models on many boards would cost at these figures."""
    many, cores = PLANNED[0] * PLANNED[1], 64
    hours = many * each_s / 3600
    results = bytes_in(folder / "results") / tasks
    sizes = {name: (folder / name).stat().st_size * many / tasks for name in TABLES}
    yield f"## {PLANNED[0]:,} models on {PLANNED[1]} boards, on paper"
    yield ""
    yield (
        f"{many:,} results at {each_s:.1f} s of one core, {results / 1e6:.2f} MB of files and "
        f"{rows / tasks:.0f} configurations each, as measured above:"
    )
    yield ""
    yield f"- *Work*: {hours:,.0f} core hours; {hours / cores:.1f} h on {cores} cores."
    yield (
        f"- *Files*: {many * results / 1e9:.0f} GB in {many:,} folders; "
        + ", ".join(f"`{name}` {size / 1e9:.2f} GB" for name, size in sizes.items())
        + ". The tables are made in memory, and no browser bears such a page: sweep in parts of "
        "some thousand results, one folder for each."
    )
    yield (
        f"- *Scheduler*: a task every {each_s / cores * 1e3:.0f} ms on {cores} cores, where Dask's "
        "documents state up to about 1 ms of the scheduler for one. Results pass through the "
        f"machine that asked, {results * cores / each_s / 1e6:.1f} MB/s before compression."
    )
    yield (
        "- *Cache*: one SQLite file on each machine, which its processes share. Different models "
        "share few subgraphs, and one model on different boards none: times are part of a problem."
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Measure into FOLDER, which must be empty or missing, and write the page."""
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} holds something; name another folder")
    text = "\n".join(page(folder)) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
