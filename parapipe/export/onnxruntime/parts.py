"""A plan's segments with their nodes, in the data types that the plan gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parapipe.export.onnxruntime.conversion import converted_parts
from parapipe.export.onnxruntime.handed import CONVERTED_TO, Handed
from parapipe.export.onnxruntime.model_file import Marked, ModelFile
from parapipe.export.onnxruntime.network import Network, load_network
from parapipe.export.onnxruntime.session_document import numbered_segments
from parapipe.export.onnxruntime.views import viewed
from parapipe.plan.in_place import InPlace
from parapipe.plan.mapped import reads
from parapipe.plan.pieces import NO_PIECES, Pieces
from parapipe.plan.schema import Plan
from parapipe.runtime.document import Segment, View


@dataclass(frozen=True, slots=True)
class Parts:
    """What the files of a plan hold.

    Parameters
    ----------
    handed
        Names and types of what goes from segment to segment.
    plan
        As it runs: without operators that sessions need not run, if that was asked for.
    segments
        In an order in which they can run. They read what others make; the files may read views of
        it.
    views
        Ranges of tensors.
    files
        What goes into each segment's file, by its id.
    whole
        What goes into the file of the whole network.
    network
        What they are made of.
    """

    plan: Plan
    handed: Handed
    segments: tuple[Segment, ...]
    views: tuple[View, ...]
    files: Mapping[str, ModelFile]
    whole: ModelFile
    network: Network


def parts_of(
    plan: Plan,
    model: Path,
    *,
    in_place: bool = False,
    single: bool = False,
    pieces: Pieces = NO_PIECES,
) -> Parts:
    """Return the segments of a plan.

    Parameters
    ----------
    in_place
        Leave out what joins and cuts tensors where they lie; see `viewed`.
    single, pieces
        As of `segments`.

    Raises
    ------
    ModelError
        If the model cannot be used.
    PlanError
        If the plan's operators are not those of the model.
    """
    network = load_network(plan, model)
    run = viewed(plan, network, single=single, pieces=pieces) if in_place else InPlace(plan, {})
    handed = Handed.of(run.plan)
    segments = tuple(handed.segments(numbered_segments(run.plan, single=single, pieces=pieces)))
    read = {each.id: _read(each, plan) if run.ranges else each.inputs for each in segments}
    files = [
        ModelFile(each.id, _marked(each, network), read[each.id], each.outputs) for each in segments
    ]
    listed = numbered_segments(plan) if run.ranges else segments
    marked = [each for segment in listed for each in _marked(segment, network)]
    whole = ModelFile("network", marked, plan.inputs, plan.outputs)
    if plan.precision == CONVERTED_TO:
        (whole, *files), network = converted_parts((whole, *files), network, plan, handed)
    views = tuple(
        View(each.tensor, each.whole, each.begin, each.end) for each in run.ranges.values()
    )
    by_name = {part.name: part for part in files}
    return Parts(run.plan, handed, segments, views, by_name, whole, network)


def _marked(segment: Segment, network: Network) -> list[Marked]:
    return [Marked(network.nodes[v], segment.processor, segment.stage) for v in segment.operators]


def _read(segment: Segment, plan: Plan) -> tuple[str, ...]:
    """Return what the operators of a segment read in the plan and do not make."""
    operators = [each for each in plan.operators if each.id in segment.operators]
    made = {name for each in operators for name in each.outputs}
    names = dict.fromkeys(name for each in operators for name in reads(each, plan))
    return tuple(name for name in names if name not in made)
