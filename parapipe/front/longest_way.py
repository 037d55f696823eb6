"""The longest way through a stage of a plan: operators and transfers that fill all of its time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.formats.explanation import StepRow
from parapipe.plan.mapped import producers
from parapipe.plan.schema import PlacedOperator, Plan, Stage, Transfer

_SAME = 1e-9  # share of a stage's time by which equal moments may differ


def longest_way(plan: Plan, stage: Stage) -> tuple[StepRow, ...]:
    """Return steps from a stage's start to its end, each beginning when the one before ends.

    An operator starts when its processor is free and what it reads has arrived, or when the
    subgraph before has ended; whatever came last is the step before it.
    """
    placed = [(at, p.name) for p in stage.processors for at in p.operators]
    walk = _Walk(
        stage,
        placed=[(at, name) for at, name in placed if at.end_s > at.start_s],
        instant={at.operator for at, _ in placed if at.end_s == at.start_s},
        reads={operator.id: operator.inputs for operator in plan.operators},
        makes=producers(plan),
        arriving={(transfer.tensor, transfer.target): transfer for transfer in plan.transfers},
    )
    return tuple(walk.back())[::-1]


def turns_of(stage: Stage) -> tuple[str, ...]:
    """Return the processors that take turns on the frames of a stage, or its first one alone."""
    first = stage.processors[0]
    return first.name, *(first.replicas or ())


def every_s(stage: Stage) -> float:
    """Return the seconds between frames that a stage can keep."""
    return stage.time_s / len(turns_of(stage))


@dataclass(frozen=True, slots=True)
class _Walk:
    stage: Stage
    placed: Sequence[tuple[PlacedOperator, str]]  # with the processor, those that take time
    instant: Collection[str]  # operators of the stage that take none
    reads: Mapping[str, Sequence[str]]
    makes: Mapping[str, str]
    arriving: Mapping[tuple[str, str], Transfer]

    def back(self) -> Iterator[StepRow]:
        """Yield the steps, last to first."""
        moment_s, made, beside = self.stage.time_s, "", ""
        while not self._same(moment_s, 0):
            found = self._ended(moment_s, made=made, beside=beside)
            made = beside = ""
            if found is None:
                ends = (at.end_s for at, _ in self.placed if at.end_s < moment_s)
                before = (end_s for end_s in ends if not self._same(end_s, moment_s))
                before_s = max(before, default=0.0)
                yield StepRow(kind="wait", name="", processor="", time_s=moment_s - before_s)
                moment_s = before_s
                continue
            at, processor = found
            took_s = at.end_s - at.start_s
            yield StepRow(kind="operator", name=at.operator, processor=processor, time_s=took_s)
            moment_s = at.start_s
            if arrival := self._arrived(at, processor):
                name, took_s = arrival.tensor, arrival.time_s
                yield StepRow(kind="transfer", name=name, processor=processor, time_s=took_s)
                moment_s -= took_s
                made = self.makes.get(arrival.tensor, "")
            else:
                beside = processor

    def _same(self, one_s: float, other_s: float) -> bool:
        return abs(one_s - other_s) <= _SAME * self.stage.time_s

    def _ended(
        self, moment_s: float, *, beside: str = "", made: str = ""
    ) -> tuple[PlacedOperator, str] | None:
        """Return an operator that ended then: the maker, or one on the processor, before others."""
        ended = [entry for entry in self.placed if self._same(entry[0].end_s, moment_s)]
        return max(ended, key=lambda e: (e[0].operator == made, e[1] == beside), default=None)

    def _arrived(self, at: PlacedOperator, processor: str) -> Transfer | None:
        """Return the transfer that an operator started with, if none ended on its processor."""
        if self._same(at.start_s, 0):
            return None
        if any(self._same(o.end_s, at.start_s) and p == processor for o, p in self.placed):
            return None
        for name in self._read(at.operator):
            transfer = self.arriving.get((name, processor))
            if transfer and self._arrives(transfer, at.start_s):
                return transfer
        return None

    def _arrives(self, transfer: Transfer, moment_s: float) -> bool:
        if transfer.end_s is not None:
            return self._same(transfer.end_s, moment_s)
        begun_s = moment_s - transfer.time_s
        return self._same(begun_s, 0) or self._ended(begun_s) is not None

    def _read(self, operator: str) -> Iterator[str]:
        """Yield what an operator reads, and what those before it read that take no time."""
        for name in self.reads[operator]:
            yield name
            if (maker := self.makes.get(name)) in self.instant:
                yield from self._read(str(maker))
