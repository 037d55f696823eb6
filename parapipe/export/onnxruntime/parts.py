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
from parapipe.plan.schema import Plan
from parapipe.runtime.document import Segment


@dataclass(frozen=True, slots=True)
class Parts:
    """What the files of a plan hold.

    Parameters
    ----------
    handed
        Names and types of what goes from segment to segment.
    segments
        In an order in which they can run.
    files
        What goes into each segment's file, by its id.
    whole
        What goes into the file of the whole network.
    network
        What they are made of.
    """

    handed: Handed
    segments: tuple[Segment, ...]
    files: Mapping[str, ModelFile]
    whole: ModelFile
    network: Network


def parts_of(plan: Plan, model: Path) -> Parts:
    """Return the segments of a plan.

    Raises
    ------
    ModelError
        If the model cannot be used.
    PlanError
        If the plan's operators are not those of the model.
    """
    handed, network = Handed.of(plan), load_network(plan, model)
    segments = tuple(handed.segments(numbered_segments(plan)))
    files = [
        ModelFile(
            each.id,
            [Marked(network.nodes[v], each.processor, each.stage) for v in each.operators],
            each.inputs,
            each.outputs,
        )
        for each in segments
    ]
    marked = [each for part in files for each in part.marked]
    whole = ModelFile("network", marked, plan.inputs, plan.outputs)
    if plan.precision == CONVERTED_TO:
        (whole, *files), network = converted_parts((whole, *files), network, plan, handed)
    return Parts(handed, segments, {part.name: part for part in files}, whole, network)
