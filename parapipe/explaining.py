"""Where the numbers of a configuration come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.arguments import check_arguments
from parapipe.loading import load_model

if TYPE_CHECKING:
    from parapipe.report.explanation_schema import ExplanationDocument


def explain_configuration(
    directory: str | Path, configuration: str | None = None, *, operators: Sequence[str] = ()
) -> ExplanationDocument:
    """Trace every number of a configuration to the file and line that it comes from.

    Model, platform and profiles are read again, where the front says they were.

    Parameters
    ----------
    directory
        Folder that `parapipe map` wrote.
    configuration
        Its id ("c07") or name ("hybrid-T"); the balanced one if not given.
    operators
        Ids or names of the operators to list; all if none is given.

    Raises
    ------
    FrontError
        There is no such front or configuration, or what it was made of has changed since.
    ParapipeError
        What it was made of cannot be read.
    """
    check_arguments("explain_configuration", locals())
    from dataclasses import replace

    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.profile import chosen_profiles
    from parapipe.errors import FrontError
    from parapipe.platform.places import load_placed
    from parapipe.report.explanation import explanation, only
    from parapipe.report.front_folder import load_configuration

    front, row, plan = load_configuration(Path(directory), configuration)
    given = front.inputs
    graph = load_model(
        front.model,
        granularity=front.options.granularity,
        dims=given.dims,
        shapes=given.shapes,
        rules=given.rules,
    )
    if graph.source.sha256 != front.model_sha256:
        raise FrontError(f"model '{front.model}' has changed since it was mapped; map again")
    placed = load_placed(given.platform)
    points = {p.name: p.operating_point.frequency_hz for p in plan.processors}
    at = placed.platform.at(
        [points.get(p.name, p.point.frequency_hz) for p in placed.platform.processors]
    )
    profiles = chosen_profiles(given.profiles, beside=given.platform, platform=at.profile_name)
    document = explanation(
        row,
        plan,
        graph=graph,
        placed=replace(placed, platform=at),
        costs=build_cost_table(graph, at, profiles=profiles),
    )
    return document if not operators else only(document, operators)
