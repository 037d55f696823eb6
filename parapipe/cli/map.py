"""`parapipe map`: the Pareto front of a model on a platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.advice import advice_text, headline_rows
from parapipe.cli.front_table import (
    NARROW,
    coverage_lines,
    export_line,
    front_table,
    legend_lines,
    search_notes,
)
from parapipe.cli.options import FILE, explicit_options, json_option, quiet_option
from parapipe.cli.output import (
    Row,
    Shown,
    output_width,
    paragraph,
    print_document,
    print_note,
    print_text,
)
from parapipe.cli.pick import draws_lines, picked_table, warning
from parapipe.cli.progress import progress_shown
from parapipe.cli.several_table import several_lines, several_table, shown_rows
from parapipe.cli.shape_options import DIMS, MIX, SHAPE_SETS, split_lists
from parapipe.cli.shapes_table import shapes_lines
from parapipe.cli.signals import interruptible
from parapipe.cli.state_table import state_lines
from parapipe.cli.verb_options import SectionedCommand, SectionedOption, options
from parapipe.errors import DemandError

if TYPE_CHECKING:
    from parapipe import ParetoFront

SECTIONS = {
    "common": "Common options",
    "model": "Model",
    "search": "Search",
    "limits": "Limits",
    "choice": "Choice of one configuration, as by `parapipe pick`",
    "output": "Output",
}
"""Headings of help, in order."""
_option = partial(click.option, cls=SectionedOption)


@click.command(cls=SectionedCommand, sections=SECTIONS)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@_option("--platform", section="common", metavar="NAME|FILE", required=True,
         help="Shipped platform, or YAML file of your own.")  # fmt: skip
@_option(
    "--out",
    section="common",
    type=FILE,
    help="Folder for the results.  [default: parapipe-out/MODEL-PLATFORM; none with --json]",
)
@options("map_shapes", "shape_sets", "mix", shape_sets=SHAPE_SETS, mix=MIX)
@options(
    "MapOptions",
    dims=DIMS,
    cache={
        "help": "Folder that keeps solved subgraphs for later runs; PARAPIPE_CACHE, or parapipe in "
        "XDG_CACHE_HOME or ~/.cache, if not given.",
    },
)
@_option("--no-cache", section="search", is_flag=True,
         help="Use and keep no solved subgraphs of other runs.")  # fmt: skip
@_option("--both-states", section="search", is_flag=True,
         help="Map for the cold chip and for long runs, and say what is good in both.")  # fmt: skip
@options("Demands")
@options(
    "pick",
    "minimise",
    minimise={
        "section": "choice",
        "default": None,
        "show_default": False,
        "help": "At the end, pick the configuration with the least of this among those that meet "
        "--min-fps and the other demands.  [default: latency, if there is a demand]",
    },
)
@_option("--figure", section="common", type=FILE, help="Draw the front into this PNG, PDF or SVG.")
@click.option("--all", "show_all", is_flag=True, help="List all configurations in the table.")
@quiet_option
@json_option
def command(
    *,
    models: tuple[str, ...],
    platform: str,
    out: Path | None,
    cache: Path | None,
    no_cache: bool,
    both_states: bool,
    shape_sets: dict[str, Any],
    mix: dict[str, int] | None,
    figure: Path | None,
    show_all: bool,
    quiet: bool,
    as_json: bool,
    minimise: Any,  # noqa: ANN401 - click checks
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Find the Pareto front of MODEL on a platform, or of several that share it.

    Prints the configurations that no other one beats, and the best of each kind; writes front.json,
    front.csv, solve_log.json and a plan for each. Several models need a --rate each; NAME=MODEL
    names one.
    """
    explicit = explicit_options()
    _check_usage(explicit, given)
    import parapipe
    from parapipe.api.checked import Demands
    from parapipe.api.map import reuse_processes

    limits = {each.name for each in fields(parapipe.MapOptions)}  # of the front: memory is one
    names = [each.name for each in fields(Demands) if each.name not in limits]
    demands = {name: given.pop(name) for name in names}
    stems = [Path(each.rpartition("=")[2].removeprefix("zoo:")).stem for each in models]
    name = f"{'+'.join(stems)}-{Path(platform).stem}"
    directory = out or (None if as_json else Path("parapipe-out") / name)
    _check_outputs(directory, figure)
    cached = False if no_cache else cache or True
    given["dims"], sets = split_lists(given["dims"], shape_sets)
    if both_states or sets or mix:
        others = {"minimise", *demands, *({"thermal_state", "figure"} if both_states else ())}
        _check_alone(models, explicit & others, states=both_states, shapes=bool(sets or mix))
        several = {**given, "cache": cached}
        if not both_states:
            several |= {"shape_sets": sets, "mix": mix}
        picture = figure if sets or mix else None
        choices = {"show_all": show_all, "quiet": quiet, "as_json": as_json}
        _map_fronts(models[0], platform, directory, several, picture, **choices)
        return
    written: Sequence[Path] = ()
    with reuse_processes():
        with progress_shown(quiet=quiet) as show, interruptible() as may_end:

            def report_progress(progress: parapipe.Progress) -> None:
                if progress.best_period_s:  # there is a first front
                    may_end()
                if show:
                    show(progress)

            front = parapipe.map(
                models, platform, progress=report_progress, note=print_note, cache=cached, **given
            )
        try:
            if directory:
                with progress_shown(quiet=quiet) as progress:
                    written = front.write(directory, progress=progress, jobs=given.get("jobs"))
            if figure:
                front.write_figure(figure)
        finally:  # what was found is shown even where it cannot be written

            def shown(document: Row) -> Shown:
                return _text(document, directory, written, figure, show_all=show_all)

            print_document(front.to_json(), shown, as_json=as_json)
    if minimise or explicit.intersection(demands):
        least = minimise or "latency"
        row, sure = _pick_best(front, directory if written else None, least, demands)
        objectives = front.document.options.objectives
        _print_picked(row, sure, objectives, {**demands, "minimise": least}, as_json=as_json)


def _check_alone(
    models: Sequence[str], others: frozenset[str], *, states: bool, shapes: bool
) -> None:
    """Refuse what has no meaning where several fronts are made."""
    from parapipe.api.checked import flag

    what = "--both-states" if states else "a map of several shapes"
    if states and shapes:
        raise click.UsageError("--both-states is for one shape of a model")
    if len(models) > 1:
        raise click.UsageError(f"{what}: give one MODEL")
    if others:
        names = ", ".join(sorted(map(flag, others)))
        raise click.UsageError(f"{what} makes several fronts; leave out {names}")


def _map_fronts(
    model: str,
    platform: str,
    directory: Path | None,
    given: Row,
    figure: Path | None,
    *,
    show_all: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Map for both states or for several shapes, write all fronts, and show them together."""
    import parapipe
    from parapipe.api.shapes import ShapeFronts

    shapes = "shape_sets" in given
    map_all = parapipe.map_shapes if shapes else parapipe.map_states
    with progress_shown(quiet=quiet) as show, interruptible() as may_end:

        def report_progress(progress: parapipe.Progress) -> None:
            if shapes and progress.best_period_s:  # there is a first front
                may_end()
            if show:
                show(progress)

        fronts = map_all(model, platform, progress=report_progress, note=print_note, **given)
    with progress_shown(quiet=quiet) as progress:
        if directory:
            fronts.write(directory, progress=progress)
    if figure and isinstance(fronts, ShapeFronts):
        fronts.write_figure(figure)

    def shown(document: Row) -> Shown:
        if directory:
            file = "shapes.json" if shapes else "states.json"
            yield f"wrote {', '.join(fronts.fronts)} and {file} to {directory}"
            yield from _look_lines(directory if shapes else None, figure)
            yield ""
        if shapes:
            yield from shapes_lines(document, show_all=show_all)
        else:
            yield from state_lines(document["configurations"])

    print_document(fronts.to_json(), shown, as_json=as_json)


def _print_picked(
    row: Row, sure: Row | None, objectives: Sequence[str], demands: Row, *, as_json: bool
) -> None:
    """Print what was picked, and what draws say of it; beside JSON as notes."""
    if as_json:
        print_note(f"picked {row['id']}: {row['drawing']}")
        for line in warning(sure, demands):
            print_note(line)
        return
    print_text(f"\npicked from those that meet all demands: {row['id']}")

    def shown(row: Row) -> Shown:
        yield picked_table(row, objectives, demands)
        yield from draws_lines(row, sure, demands)

    print_document(row, shown, as_json=False)


def _pick_best(
    front: ParetoFront,
    directory: Path | None,
    minimise: Any,  # noqa: ANN401 - click checks
    demands: Row,
) -> tuple[Row, Row | None]:
    """Return the row that is picked, and how sure it is; an error says first where the front is."""
    from parapipe.api.checked import Demands
    from parapipe.api.pick import certainty_of

    try:
        best = front.best(minimise, **demands)
    except DemandError as error:
        where = f"the front is in {directory}, but " if directory else ""
        raise DemandError(f"{where}{error}") from error
    sure = certainty_of(front, best, minimise, Demands(**demands))
    return best.model_dump(), asdict(sure) if sure else None


def _check_usage(explicit: frozenset[str], given: Row) -> None:
    """Refuse options that are given beside another one with which they say nothing."""
    from parapipe.api.checked import flag, idle_options

    if {"cache", "no_cache"} <= explicit:
        raise click.UsageError("--cache and --no-cache contradict each other; give one of them")
    for name, why in idle_options(given).items():
        if name in explicit:
            raise click.UsageError(f"{flag(name)} {why}")


def _check_outputs(directory: Path | None, figure: Path | None) -> None:
    """Refuse what cannot be written before any work is done."""
    from parapipe.api.map import check_directory, check_figure

    if directory:
        check_directory(directory)
    if figure:
        check_figure(figure)


def _text(
    document: Row,
    directory: Path | None,
    written: Sequence[Path],
    figure: Path | None,
    *,
    show_all: bool,
) -> Shown:
    """Yield notes first, then what was written, and last the answer."""
    from parapipe.api.checked import medians_of

    every, several = document["configurations"], document["several"]
    objectives, shown = document["options"]["objectives"], every
    if not show_all:
        shown = shown_rows(every) if several else headline_rows(every, objectives)
    if not several:
        yield from search_notes(document)
    yield from coverage_lines(document["coverage"])
    if directory and written:
        yield from _written_lines(directory, written, figure)
    yield ""
    medians, narrow = medians_of(every), output_width() < NARROW
    yield (
        several_table(shown) if several else front_table(shown, objectives, medians, narrow=narrow)
    )
    yield ""
    if len(shown) < len(every):
        yield f"{len(shown)} of {len(every)} configurations; --all lists them all"
    if several:
        yield from (paragraph(line, indent=2) for line in several_lines(document))
        return
    yield from legend_lines(document, shown, medians, narrow=narrow)
    yield from (paragraph(line) for line in export_line(shown))
    yield paragraph(advice_text(document))


def _written_lines(directory: Path, written: Sequence[Path], figure: Path | None) -> Shown:
    """Name what was written, and what shows it."""
    files = [path.name for path in written if path.parent == directory]
    plans = len(written) - len(files)
    yield f"wrote {', '.join(files)} and {plans} plan{'s' * (plans != 1)} to {directory}"
    yield from _look_lines(directory, figure)


def _look_lines(directory: Path | None, figure: Path | None) -> Iterator[str]:
    """Name a picture, and the command that shows a front."""
    if figure:
        yield f"picture: {figure}"
    if directory:
        yield f"to view it: parapipe report {quote(str(directory))}"
