"""`parapipe map`: the Pareto front of a model on a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from parapipe.cli.demands import MINIMISE, demand_options, demands_given
from parapipe.cli.front_table import NARROW, coverage_lines, front_table, legend, spread
from parapipe.cli.options import MapperName, json_option, model_options, seconds_given, share_given
from parapipe.cli.output import print_json, print_note, print_table, print_text, table_width
from parapipe.cli.progress import progress_shown
from parapipe.errors import OutputError

if TYPE_CHECKING:
    from parapipe.api import Shapes


@click.command()
@click.argument("model")
@click.option("--platform", required=True, help="Name of a shipped platform, or path of a YAML.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results.  [default: parapipe-out/MODEL-PLATFORM; none with --json]",
)
@click.option(
    "--mapper",
    type=MapperName(),
    default="auto",
    show_default=True,
    help="How subgraphs are mapped; MODULE:FUNCTION is a mapper of your own.",
)
@click.option(
    "--granularity",
    type=click.Choice(["fused", "onnx"]),
    default="fused",
    show_default=True,
    help="Map activations with their convolution, or every operator by itself.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=float,
    metavar="SECONDS",
    callback=seconds_given,
    default=60.0,
    show_default=True,
    help="Time for one subgraph on one set of processors; then the best found counts.",
)
@click.option(
    "--objectives",
    type=click.Choice(["latency-throughput-energy", "latency-throughput"]),
    default="latency-throughput-energy",
    show_default=True,
    help="What the front trades.",
)
@click.option(
    "--resolution",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.01,
    show_default=True,
    help="Leave out what another one matches to within this share in everything; 0 keeps all.",
)
@click.option(
    "--energy-resolution",
    type=float,
    metavar="SHARE",
    callback=share_given,
    default=0.05,
    show_default=True,
    help="How near the front comes to that of all schedules, slower and cheaper ones included "
    "(mappers auto and fine); 0 is exact but for rounding to whole microseconds, and slow.",
)
@click.option(
    "--dvfs",
    is_flag=True,
    help="Choose operating points, too: the front trades the processors' frequencies.",
)
@click.option(
    "--dvfs-points",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="With --dvfs, how many of each processor are considered at most.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Subgraphs solved at the same time.  [default: one per core of this machine]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the solvers."
)
@click.option(
    "--deterministic",
    is_flag=True,
    help="The same command gives the same bytes, however busy the machine: takes longer.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder that keeps solved subgraphs for later runs.  [default: PARAPIPE_CACHE, or "
    "parapipe in XDG_CACHE_HOME or ~/.cache]",
)
@click.option("--no-cache", is_flag=True, help="Solve all anew, and keep nothing for later runs.")
@click.option(
    "--profile",
    "profiles",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Measured times to use.  [default: those in profiles/PLATFORM beside the platform's "
    "file, else the shipped ones]",
)
@model_options
@demand_options
@click.option(
    "--minimise",
    type=click.Choice(MINIMISE),
    help="Pick a configuration in the end, as `parapipe pick` does: the one least in this among "
    "those that keep what --min-fps and the like demand.  [default: latency, with a demand]",
)
@click.option("--all", "show_all", is_flag=True, help="List all configurations in the table.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
def command(
    *,
    model: str,
    platform: str,
    out: Path | None,
    mapper: str,
    granularity: Literal["fused", "onnx"],
    time_limit_s: float,
    objectives: Literal["latency-throughput-energy", "latency-throughput"],
    resolution: float,
    energy_resolution: float,
    dvfs: bool,
    dvfs_points: int,
    jobs: int | None,
    seed: int,
    deterministic: bool,
    cache: Path | None,
    no_cache: bool,
    profiles: Sequence[Path],
    dims: Mapping[str, int],
    shapes: Shapes,
    rules: Path | None,
    show_all: bool,
    quiet: bool,
    as_json: bool,
    minimise: Literal["latency", "period", "energy", "power"] | None,
    **demands: Any,  # noqa: ANN401 - click checks
) -> None:
    """Find the Pareto front of MODEL on a platform.

    Prints the configurations that no other one beats in latency, throughput and energy per frame,
    and those with a name of their own (the best of each kind, processors alone), beaten or not;
    writes front.json, front.csv, front.png, solve_log.json and a plan for each of them.
    """
    _check_usage()
    from parapipe import api

    directory = out or (None if as_json else _default_directory(model, platform))
    if directory:
        api.check_directory(directory)
    with progress_shown(quiet=quiet) as progress:
        front = api.map_model(
            model,
            platform,
            mapper=mapper,
            granularity=granularity,
            time_limit_s=time_limit_s,
            objectives=objectives,
            resolution=resolution,
            energy_resolution=energy_resolution,
            dvfs=dvfs,
            dvfs_points=dvfs_points,
            jobs=jobs,
            seed=seed,
            deterministic=deterministic,
            cache=False if no_cache else cache or True,
            profiles=profiles,
            dims=dims,
            shapes=shapes,
            rules=rules,
            progress=progress,
            note=print_note,
        )
    unread: Exception | None = None
    try:
        _print_front(front.to_json(), as_json=as_json, show_all=show_all)
    except (BrokenPipeError, OutputError) as error:
        unread = error  # who doesn't read on wants the files all the same
    if directory:
        with progress_shown(quiet=quiet) as progress:
            written = front.write(directory, progress=progress)
        if not (as_json or unread):
            _print_written(directory, written)
    if unread:
        raise unread
    wanted = demands_given(demands)
    if minimise or wanted:
        _print_picked(front.best(minimise or "latency", **wanted).model_dump(), as_json=as_json)


def _print_picked(row: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_note(f"picked {row['id']}: {row['drawing']}")
        return
    print_text(f"\npicked, of all that keep the demands: {row['id']}")
    print_table(front_table([row]))


def _check_usage() -> None:
    """Refuse options that are given beside another one with which they say nothing."""
    ctx = click.get_current_context()
    given = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if {"cache", "no_cache"} <= given:
        raise click.UsageError("--cache and --no-cache contradict each other; give one of them")
    if "dvfs_points" in given and not ctx.params["dvfs"]:
        raise click.UsageError("--dvfs-points says nothing without --dvfs; give both or neither")
    if "energy_resolution" in given and "energy" not in ctx.params["objectives"]:
        raise click.UsageError(
            f"--energy-resolution says nothing with --objectives {ctx.params['objectives']}; "
            "give one of them"
        )


def _default_directory(model: str, platform: str) -> Path:
    name = model.removeprefix("zoo:")
    return Path("parapipe-out") / f"{Path(name).stem}-{Path(platform).stem}"


def _print_front(document: Mapping[str, Any], *, as_json: bool, show_all: bool) -> None:
    if as_json:
        print_json(document)
        return
    every = document["configurations"]
    shown = every if show_all else spread(every)
    print_table(front_table(shown, narrow=table_width() < NARROW))
    print_text("")
    if len(shown) < len(every):
        print_text(f"{len(shown)} of {len(every)} configurations; --all lists them all")
    for line in (*legend(document, shown), *coverage_lines(document["coverage"])):
        print_text(line)


def _print_written(directory: Path, written: Sequence[Path]) -> None:
    """Name what was written; the picture last, where it is found at a glance."""
    files = [path.name for path in written if path.parent == directory]
    plans = len(written) - len(files)
    tables = [name for name in files if not name.endswith(".png")]
    plural = "" if plans == 1 else "s"
    print_text(f"wrote {', '.join(tables)} and {plans} plan{plural} to {directory}")
    for name in files:
        if name not in tables:
            print_text(f"picture: {directory / name}")
    print_text(f"to look at it: parapipe report {quote(str(directory))}")
