"""Several shapes of one model in one search: a placement for each, and one front of all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from parapipe.api.checked import Folder, Model, Note, PlatformFile, checked
from parapipe.api.shape_sets import (
    Mix,
    ShapeSets,
    bucket_dimension,
    buckets_and_steps,
    check_shapes,
    notes_by_shape,
    options_of_shape,
    read_shapes,
    shapes_command,
)
from parapipe.errors import MappingError, VerificationError
from parapipe.files.mistakes import listed
from parapipe.files.progress import Tell
from parapipe.processes.deadline import Deadline, search_deadline
from parapipe.search.options import MapKeywords, MapOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from parapipe.api.front import ParetoFront
    from parapipe.api.plan import Plan
    from parapipe.api.search_run import SearchResult
    from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument
    from parapipe.mappings.configuration import Configuration
    from parapipe.several_shapes.buckets import Bucket
    from parapipe.several_shapes.placed_shapes import PlacedShape, Shape


HURRIED_S = 1.0  # of the searches after an interruption


@dataclass(frozen=True, slots=True)
class ShapeFronts:
    """A front for each shape, and that of their placements together.

    Parameters
    ----------
    fronts
        By shape: what its own search lists, and every other placement that the front of all has.
    document
        What shapes.json holds.
    """

    fronts: Mapping[str, ParetoFront]
    document: ShapesDocument

    def __repr__(self) -> str:
        """Return a line: the document would be pages."""
        joint, shapes = self.document, ", ".join(self.fronts)
        count = len(joint.configurations)
        return f"<ShapeFronts of {joint.model} on {joint.platform}: {count} placements of {shapes}>"

    def to_json(self) -> dict[str, Any]:
        """Return the front of all shapes as plain data; those of each have files of their own."""
        return self.document.to_json()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the front of all shapes into `ax`, or on a figure of its own; return the axes."""
        from parapipe.figures.axes import own_axes
        from parapipe.figures.shapes_front import HEIGHT_IN, WIDTH_IN, plot_shapes

        place = own_axes(WIDTH_IN, HEIGHT_IN) if ax is None else ax
        plot_shapes(self.document, place)
        return place

    def write_figure(self, path: str | Path) -> Path:
        """Draw the front of all shapes into a PNG, PDF or SVG file; return its path.

        Raises
        ------
        OutputError
            The name ends in none of these, or the file cannot be written.
        """
        from parapipe.figures.shapes_front import write_shapes

        write_shapes(self.document, Path(path))
        return Path(path)

    def write(self, directory: str | Path, *, progress: Tell | None = None) -> tuple[Path, ...]:
        """Write each front to a folder of its shape's name, and shapes.json beside them.

        Raises
        ------
        OutputError
            The folder or a file cannot be written.
        """
        from parapipe.api.front import write_fronts
        from parapipe.documents.shapes_schema import SHAPES_FILE

        joint = SHAPES_FILE, self.document.to_bytes()
        return write_fronts(self.fronts, directory, joint, progress)


@checked
def map_shapes(
    model: Model,
    platform: PlatformFile,
    *,
    shape_sets: ShapeSets,
    mix: Mix | None = None,
    options: MapOptions | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    note: Note | None = None,
    **keywords: Unpack[MapKeywords],
) -> ShapeFronts:
    """Find placements of several shapes of a model that no others beat together.

    Weights are in a memory once if several shapes use them there. States that one shape writes and
    the next one reads move once in a request. A `budget_s` is for the search of each shape. Once a
    shape has a front, an interruption (Ctrl-C) ends its search with what was found, and gives
    those of later shapes a second.

    Parameters
    ----------
    model, platform
        As for `map`, of one model.
    shape_sets
        Shapes of the model by name, in the order in which a request has them: values of named
        dimensions and full shapes of inputs, beside `dims` and `shapes`, which hold for all. If
        they tell one dimension apart and nothing else, they are buckets: a request is served by
        the smallest one that holds it.
    mix
        How many steps of each shape a request has; 1 if not given. Of buckets, how many requests
        there are of each size, or of each bucket.
    options, executor, progress, note, keywords
        As for `map`.

    Raises
    ------
    ArgumentError
        Shapes or the mix are not what they must be, or an option is for one shape only.
    ModelError
        The model cannot be read in one of the shapes; that is found before any search.
    MappingError
        No placements of all shapes together keep the limit of memory.
    """
    from parapipe.api.search_run import SearchRequest, search_once

    options = replace(options or MapOptions(), **keywords)
    check_shapes(shape_sets, options)
    buckets, steps = buckets_and_steps(shape_sets, mix or {})
    told = note or warnings.warn
    notes = notes_by_shape(shape_sets, told)
    graphs = read_shapes(model, shape_sets, options, notes)
    results: dict[str, SearchResult] = {}
    interrupted = False
    for name, sizes in shape_sets.items():
        deadline = search_deadline(options.budget_s, options.memory_limit_bytes)
        if interrupted:
            deadline.seconds = HURRIED_S
        run = SearchRequest(
            model, platform, options_of_shape(options, sizes), executor, progress, notes[name],
            deadline, graphs[name],
        )  # fmt: skip
        try:
            results[name] = search_once(run)
        except KeyboardInterrupt:
            if not results or interrupted:
                raise
            interrupted = True
            results[name] = search_once(replace(run, deadline=Deadline(HURRIED_S)))
        interrupted |= results[name].exploration.interrupted
    if interrupted:
        told(
            "interrupted: searches ended with what they had found, and those of later shapes with "
            "what they found first"
        )
    fronts = _joined(shape_sets, results, steps, buckets, options)
    command = shapes_command(model, platform, options, shape_sets, mix or {})
    return replace(fronts, document=fronts.document.model_copy(update={"command": command}))


def shapes_folder(path: Path) -> Path | None:
    """Return the folder of several shapes, named by itself or by its shapes.json; None if none."""
    from parapipe.documents.shapes_schema import SHAPES_FILE

    folder = folder_of_shapes(path)
    return folder if (folder / SHAPES_FILE).is_file() else None


def folder_of_shapes(path: str | Path) -> Path:
    """Return the folder that is named by itself or by the shapes.json in it, there or not."""
    from parapipe.documents.shapes_schema import SHAPES_FILE

    folder = Path(path)
    return folder.parent if folder.name == SHAPES_FILE else folder


def load_placements(
    directory: str | Path, configuration: str | None
) -> tuple[ShapesDocument, CombinationRow, dict[str, Plan]]:
    """Return the front of several shapes, a row of it, the balanced one by default, and its plans.

    Raises
    ------
    FrontError, NoConfigurationError, PlanError
        There is no such front or row, or a plan of it cannot be read.
    """
    from parapipe.api.load import load_plan
    from parapipe.documents.front_folder import PLANS
    from parapipe.documents.front_schema import DEFAULT
    from parapipe.documents.shapes_schema import load_shapes

    folder = folder_of_shapes(directory)
    document = load_shapes(folder)
    row = document.configuration(configuration or DEFAULT)
    plans = {
        name: load_plan(folder / name / PLANS / f"{each.id}.json")
        for name, each in row.placements.items()
    }
    return document, row, plans


@checked
def verify_shapes(directory: Folder) -> ShapesDocument:
    """Check the front of several shapes, and the plans that it names, and return it.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.

    Raises
    ------
    FrontError
        A file cannot be read, or is of another schema.
    VerificationError
        The front or a plan breaks rules; the error lists every violation.
    """
    from parapipe.api.load import load_plan
    from parapipe.documents.front_folder import FRONT, PLANS, load_front
    from parapipe.documents.shapes_schema import SHAPES_FILE, load_shapes
    from parapipe.front.shapes_check import ShapesFolder
    from parapipe.plan.verify import verify_plan

    folder = folder_of_shapes(directory)
    document = load_shapes(folder)
    fronts = {each.name: load_front(folder / each.name / FRONT) for each in document.shapes}
    plans = {
        (name, each.id): load_plan(folder / name / PLANS / f"{each.id}.json")
        for row in document.configurations
        for name, each in row.placements.items()
    }
    for plan in plans.values():
        verify_plan(plan)
    if wrong := [*ShapesFolder(document, fronts, plans).violations()]:
        raise VerificationError(
            f"{folder / SHAPES_FILE} does not fit the plans beside it; write it again with "
            "`parapipe map`",
            wrong,
        )
    return document


def _joined(
    shape_sets: ShapeSets,
    results: Mapping[str, SearchResult],
    steps: Mapping[str, int],
    buckets: Mapping[str, Bucket],
    options: MapOptions,
) -> ShapeFronts:
    """Combine the placements of all shapes, and write them down."""
    from parapipe.documents.build_shapes import combination_rows
    from parapipe.documents.shapes_schema import SCHEMA, ShapeRow, ShapesDocument
    from parapipe.several_shapes.choice import Choice
    from parapipe.several_shapes.placed_shapes import Shape, placed_shapes_of
    from parapipe.uncertainty.causes import Draws
    from parapipe.version import __version__

    shapes = {
        name: Shape(
            name,
            each.graph,
            tuple(at.costs for at in each.priced.combinations),
            steps[name],
            follows=not buckets,
        )
        for name, each in results.items()
    }
    complete = True
    placements: list[list[PlacedShape]] = []
    every: dict[str, list[Configuration]] = {}
    for name, shape in shapes.items():
        every[name], tried = _candidates(name, shapes, results)
        complete &= tried
        placements.append([*placed_shapes_of(shape, every[name])])
    choice = Choice(options.energy, options.memory, options.max_memory_bytes, options.resolution)
    chosen = choice.front(placements)
    if not chosen:
        raise MappingError(
            f"no placements of {listed([*shapes])} together were found that fit: allow more with "
            "`max_memory_bytes`"
        )
    fronts, places = {}, {}
    for at, name in enumerate(shapes):
        used = [each.placements[at] for each in chosen]
        fronts[name], places[name] = _front_with(results[name], used, every[name])
    first = next(iter(fronts.values())).document
    system = placements[0][0].storage.system
    document = ShapesDocument(
        schema=SCHEMA,
        parapipe=__version__,
        model=first.model,
        model_sha256=first.model_sha256,
        platform=first.platform,
        command="",
        objectives=tuple(options.objectives.split("-")),
        every_placement=complete,
        bucket=bucket_dimension(shape_sets),
        weight_factors=dict(system.packing),
        shapes=tuple(
            ShapeRow(
                name=name,
                sizes=dict(sizes),
                steps=steps[name],
                from_size=buckets[name].from_size if buckets else None,
                to_size=buckets[name].to_size if buckets else None,
                padding=buckets[name].padding if buckets else None,
            )
            for name, sizes in shape_sets.items()
        ),
        configurations=tuple(
            combination_rows(
                chosen,
                lambda each: fronts[each.shape.name].document.configurations[
                    places[each.shape.name][each.number]
                ],
                Draws(options.draws, options.seed) if options.draws else None,
            )
        ),
    )
    return ShapeFronts(fronts, document)


def _candidates(
    name: str, shapes: Mapping[str, Shape], results: Mapping[str, SearchResult]
) -> tuple[list[Configuration], bool]:
    """Return what may be a placement of a shape, and whether every one in stages is among them."""
    from parapipe.mappings.restriction import Restriction
    from parapipe.mappings.segments import LimitedSegments
    from parapipe.several_shapes.candidates import as_elsewhere, every_placement

    shape, result = shapes[name], results[name]
    options = result.limited_options
    more = [
        each
        for other, one in shapes.items()
        if other != name
        for each in as_elsewhere(shape, one, results[other].exploration.found)
    ]
    every = every_placement(shape)
    allowed = Restriction(options.max_stages).allowed([*more, *(every or ())])
    segments = LimitedSegments(options.max_segments, shape.graph, shape.tables)
    return [*result.exploration.found, *filter(segments.fits, allowed)], every is not None


def _front_with(
    result: SearchResult, used: list[PlacedShape], every: list[Configuration]
) -> tuple[ParetoFront, dict[int, int]]:
    """Return the front of a shape with placements that it does not list yet, and their places."""
    from parapipe.api.search_run import front_of
    from parapipe.search.candidate_selection import mark_fronts, names_among

    options, count = result.run.options, len(result.exploration.found)
    own = {each.number: each for each in used}
    numbers = [*range(count), *sorted(n for n in own if n >= count)]
    some = [
        replace(every[n], peak=own[n].peak) if n in own and options.memory else every[n]
        for n in numbers
    ]
    figures = [each.objectives[: 2 + options.energy] for each in some]
    if options.memory:
        figures = [(*each, one.memory_bytes) for each, one in zip(figures, some, strict=True)]
    processors = result.priced.combinations[0].costs.processors
    names = names_among(some, figures, processors, memory=options.memory)
    stay = range(len(some))
    found = mark_fronts(some, figures, names, stay=stay)
    order = sorted(stay, key=lambda i: (some[i].objectives, figures[i]))
    exploration = replace(result.exploration, found=tuple(found))
    places = {numbers[i]: place for place, i in enumerate(order)}
    return front_of(replace(result, exploration=exploration)), places
