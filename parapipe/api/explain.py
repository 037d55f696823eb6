"""Why a configuration is what it is, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, checked
from parapipe.api.load import ZOO, load_model
from parapipe.errors import FrontError
from parapipe.files.checked_arguments import Must
from parapipe.files.mistakes import listed
from parapipe.files.progress import Tell
from parapipe.files.shipped import path_exists

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.profile import Profile
    from parapipe.documents.explanation_schema import EffectRow, ExplanationDocument
    from parapipe.documents.front_schema import FrontDocument
    from parapipe.front.what_if import Chip
    from parapipe.platform.platform import Platform

Name = Annotated[str, Must("the id or a name of a configuration")]


@checked
def explain(
    directory: Folder,
    configuration: Name | None = None,
    *,
    operators: Annotated[Sequence[str], Must("a list of names")] = (),
    what_if: bool = False,
    progress: Tell | None = None,
) -> ExplanationDocument:
    """Explain a configuration: what limits it, and from which lines its numbers come.

    Model, platform and profiles are read again, where the front says they were.

    Parameters
    ----------
    directory
        Folder that `parapipe map` wrote, the front.json in it, or the file of a plan in it.
    configuration
        Its id ("c07") or name ("hybrid-T"). Default: the balanced one.
    operators
        Ids or names of the operators to list; all if none is given.
    what_if
        Search again with some changes of the chip: processors and links a tenth faster, more memory
        bandwidth, more types of operators on a processor. Each change takes as long as `map`
        without energy; only what it affects is solved again.
    progress
        Called after each subgraph that is solved for it.

    Raises
    ------
    VerificationError
        The plan breaks rules.
    FrontError
        There is no such front or configuration, or what it was made of has changed since.
    ParapipeError
        What it was made of cannot be read.
    """
    from dataclasses import replace

    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.pins import pinned_operators, with_pins
    from parapipe.cost.profile import chosen_profiles
    from parapipe.documents.explanation_schema import ReasonRow, with_operators
    from parapipe.documents.front_folder import configuration_at, load_configuration
    from parapipe.front.derivations import explain_configuration
    from parapipe.front.limits import heat_texts
    from parapipe.front.memory_and_doubt import with_doubt
    from parapipe.front.reasons import Reasons
    from parapipe.front.what_if import Chip
    from parapipe.graph.joined import join_as
    from parapipe.parts.recompute import read_recompute_rule
    from parapipe.plan.verify import verify_plan
    from parapipe.platform.divided import variant_with
    from parapipe.platform.load import load_placed
    from parapipe.platform.states import in_state

    front, row, plan = load_configuration(*configuration_at(Path(directory), configuration))
    verify_plan(plan)
    if row.split:
        recomputes = any(map(read_recompute_rule, row.split))
        what = "makes tensors again" if recomputes else "splits operators into parts"
        raise FrontError(
            f"{row.id} {what}, which cannot be explained yet: look at it in the report, or explain "
            "a configuration that does not"
        )
    if front.several:
        raise FrontError(
            "a front of several models cannot be explained yet: look at it in the report, or "
            "simulate its plans"
        )
    inputs = front.inputs
    _check_files(front)
    graph = load_model(
        front.model,
        granularity=front.options.granularity,
        dims=inputs.dims,
        shapes=inputs.shapes,
        rules=inputs.rules,
        at_most=inputs.at_most,
        states=inputs.states,
        sequences=inputs.sequences or 1,
    )
    if graph.source.sha256 != front.model_sha256:
        raise FrontError(f"model '{front.model}' has changed since it was mapped; map again")
    placed = load_placed(inputs.platform).without(front.options.exclude or ())
    placed = replace(placed, platform=in_state(placed.platform, front.options.thermal_state))
    points = {p.name: p.operating_point.frequency_hz for p in plan.processors}
    variant = variant_with(placed.platform, points)
    _check_points(front, variant, points)
    at = variant.at([points.get(p.name, p.point.frequency_hz) for p in variant.processors])
    profiles = chosen_profiles(inputs.profiles, beside=inputs.platform, platform=at.profile_name)
    _check_profiles(front, profiles, at.profile_name)
    graph = join_as(graph, [each.members for each in plan.operators])
    pinned = pinned_operators(graph, at, front.options.pins or {})
    priced = build_cost_table(graph, at, profiles=profiles, precision=front.options.precision)
    costs = with_pins(replace(priced, arrival_s=row.arrival_s or 0.0), graph, at, pinned)
    document = explain_configuration(
        row,
        plan,
        graph=graph,
        placed=replace(placed, platform=at),
        costs=costs,
        reasons=(
            *Reasons(front, row, plan, graph, costs).rows(),
            *(ReasonRow(about="power", text=text) for text in heat_texts(plan, at)),
        ),
    )
    document = with_doubt(document, row, plan, graph=graph, costs=costs, options=front.options)
    if what_if:
        effects = _what_if_rows(Chip(graph, at, costs, profiles, pinned), front, progress)
        document = document.model_copy(update={"what_if": effects})
    return with_operators(document, operators) if operators else document


def _check_files(front: FrontDocument) -> None:
    """Raise a FrontError that names what the front was made of and is not there, if any."""
    inputs = front.inputs
    named = [
        *(("model", name) for name in [front.model] if not name.startswith(ZOO)),
        *(("platform", name) for name in [inputs.platform] if len(Path(name).parts) > 1),
        *(("profile", name) for name in inputs.profiles),
        *(("rules file", name) for name in [inputs.rules] if name is not None),
    ]
    gone = [f"the {what} '{name}'" for what, name in named if not path_exists(Path(name))]
    if gone:
        raise FrontError(
            f"there is no file for {listed(gone)}: gone, or this is not the folder where it was "
            "mapped; run it there, or map again"
        )


def _check_points(front: FrontDocument, platform: Platform, points: Mapping[str, float]) -> None:
    """Raise a FrontError if a plan runs at operating points that the platform has not."""
    has = {p.name: {each.frequency_hz for each in p.clock.points} for p in platform.processors}
    odd = [
        f"'{name}' at {at_hz / 1e6:g} MHz"
        for name, at_hz in points.items()
        if at_hz not in has.get(name, ())
    ]
    if odd:
        raise FrontError(
            f"platform '{front.inputs.platform}' has no {listed(odd)}, which the plan runs: it has "
            "changed since the model was mapped; map again"
        )


def _check_profiles(front: FrontDocument, profiles: Sequence[Profile] | None, name: str) -> None:
    """Raise a FrontError if times came from profiles, and none is there any more."""
    from parapipe.cost.profile import shipped_profiles

    coverage = front.coverage
    shares = coverage.measured, coverage.stated, coverage.compiled, coverage.fitted
    if any(share and share.operators for share in shares) and not (
        profiles or shipped_profiles(name)
    ):
        folder = Path(front.inputs.platform).parent / "profiles" / name
        raise FrontError(
            f"the profiles that the front was made with are gone: there is none in '{folder}'; "
            "put them back, or map again"
        )


def _what_if_rows(chip: Chip, front: FrontDocument, progress: Tell | None) -> tuple[EffectRow, ...]:
    from parapipe.front.reasons import effect_rows
    from parapipe.problems.cache import Cache
    from parapipe.search.configurations_from_costs import explore
    from parapipe.search.options import MapOptions, option_names
    from parapipe.search.stages.finest_cuts import finest_partition

    parts, used = finest_partition(chip.graph, [chip.costs]), front.options
    same = {name: getattr(used, name) for name in option_names(lambda option: option.solves)}
    options = MapOptions(objectives="latency-throughput", resolution=0.0, **same)
    with Cache(None, lambda _note: None) as cache:

        def best(table: CostTable) -> tuple[float, float]:
            result = explore(chip.graph, parts, table, options, cache=cache, progress=progress)
            rows = [each.evaluated for each in result.found]
            return min(each.latency_s for each in rows), min(each.period_s for each in rows)

        return effect_rows(tuple(chip.changes()), best, chip.costs)
