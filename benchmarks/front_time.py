"""Processor time of the usual command, side by side with an older version of parapipe.

Both map the same models on the same platform, one job, nothing kept, in turn on one machine, so
that what else it does slows both. Times are those of the process and all that it starts; what
counts is the ratio.

    python -m benchmarks.front_time /path/to/older/checkout [MODEL ...] [--rounds 3]

It writes `benchmarks/results/front_time.md`, or another page (`--page`). Where the older version
has not got the platform, another name of the same times is given (`--older-platform`), and
`--option` adds options to both commands.
"""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from compileall import compile_dir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.machine import description

PLATFORM = "amlogic-a311d-2024"
MOST_S = {
    "googlenet": 5.0, "inception-v3": 20.0, "unet": 30.0, "mobilenet-v2": 3.0, "densenet-121": 12.0,
}  # fmt: skip
"""Seconds that are to be met."""
HERE = Path(__file__).parents[1]
PAGE = HERE / "benchmarks" / "results" / "front_time.md"


@dataclass(frozen=True, slots=True)
class Version:
    """A checkout, and what its command is given."""

    checkout: Path
    platform: str
    options: tuple[str, ...]


def processor_time_s(version: Version, model: str) -> float:
    """Map a model with a checkout's code; return user and system seconds of all its processes."""
    checkout = version.checkout
    compile_dir(checkout / "parapipe", quiet=1)  # as an installed package is
    with TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "parapipe.cli.main", "map", f"zoo:{model}",
             "--platform", version.platform, "--no-cache", "--quiet", "--jobs", "1", "--out", out,
             *version.options],
            check=True, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least_s(versions: Sequence[Version], model: str, rounds: int) -> list[float]:
    """Return the least time of each version, taken in turn."""
    times_s = [[processor_time_s(each, model) for each in versions] for _ in range(rounds)]
    return [min(own) for own in zip(*times_s, strict=True)]


def page(
    times_s: Sequence[tuple[str, float, float]], now: Version, machine: dict[str, str]
) -> Iterator[str]:
    """Yield the lines of the page; `times_s` holds model, seconds before and seconds now."""
    command = " ".join(("--platform", now.platform, "--no-cache", "--jobs 1", *now.options))
    yield "# Processor time of a front"
    yield ""
    yield (
        f"`parapipe map zoo:MODEL {command}`, the version before "
        "and this one in turn: seconds of processor time, all processes together. What else the "
        "machine does makes both slower; the ratio is what counts."
    )
    yield ""
    yield "| model | before, s | now, s | to be met, s | ratio |"
    yield "|---|---:|---:|---:|---:|"
    for model, before_s, now_s in times_s:
        most = f"{MOST_S[model]:.0f}" if model in MOST_S else ""
        yield f"| {model} | {before_s:.1f} | {now_s:.1f} | {most} | {before_s / now_s:.1f} |"
    yield ""
    yield "| measured on | |"
    yield "|---|---|"
    for name, value in machine.items():
        yield f"| {name} | {value} |"


@click.command()
@click.argument("older", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("models", nargs=-1)
@click.option("--rounds", type=click.IntRange(1), default=1, help="The least time counts.")
@click.option("--platform", default=PLATFORM, show_default=True)
@click.option("--older-platform", help="The same times under the older version's name.")
@click.option("--option", "options", multiple=True, help="Of both commands, such as --seed=1.")
@click.option("--page", "path", type=click.Path(path_type=Path), default=PAGE)
def main(
    *,
    older: Path,
    models: tuple[str, ...],
    rounds: int,
    platform: str,
    older_platform: str | None,
    options: tuple[str, ...],
    path: Path,
) -> None:
    """Measure MODELS (all if none is named) with an OLDER checkout and with this one."""
    shown = shlex.join(["OLDER", *sys.argv[2:]])
    machine = description() | {"command": f"python -m benchmarks.front_time {shown}"}
    now = Version(HERE, platform, options)
    versions = (Version(older.resolve(), older_platform or platform, options), now)
    times_s = []
    for model in models or MOST_S:
        before_s, now_s = least_s(versions, model, rounds)
        click.echo(f"{model}: {before_s:.1f} s before, {now_s:.1f} s now")
        times_s.append((model, before_s, now_s))
        path.write_text("\n".join(page(times_s, now, machine)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
