"""parapipe's six nouns as functions: what notebooks and the commands call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from parapipe.answers import pick_configuration as pick_configuration
from parapipe.arguments import check_arguments
from parapipe.estimates import compare_runs as compare_runs
from parapipe.estimates import draw_comparison as draw_comparison
from parapipe.estimates import evaluate_mapping as evaluate_mapping
from parapipe.explaining import explain_configuration as explain_configuration
from parapipe.files.locked_folders import clear_abandoned_scratch
from parapipe.loading import ZOO as ZOO
from parapipe.loading import Dims, loaded_graph
from parapipe.loading import load_model as load_model
from parapipe.loading import load_platform as load_platform

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from parapipe.formats.inspection import InspectionDocument
    from parapipe.front.pareto_front import ParetoFront
    from parapipe.graph.given_shapes import Shapes as Shapes
    from parapipe.graph.operator_graph import Granularity
    from parapipe.pipeline.solve import Progress
    from parapipe.plan.schema import Plan
    from parapipe.plan.summary import Summary
    from parapipe.platform.describe import PlatformDescription, PlatformRow


def list_platforms() -> tuple[PlatformRow, ...]:
    """Return a row for each shipped platform, sorted by name."""
    from parapipe.platform.describe import list_platforms as rows

    return rows()


def show_platform(platform: str | Path) -> dict[str, object]:
    """Return a platform in its file's own words, as plain data."""
    from parapipe.platform.describe import as_dict

    return as_dict(load_platform(platform))


def describe_platform(platform: str | Path) -> PlatformDescription:
    """Return a platform as tables of processors, links and sources."""
    from parapipe.platform.describe import describe

    return describe(load_platform(platform))


def check_platform(path: str | Path) -> None:
    """Raise a PlatformError with all its mistakes if a platform file is wrong."""
    check_arguments("check_platform", locals())
    from parapipe.platform.load import load_platform as load

    load(str(path))


def inspect_model(
    model: str | Path,
    *,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: str | Path | None = None,
    platform: str | Path | None = None,
    note: Callable[[str], None] | None = None,
) -> InspectionDocument:
    """Describe a model: operators, subgraphs, parallelism, work, memory.

    Parameters
    ----------
    platform
        As for `load_platform`: whose processors run which operators, and where times come from.
    note
        As for `load_model`.

    Raises
    ------
    ParapipeError
        With what is wrong, where, and what to do.
    """
    given = dict(locals())
    if platform is None:
        del given["platform"]
    check_arguments("inspect_model", given)
    from parapipe.formats.inspection import inspected

    target = None if platform is None else load_platform(platform)
    graph = loaded_graph(
        model, "onnx", rules=rules, dims=dims, shapes=shapes, digests=False, note=note
    )
    return inspected(graph, target)


def map_model(
    model: str | Path,
    platform: str | Path,
    *,
    mapper: str = "auto",
    granularity: Granularity = "fused",
    time_limit_s: float = 60.0,
    seed: int = 0,
    deterministic: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    cache: str | Path | bool = True,
    objectives: Literal["latency-throughput-energy", "latency-throughput"] = (
        "latency-throughput-energy"
    ),
    resolution: float = 0.01,
    energy_resolution: float = 0.05,
    dvfs: bool = False,
    dvfs_points: int = 3,
    profiles: Sequence[str | Path] = (),
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ParetoFront:
    """Find all configurations of a model on a platform that no other one beats.

    Parameters
    ----------
    model, platform
        As for `load_model` and `load_platform`.
    mapper
        Name of the mapper that places a subgraph's operators, or MODULE:FUNCTION for one of your
        own; its answers are not kept.
    time_limit_s
        For one subgraph on one set of processors; then the best schedule found counts, and its
        gap is reported.
    deterministic
        The same input, seed and time limit give the same front and plans to the byte, however busy
        the machine is and whatever was solved before: mappers stop by counted work instead of the
        clock, which takes longer. A note says so if a mapper that cannot do that ran out of time.
    jobs
        Subgraphs solved at the same time; one per core of this machine if not given.
    executor
        Solves the subgraphs in place of this process and worker processes of its own; it stays
        open.
    cache
        Folder in which solved subgraphs are kept for later runs; True for the user's cache folder
        (PARAPIPE_CACHE, or parapipe in XDG_CACHE_HOME or ~/.cache), False for none.
    objectives
        What the front trades.
    resolution
        A configuration that another one matches to within this share in every objective is left
        out, unless it has a name or is on the front of latency and throughput; 0 keeps them all.
    energy_resolution
        With energy as an objective, the mappers `auto` and `fine` also let a unit run longer where
        that takes less energy. For every configuration that any schedules make, the front holds one
        that is larger by at most this share in latency, period and energy each (`resolution` comes
        on top). 0 asks for the exact front, which can take very long.
    dvfs, dvfs_points
        Choose operating points, too, of at most so many of each processor; see docs/dvfs.md.
    profiles
        CSV files of measured times; by default those beside the platform's file, else the shipped.
    dims, shapes, rules
        As for `load_model`.
    progress
        Called after each solved subgraph, and after each place at which the search has cut.
    note
        Takes what does no harm but should be known, a sentence each; a warning if not given.

    Raises
    ------
    ParapipeError
        With what is wrong, where, and what to do.
    """
    given = dict(locals())
    check_arguments("map_model", given)
    check_mapper(mapper)
    clear_abandoned_scratch()
    from parapipe.cost.operating_points import settings
    from parapipe.cost.profile import chosen_profiles
    from parapipe.formats.front_document import (
        check_energies,
        front_document,
        networks_behind,
    )
    from parapipe.formats.map_command import inputs_of, map_command
    from parapipe.front.mapped_configuration import MappedConfiguration
    from parapipe.front.pareto_front import ParetoFront
    from parapipe.graph.partition import partition
    from parapipe.pipeline.cache import Cache
    from parapipe.pipeline.explore import explore
    from parapipe.pipeline.method import Method, stopped_by_clock

    target = load_platform(platform)
    measured = chosen_profiles(profiles, beside=platform, platform=target.profile_name)
    note = note or warnings.warn
    graph = load_model(
        model, granularity=granularity, dims=dims, shapes=shapes, rules=rules, note=note
    )
    known = settings(graph, target, most=dvfs_points if dvfs else 1, profiles=measured)
    costs, *others = (setting.costs for setting in known.combinations)
    check_energies(costs)
    parts = partition(graph)
    energy = objectives == "latency-throughput-energy"
    if target.nominal_power:
        note(f"energy of {', '.join(target.nominal_power)} rests on nominal power, not measured")
    folder = None if isinstance(cache, bool) else Path(cache)
    with nullcontext() if cache is False else Cache(folder, note) as kept:
        exploration = explore(
            graph,
            parts,
            costs,
            mapper,
            time_limit_s=time_limit_s,
            seed=seed,
            deterministic=deterministic,
            jobs=jobs or os.cpu_count() or 1,
            executor=executor,
            cache=kept,
            energy=energy,
            resolution=resolution,
            energy_resolution=energy_resolution,
            progress=progress,
            others=others,
        )
    method = Method(mapper, time_limit_s, seed, deterministic)
    late = stopped_by_clock(exploration.schedules.values(), method)
    if deterministic and late:
        note(
            f"{late} subgraphs ran out of time, and the mapper '{mapper}' stops by the clock: "
            "another run may differ; give a longer time limit or another mapper"
        )
    document = front_document(
        graph, parts, known, exploration, mapper=mapper, energy=energy, time_limit_s=time_limit_s,
        seed=seed, deterministic=deterministic, resolution=resolution,
        energy_resolution=energy_resolution,
        command=map_command(map_model, given), inputs=inputs_of(given),
        networks=networks_behind(measured, target.profile_name),
    )  # fmt: skip
    configurations = tuple(
        MappedConfiguration(row, found, graph, at.platform, at.costs)
        for row, found in zip(document.configurations, exploration.found, strict=True)
        for at in [known.combinations[found.table]]
    )
    return ParetoFront(document, configurations, exploration, parts)


def mapper_names() -> tuple[str, ...]:
    """Names of all mappers, sorted."""
    from parapipe.mapping.registry import names

    return names()


def check_mapper(name: str) -> None:
    """Raise a MappingError if there is no mapper of that name."""
    from parapipe.mapping.registry import check_name

    check_name(name)


def check_directory(directory: str | Path) -> None:
    """Raise an OutputError if a front could not be written to a folder; leave it as it was."""
    check_arguments("check_directory", locals())
    from parapipe.front.pareto_front import check_directory as check

    check(Path(directory))


def write_report(directory: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a front as one HTML file that needs no network; return its path.

    Parameters
    ----------
    directory
        Folder that a front was written to, or the front.json in it.
    out
        Where the report shall be; report.html in the folder if not given.

    Raises
    ------
    FrontError, PlanError
        What the folder holds cannot be read.
    OutputError
        The report cannot be written.
    """
    check_arguments("write_report", locals())
    from parapipe.figures.page import page
    from parapipe.files.atomic import write_atomically
    from parapipe.formats.front_folder import folder_of, load_folder

    folder = folder_of(Path(directory))
    path = folder / "report.html" if out is None else Path(out)
    write_atomically(path, page(load_folder(folder)))
    return path


def load_plan(path: str | Path) -> Plan:
    """Read a plan file; PlanError if it is not one."""
    check_arguments("load_plan", locals())
    from parapipe.plan.files import load_plan as load

    return load(Path(path))


def zoo_names() -> tuple[str, ...]:
    """Names of the models that `zoo:NAME` knows; `gpt:LAYERS` wants a number for LAYERS."""
    from parapipe.zoo.registry import names

    return names()


def zoo_examples() -> tuple[str, ...]:
    """Names of all zoo models, a number in the place of LAYERS: `gpt:12` for `gpt:LAYERS`."""
    from parapipe.zoo.registry import examples

    return examples()


def build_zoo(name: str, path: Path, *, weightless: bool = False) -> None:
    """Write a model of the zoo as an ONNX file, its seeded random weights always the same.

    Parameters
    ----------
    weightless
        Equal numbers, made by nodes of the model, stand in for the weights: a small file.
    """
    from parapipe.zoo.registry import write

    write(name, path, weightless=weightless)


def verify_plan(path: str | Path) -> Summary:
    """Check a plan file by itself and say what it promises.

    Raises
    ------
    PlanError
        It is not a plan.
    VerificationError
        It breaks rules; the error lists every breach.
    """
    from parapipe.plan.summary import summarize
    from parapipe.plan.verify import verify_plan as verify

    plan = load_plan(path)
    verify(plan)
    return summarize(plan)
