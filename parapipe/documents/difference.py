"""What changed from one front to another: what `parapipe diff --json` prints.

Published as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isclose
from typing import Any, Literal

from pydantic import Field

from parapipe.digits import plain
from parapipe.documents.compared_figures import (
    ComparedFigure,
    compared_figures,
    energy_of_a_frame_j,
    frames_per_second,
    latencies_s,
)
from parapipe.documents.figure_table import COMPARED, Compared
from parapipe.documents.front_folder import FrontFolder
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.documents.shown import shown_figure
from parapipe.errors import WorseError
from parapipe.files.record import Row
from parapipe.plan.schema import Plan

SCHEMA: Literal["parapipe/diff/1"] = "parapipe/diff/1"
SAME = 1e-9
"""Share by which figures differ that are the same: they were added up in another order."""
SAME_TIME = 1e-6
"""The same of an operator's time, which is the difference of its end and its start."""
_INPUT_FIELDS = ("parapipe", "model", "model_sha256", "platform", "conversion")


class InputChange(Row):
    """Something that a front was made of, or made with."""

    what: str
    """As front.json names it: `model_sha256`, `options.seed`."""
    old: str | None
    """What it was; null if there was no such thing."""
    new: str | None
    """What it is."""


class CostChange(Row):
    """An operator, or a transfer of its result, that takes another time, as plans of both say."""

    operator: str
    """Its id; of a transfer, the name of the tensor."""
    processor: str
    """Where it runs, as `big`; of a transfer, `big to gpu`. The clock is the same in both plans."""
    old_s: float
    """Seconds."""
    new_s: float
    """Seconds."""


class BestChange(Row):
    """The best configurations in one figure."""

    figure: Compared
    """Which one."""
    model: str | None
    """Of which of several models; null if it is of all. Its throughput is what it has as fast as
    the rates of all can grow together; energy is the mean of all frames of a pattern."""
    old: float
    """Seconds, frames per second, joules per frame or bytes."""
    new: float
    """The same."""
    loss: float
    """Share by which the new one is worse: of more time, energy and memory, or of fewer frames per
    second; below 0 if it is better."""
    old_median: float | None = None
    """Median of the draws of the costs in the old front, where `old`, which is by the stated costs,
    lies outside of its interval; else null, as of several models."""
    new_median: float | None = None
    """The same of `new`."""
    old_id: str
    """The configuration."""
    new_id: str
    """The configuration."""


class UncomparedRow(Row):
    """An objective of both fronts that has no unit which is the same for both."""

    figure: Compared
    """Which one."""
    reason: str
    """Why, in words."""


class Point(Row):
    """A configuration that only one of the fronts has."""

    id: str
    """Its number there."""
    drawing: str
    """Its stages."""
    names: tuple[str, ...]
    """Its names."""
    latency_s: float
    """Seconds of a frame; of several models, of the one that takes longest."""
    models: dict[str, float]
    """Seconds of a frame of each of several models, by their names; empty if there is one."""
    throughput_fps: float
    """Frames per second; of several models, of all, as far as their rates can grow together."""
    energy_j: float
    """Joules per frame; of several models, the mean of all frames of a pattern."""


class DifferenceDocument(Row):
    """The whole difference; `same` if there is none."""

    schema_version: Literal["parapipe/diff/1"] = Field(alias="schema")
    """Version of this format."""
    same: bool
    """Whether nothing below is different."""
    inputs: tuple[InputChange, ...]
    """What the fronts were made of and with."""
    operators_added: tuple[str, ...]
    """Ids of those that the old front has not."""
    operators_removed: tuple[str, ...]
    """Ids of those that the new front has not."""
    costs: tuple[CostChange, ...]
    """Those that differ most, in seconds, first; of what plans of both fronts place on the same
    processors."""
    best: tuple[BestChange, ...]
    """In each objective of both fronts that can be compared."""
    uncompared: tuple[UncomparedRow, ...]
    """Objectives of both that cannot."""
    lost: tuple[Point, ...]
    """Configurations of the old Pareto front that no new one matches in all its objectives."""
    gained: tuple[Point, ...]
    """The same of the new one."""

    def __repr__(self) -> str:
        """Return a line."""
        return f"<difference: {'none' if self.same else ', '.join(map(_change_text, self.best))}>"

    def check(self, max_loss: float | Mapping[str, float]) -> None:
        """Check that the best configurations are not worse by more than a share.

        Parameters
        ----------
        max_loss
            Of all figures, or by their names: latency, throughput, energy, memory. Of a figure that
            is not named, any loss is allowed.

        Raises
        ------
        WorseError
            One is, or cannot be compared; all are named.
        """
        allowed = max_loss if isinstance(max_loss, Mapping) else dict.fromkeys(COMPARED, max_loss)
        objectives = dict.fromkeys(
            [*(each.figure for each in self.best), *(each.figure for each in self.uncompared)]
        )
        unknown = set(allowed).difference(objectives)
        if isinstance(max_loss, Mapping) and unknown:
            names = ", ".join(objectives)
            raise WorseError(
                f"{', '.join(sorted(unknown))}: no objective of both fronts; there are {names}"
            )
        if uncompared := [row for row in self.uncompared if row.figure in allowed]:
            messages = (f"{row.figure} cannot be compared: {row.reason}" for row in uncompared)
            raise WorseError("; ".join(messages))
        worse = [
            each
            for each in self.best
            if each.figure in allowed and each.loss > allowed[each.figure]
        ]
        if worse:
            most = {figure: _percent(share) for figure, share in allowed.items()}
            messages = (f"{_change_text(each)}, allowed are {most[each.figure]}" for each in worse)
            raise WorseError(f"the new front is worse: {'; '.join(messages)}")


def difference(old: FrontFolder, new: FrontFolder) -> DifferenceDocument:
    """Return what changed from one front to another."""
    before, after = old.document, new.document
    old_ids, new_ids = ([each.id for each in d.operators] for d in (before, after))
    figures, reasons = compared_figures(before, after)
    changes: dict[str, Any] = {
        "inputs": tuple(_input_changes(before, after)),
        "operators_added": tuple(each for each in new_ids if each not in set(old_ids)),
        "operators_removed": tuple(each for each in old_ids if each not in set(new_ids)),
        "costs": tuple(_cost_changes(old.plans, new.plans)),
        "uncompared": tuple(
            UncomparedRow(figure=figure, reason=reason) for figure, reason in reasons.items()
        ),
        "lost": tuple(_unmatched(before, after, [(each.old, each.new) for each in figures])),
        "gained": tuple(_unmatched(after, before, [(each.new, each.old) for each in figures])),
    }
    best = tuple(_compare_best(before, after, each) for each in figures)
    same = not any(changes.values()) and not any(each.loss for each in best)
    return DifferenceDocument(schema=SCHEMA, same=same, best=best, **changes)


def _change_text(each: BestChange) -> str:
    figure = COMPARED[each.figure]
    whose = f" of {each.model}" if each.model else ""
    change = f"a {'loss' if each.loss > 0 else 'gain'} of {_percent(abs(each.loss))}"
    change = change if each.loss else "the same"
    was = plain(each.old * figure.scale)
    return f"{each.figure}{whose} {was} to {figure.text(each.new)}, {change}"


def _percent(share: float) -> str:
    return f"{plain(share * 100, 3)} %"


def _input_changes(before: FrontDocument, after: FrontDocument) -> Iterator[InputChange]:
    old, new = dict(_inputs_of(before)), dict(_inputs_of(after))
    for what in dict.fromkeys([*old, *new]):
        if old.get(what) != new.get(what):
            yield InputChange(what=what, old=old.get(what), new=new.get(what))


def _inputs_of(front: FrontDocument) -> Iterator[tuple[str, str]]:
    """Yield what a front was made of and with, by name."""
    document = front.to_json()
    for what in _INPUT_FIELDS:
        if document[what] is not None:
            yield what, document[what]
    for section in ("inputs", "options"):
        for key, value in document[section].items():
            yield f"{section}.{key}", value if isinstance(value, str) else repr(value)
    for demand in front.several.models if front.several else ():
        rate = f"{demand.rate_fps:g} frames/s, {demand.frames} in a pattern"
        yield f"several.{demand.name}", rate
    for each in front.processors:
        yield f"processors.{each.name}", f"{each.kind}, {each.backend}, {each.description}"


def _compare_best(before: FrontDocument, after: FrontDocument, of: ComparedFigure) -> BestChange:
    old, new = min(before.configurations, key=of.old), min(after.configurations, key=of.new)
    was, now = of.old(old), of.new(new)
    is_rate = COMPARED[of.figure].direction == "greatest"
    loss = 1 - was / now if is_rate else now / was - 1
    return BestChange(
        figure=of.figure,
        model=of.model,
        old=1 / was if is_rate else was,
        new=1 / now if is_rate else now,
        loss=0.0 if isclose(was, now, rel_tol=SAME) else loss,
        old_median=_median_if_outside(old, of.figure),
        new_median=_median_if_outside(new, of.figure),
        old_id=old.id,
        new_id=new.id,
    )


def _median_if_outside(row: ConfigurationRow, of: Compared) -> float | None:
    """Return the median of a figure whose stated value lies outside of its interval."""
    if row.several:
        return None
    key = COMPARED[of].field
    figure = shown_figure(row.model_dump(include={key, "intervals", "medians"}), key)
    return figure.median if figure and not figure.inside else None


def _unmatched(
    one: FrontDocument,
    other: FrontDocument,
    figures: Sequence[tuple[Callable[[ConfigurationRow], float], ...]],
) -> Iterator[Point]:
    """Yield the Pareto configurations of a front that none of another is at least as good as.

    `figures` give those of a configuration of the one front, and of the other one.
    """
    reached = [[theirs(row) for _, theirs in figures] for row in other.configurations]
    for row in one.configurations:
        most = [ours(row) * (1 + SAME) for ours, _ in figures]
        if row.pareto and not any(
            all(has <= limit for has, limit in zip(each, most, strict=True)) for each in reached
        ):
            yield _point(row, one)


def _point(row: ConfigurationRow, front: FrontDocument) -> Point:
    models = latencies_s(row)
    return Point(
        id=row.id,
        drawing=row.drawing,
        names=row.names,
        latency_s=max(models.values(), default=row.latency_s),
        models=models,
        throughput_fps=frames_per_second(row, front),
        energy_j=energy_of_a_frame_j(row, front),
    )


def _cost_changes(old: Mapping[str, Plan], new: Mapping[str, Plan]) -> Iterator[CostChange]:
    before, after = _times_by_processor(old), _times_by_processor(new)
    both = [key for key in before if key in after]
    for key in sorted(both, key=lambda key: -abs(after[key] - before[key])):
        if not isclose(before[key], after[key], rel_tol=SAME_TIME):
            operator, processor, _ = key
            yield CostChange(
                operator=operator, processor=processor, old_s=before[key], new_s=after[key]
            )


def _times_by_processor(plans: Mapping[str, Plan]) -> dict[tuple[str, str, float], float]:
    """Return the seconds of operators by processor and clock, and of transfers by their ends."""
    times_s: dict[tuple[str, str, float], float] = {}
    for plan in plans.values():
        clock_hz = {each.name: each.operating_point.frequency_hz for each in plan.processors}
        for stage in plan.stages:
            for used in stage.processors:
                for at in used.operators:
                    key = (at.operator, used.name, clock_hz[used.name])
                    times_s.setdefault(key, at.end_s - at.start_s)
        for each in plan.transfers:
            times_s.setdefault((each.tensor, f"{each.source} to {each.target}", 0.0), each.time_s)
    return times_s
