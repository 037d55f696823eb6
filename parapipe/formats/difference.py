"""What changed from one front to another: what `parapipe diff --json` prints.

Published as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any, Literal

from pydantic import Field

from parapipe.errors import WorseError
from parapipe.formats.front import ConfigurationRow, FrontDocument
from parapipe.formats.front_folder import FrontFolder
from parapipe.formats.record import Row
from parapipe.plan.schema import Plan

SCHEMA: Literal["parapipe/diff/1"] = "parapipe/diff/1"
Figure = Literal["latency", "throughput", "energy", "memory"]
FIGURES: Mapping[Figure, str] = {
    "latency": "latency_s",
    "throughput": "period_s",
    "energy": "energy_j",
    "memory": "peak_memory_bytes",
}
"""What the best configurations are compared in: each field is to be small."""
SAME = 1e-9
"""Share by which figures differ that are the same: they were added up in another order."""
SAME_TIME = 1e-6
"""The same of an operator's time, which is the difference of its end and its start."""
_ASKED = ("parapipe", "model", "model_sha256", "platform", "conversion")


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

    figure: Figure
    """Which one."""
    old: float
    """Seconds, frames per second, joules per frame or bytes."""
    new: float
    """The same."""
    loss: float
    """Share by which the new one is worse: of more time, energy and memory, or of fewer frames per
    second; below 0 if it is better."""
    old_id: str
    """The configuration."""
    new_id: str
    """The configuration."""


class Point(Row):
    """A configuration that only one of the fronts has."""

    id: str
    """Its number there."""
    drawing: str
    """Its stages."""
    names: tuple[str, ...]
    """Its names."""
    latency_s: float
    """Seconds of a frame."""
    throughput_fps: float
    """Frames per second."""
    energy_j: float
    """Joules per frame."""


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
    """In each objective of both fronts."""
    lost: tuple[Point, ...]
    """Configurations of the old Pareto front that no new one matches in all its objectives."""
    gained: tuple[Point, ...]
    """The same of the new one."""

    def __repr__(self) -> str:
        """Return a line."""
        return f"<difference: {'none' if self.same else ', '.join(map(_told, self.best))}>"

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
            One is; all are named.
        """
        allowed = max_loss if isinstance(max_loss, Mapping) else dict.fromkeys(FIGURES, max_loss)
        unknown = set(allowed).difference(each.figure for each in self.best)
        if isinstance(max_loss, Mapping) and unknown:
            known = ", ".join(each.figure for each in self.best)
            raise WorseError(
                f"{', '.join(sorted(unknown))}: no objective of both fronts; there are {known}"
            )
        worse = [
            each
            for each in self.best
            if each.figure in allowed and each.loss > allowed[each.figure]
        ]
        if worse:
            told = (f"{_told(each)}, allowed are {allowed[each.figure]:.3g}" for each in worse)
            raise WorseError(f"the new front is worse: {'; '.join(told)}")


def difference(old: FrontFolder, new: FrontFolder) -> DifferenceDocument:
    """Return what changed from one front to another."""
    before, after = old.document, new.document
    known, there = ([each.id for each in d.operators] for d in (before, after))
    asked = set(before.options.objectives).intersection(after.options.objectives)
    objectives = [each for each in FIGURES if each in asked]
    found: dict[str, Any] = {
        "inputs": tuple(_input_changes(before, after)),
        "operators_added": tuple(each for each in there if each not in set(known)),
        "operators_removed": tuple(each for each in known if each not in set(there)),
        "costs": tuple(_cost_changes(old.plans, new.plans)),
        "lost": tuple(_unmatched(before, after, objectives)),
        "gained": tuple(_unmatched(after, before, objectives)),
    }
    best = tuple(_best(before, after, objective) for objective in objectives)
    same = not any(found.values()) and not any(each.loss for each in best)
    return DifferenceDocument(schema=SCHEMA, same=same, best=best, **found)


def _told(each: BestChange) -> str:
    unit, times = {
        "latency": ("ms", 1e3), "throughput": ("frames/s", 1.0), "energy": ("mJ per frame", 1e3),
        "memory": ("MB", 1e-6),
    }[each.figure]  # fmt: skip
    was, now = each.old * times, each.new * times
    return f"{each.figure} {was:.4g} to {now:.4g} {unit}, a loss of {each.loss:.3g}"


def _input_changes(before: FrontDocument, after: FrontDocument) -> Iterator[InputChange]:
    old, new = dict(_made_of(before)), dict(_made_of(after))
    for what in dict.fromkeys([*old, *new]):
        if old.get(what) != new.get(what):
            yield InputChange(what=what, old=old.get(what), new=new.get(what))


def _made_of(front: FrontDocument) -> Iterator[tuple[str, str]]:
    """Yield what a front was made of and with, by name."""
    document = front.to_json()
    for what in _ASKED:
        if document[what] is not None:
            yield what, document[what]
    for section in ("inputs", "options"):
        for key, value in document[section].items():
            yield f"{section}.{key}", value if isinstance(value, str) else repr(value)
    for each in front.processors:
        yield f"processors.{each.name}", f"{each.kind}, {each.backend}, {each.description}"


def _best(before: FrontDocument, after: FrontDocument, objective: Figure) -> BestChange:
    field = FIGURES[objective]
    old, new = (
        min(document.configurations, key=lambda row: getattr(row, field))
        for document in (before, after)
    )
    was, now = getattr(old, field), getattr(new, field)
    is_rate = objective == "throughput"
    loss = 1 - was / now if is_rate else now / was - 1
    return BestChange(
        figure=objective,
        old=1 / was if is_rate else was,
        new=1 / now if is_rate else now,
        loss=0.0 if isclose(was, now, rel_tol=SAME) else loss,
        old_id=old.id,
        new_id=new.id,
    )


def _unmatched(
    one: FrontDocument, other: FrontDocument, objectives: Sequence[Figure]
) -> Iterator[Point]:
    """Yield the Pareto configurations of a front that none of another is at least as good as."""

    def figures(row: ConfigurationRow) -> list[float]:
        return [getattr(row, FIGURES[each]) for each in objectives]

    there = [figures(row) for row in other.configurations]
    for row in one.configurations:
        most = [figure * (1 + SAME) for figure in figures(row)]
        if row.pareto and not any(
            all(has <= limit for has, limit in zip(each, most, strict=True)) for each in there
        ):
            yield Point.of(row)


def _cost_changes(old: Mapping[str, Plan], new: Mapping[str, Plan]) -> Iterator[CostChange]:
    before, after = _times(old), _times(new)
    both = [key for key in before if key in after]
    for key in sorted(both, key=lambda key: -abs(after[key] - before[key])):
        if not isclose(before[key], after[key], rel_tol=SAME_TIME):
            operator, processor, _ = key
            yield CostChange(
                operator=operator, processor=processor, old_s=before[key], new_s=after[key]
            )


def _times(plans: Mapping[str, Plan]) -> dict[tuple[str, str, float], float]:
    """Return the seconds of operators by processor and clock, and of transfers by their ends."""
    found: dict[tuple[str, str, float], float] = {}
    for plan in plans.values():
        clock_hz = {each.name: each.operating_point.frequency_hz for each in plan.processors}
        for stage in plan.stages:
            for used in stage.processors:
                for at in used.operators:
                    key = (at.operator, used.name, clock_hz[used.name])
                    found.setdefault(key, at.end_s - at.start_s)
        for each in plan.transfers:
            found.setdefault((each.tensor, f"{each.source} to {each.target}", 0.0), each.time_s)
    return found
