"""What parts of operators cost: as measured, or as much of the whole operator as fits say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.price import OF_THE_OPERATOR, OperatorCost
from parapipe.cost.profile import Profile
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.parts.part import NotCuttableError, Range
from parapipe.parts.run import RunPart
from parapipe.parts.work import PartCollector
from parapipe.platform.fields import named_value
from parapipe.platform.platform import Platform
from parapipe.platform.support import Refusal
from parapipe.search.loaded_costs import ExpectedLoad

_Key = tuple[tuple[int, ...], Range]


class _Batch:
    """Parts that are priced together: as measured where a profile has them, and as fitted."""

    def __init__(self, graph: OperatorGraph, table: Callable[..., CostTable]) -> None:
        self.alone = PartCollector(graph)
        self._table = table

    @cached_property
    def measured(self) -> CostTable:
        return self._table(self.alone.graph(), measured=True)

    @cached_property
    def fitted(self) -> CostTable:
        return self._table(self.alone.graph(), measured=False)


@dataclass
class PartPrices:
    """Collects parts of operators; when the cost of one is asked, prices all that are not yet.

    A part whose shape a profile has costs what was measured. Any other one takes the whole
    operator's time × (fitted time of the part ÷ fitted time of the whole): where the whole was
    measured to be slower than its fit, so are its parts. Otherwise, splitting would pay wherever a
    fit is too fast.

    Parameters
    ----------
    costs
        Of the graph's whole operators.
    profiles
        Those that the costs come from.
    load
        What a search takes all to take longer by; the costs are those of operators that run alone.
    """

    graph: OperatorGraph
    platform: Platform
    costs: CostTable
    profiles: Sequence[Profile] | None
    load: ExpectedLoad | None = None
    _parts: dict[_Key, tuple[_Batch, range, RunPart] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open = _Batch(self.graph, self._table)

    @cached_property
    def expected(self) -> CostTable:
        """Costs of whole operators as a search expects them: under the load, if there is one."""
        return self.costs if self.load is None else self.load.table(self.costs)

    def part(self, run: tuple[int, ...], range_: Range) -> RunPart | None:
        """Return a part of operators in a row, to be priced; None if it cannot be cut out.

        Parameters
        ----------
        run
            Indices in the graph.
        range_
            Range of the last one's result.
        """
        key = (run, range_)
        if key not in self._parts:
            self._parts[key] = None
            try:
                places, part = self._open.alone.add([self.graph.operators[v] for v in run], range_)
            except NotCuttableError:
                return None
            if len(places) == len(run):  # else one of them is a view that every part needs whole
                self._parts[key] = (self._open, places, part)
        entry = self._parts[key]
        return entry and entry[2]

    def taken(self, run: tuple[int, ...], range_: Range, p: int) -> tuple[float, float]:
        """Return seconds and joules of a part on processor p; infinite if it does not run it.

        They are those under the load that is expected, if one is.
        """
        alone = (self.cost(run, range_, v, p) for v in run)
        each = alone if self.load is None else (self.load.slowed(cost, p) for cost in alone)
        costs = [cost for cost in each if not isinstance(cost, Refusal)]
        if len(costs) < len(run):
            return inf, inf
        return sum(cost.time_s for cost in costs), sum(cost.energy_j for cost in costs)

    def cost(self, run: tuple[int, ...], range_: Range, v: int, p: int) -> OperatorCost | Refusal:
        """Return what a part of one operator of a run costs, or why processor p does not run it."""
        entry, whole_cost = self._parts[run, range_], self.costs.entries[v][p]
        assert entry is not None
        batch, places, _ = entry
        if batch is self._open:
            self._open = _Batch(self.graph, self._table)
        at = places[run.index(v)]
        part = batch.measured.entries[at][p]
        if isinstance(whole_cost, Refusal) or isinstance(part, Refusal):
            return whole_cost if isinstance(whole_cost, Refusal) else part
        provenances = {each.provenance for each in part.parts}
        if provenances <= OF_THE_OPERATOR:
            return part
        part_s = batch.fitted.time_s(at, p) if provenances & OF_THE_OPERATOR else part.time_s
        unsplit_s = self._fitted_unsplit.time_s(v, p)
        return scaled_cost(whole_cost, part_s / unsplit_s if unsplit_s else 1.0)

    @cached_property
    def _fitted_unsplit(self) -> CostTable:
        return self._table(self.graph, measured=False)

    def _table(self, graph: OperatorGraph, *, measured: bool) -> CostTable:
        return build_cost_table(
            graph,
            self.platform,
            profiles=self.profiles,
            precision=self.costs.precision,
            measured=measured,
        )


def scaled_cost(cost: OperatorCost, ratio: float) -> OperatorCost:
    """Return what a part costs, given what the whole costs."""
    note = "fitted seconds of the part ÷ those of the whole operator"
    parts = tuple(
        replace(
            part,
            provenance="fitted" if part.provenance in OF_THE_OPERATOR else part.provenance,
            source=f"{part.source}; a part, in proportion to what is fitted",
            time=part.time * named_value("part", ratio, "", note=note),
            noisy_spread=None,
        )
        for part in cost.parts
    )
    return replace(cost, parts=parts)
