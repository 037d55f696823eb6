"""Why a kind of configuration does not exist, in plain words.

The search is exact: a kind that it did not find does not exist. The reason is looked for in what
the processors run, from the plain to the intricate: too few processors, no place to cut, a unit
that no processor runs whole, stages that cannot be shared out. Where support forbids nothing, it
was the mapper that had no use for more processors, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.cost.pins import PINNED
from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.files.mistakes import join_with_and, listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.mapping import Kind
from parapipe.search.stages.candidates import Candidate

# Processors that must run something for the kind to exist.
NEEDED: dict[Kind, int] = {"sequential": 1, "pipe-only": 2, "para-only": 2, "hybrid": 3}
# Names, types and reasons told before the rest are only counted.
MOST_NAMED = 3

ENDED = "the search ended before there was one"
NO_USE = (
    "the mapper found no use for a second processor beside the first",
    "the mapper found no use for two processors in a stage beside another stage",
)
LONGEST_S = 1e6  # of one frame, all operators one by one on all processors


def absent_kinds(
    candidates: Sequence[Candidate],
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    *,
    most_stages: int | None = None,
    complete: bool = True,
) -> dict[str, str]:
    """Say why kinds of configuration do not exist, and which processors cannot work alone.

    Parameters
    ----------
    candidates
        What an exact search found: at least one of each kind that exists.
    most_stages
        Of a configuration that the search was to find; any number if it is None.
    complete
        Whether the search was not ended early.

    Returns
    -------
    Reasons by name: absent kinds in a fixed order, then `<processor>-alone`, in the platform's
    order, for each processor that cannot run the whole model.
    """
    support = _Support.of(graph, partition, costs, most_stages)
    kinds = [kind for kind in NEEDED if kind not in {each.kind for each in candidates}]
    alone = {
        f"{name}-alone": support.describe_refusals(p)
        for p, name in enumerate(support.names)
        if support.lacking(p, support.operators)
    }
    reasons = {kind: _absence_reason(kind, support) for kind in kinds}
    if not complete:
        reasons |= {kind: ENDED for kind, reason in reasons.items() if reason in NO_USE}
    return reasons | alone


def no_turns_reason(graph: OperatorGraph, partition: Partition, costs: CostTable) -> str | None:
    """Say why operators of several frames cannot take turns at all; None if they can."""
    return _too_few_reason(NEEDED["pipe-only"], _Support.of(graph, partition, costs))


@dataclass(frozen=True, slots=True)
class _Support:
    """Which processors run what; sets of processors are bit masks.

    Parameters
    ----------
    runs
        `runs[v]`: the processors that run operator v.
    units
        Operators between each two places to cut, in order.
    runs_unit
        `runs_unit[u]`: the processors that run every operator of unit u.
    most_stages
        Of a configuration; any number if it is None.
    """

    graph: OperatorGraph
    costs: CostTable
    units: tuple[tuple[int, ...], ...]
    runs: tuple[int, ...]
    runs_unit: tuple[int, ...]
    most_stages: int | None

    @classmethod
    def of(
        cls,
        graph: OperatorGraph,
        partition: Partition,
        costs: CostTable,
        most_stages: int | None = None,
    ) -> _Support:
        processors = range(len(costs.processors))
        runs = tuple(
            sum(1 << p for p in processors if costs.time_s(v, p) < inf)
            for v in range(len(graph.operators))
        )
        runs_unit = []
        units = partition.cuts.stretches
        for unit in units:
            mask = (1 << len(processors)) - 1
            for v in unit:
                mask &= runs[v]
            runs_unit.append(mask)
        return cls(graph, costs, units, runs, tuple(runs_unit), most_stages)

    @property
    def names(self) -> tuple[str, ...]:
        return self.costs.processors

    @property
    def operators(self) -> range:
        return range(len(self.runs))

    def needing(self, mask: int, operators: Iterable[int]) -> list[int]:
        """Return those of the operators that need a processor of the set."""
        return [v for v in operators if not self.runs[v] & ~mask]

    def names_of(self, mask: int) -> str:
        """Name the processors of a set."""
        return " and ".join(name for p, name in enumerate(self.names) if mask >> p & 1)

    def lacking(self, p: int, operators: Iterable[int]) -> list[int]:
        """Return those of the operators that the processor does not run."""
        return [v for v in operators if not self.runs[v] >> p & 1]

    def describe_lacks(self, processors: Iterable[int], operators: Sequence[int]) -> str:
        """Say what each processor lacks: npu lacks LRN ('norm1', 'norm2') and Softmax ('prob').

        Operators that it may not run because of pins are named apart.
        """
        lacks = []
        for p in processors:
            refused = [self.refusal(v, p) for v in self.lacking(p, operators)]
            pinned = [each[:2] for each in refused if each[2].startswith(PINNED)]
            lacking = [each[:2] for each in refused if not each[2].startswith(PINNED)]
            if lacking:
                lacks.append(f"{self.names[p]} lacks {_list_by_type(lacking)}")
            if pinned:
                lacks.append(f"{self.names[p]} may not run {_list_by_type(pinned)}: pinned")
        return "; ".join(lacks)

    def describe_refusals(self, p: int) -> str:
        """Say which operators of the model the processor does not run, with its own reasons."""
        lacking = self.lacking(p, self.operators)
        groups: dict[str, list[tuple[str, str]]] = {}
        for v in lacking:
            kind, name, reason = self.refusal(v, p)
            groups.setdefault(reason, []).append((kind, name))
        parts = [f"{_list_by_type(group)} – {reason}" for reason, group in groups.items()]
        if rest := sum(map(len, list(groups.values())[MOST_NAMED:])):
            parts[MOST_NAMED:] = [f"and {rest} more for other reasons"]
        count = f"{len(lacking)} of {len(self.runs)} operators"
        return f"{self.names[p]} cannot run {count}: {'; '.join(parts)}"

    def refusal(self, v: int, p: int) -> tuple[str, str, str]:
        """Type and name of what the processor does not run (maybe only a part), and why."""
        operator, refusal = self.graph.operators[v], self.costs.unsupported(v, p)
        if refusal and refusal.type:
            return refusal.type, refusal.operator, refusal.cause
        return operator.type, operator.name, refusal.cause if refusal else ""

    def first(self, unit: int) -> str:
        """Name the operator that a unit begins with."""
        return self.label_of(self.units[unit][0])

    def last(self, unit: int) -> str:
        """Name the operator that a unit ends with."""
        return self.label_of(self.units[unit][-1])

    def label_of(self, v: int) -> str:
        """Name an operator."""
        return f"'{self.graph.operators[v].name}' ({self.graph.operators[v].type})"


def _list_by_type(operators: Iterable[tuple[str, str]]) -> str:
    """List operators, given as type and name, by type."""
    groups: dict[str, list[str]] = {}
    for kind, name in operators:
        groups.setdefault(kind, []).append(f"'{name}'")
    parts = []
    for kind, names in list(groups.items())[:MOST_NAMED]:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        parts.append(f"{kind} ({', '.join(names[:MOST_NAMED])}{more})")
    if rest := sum(map(len, list(groups.values())[MOST_NAMED:])):
        parts.append(f"{rest} of other types")
    return " and ".join((", ".join(parts[:-1]), parts[-1]) if len(parts) > 1 else parts)


def _absence_reason(kind: Kind, support: _Support) -> str:
    processors = range(len(support.names))
    if kind == "sequential":
        lacks = support.describe_lacks(processors, support.operators)
        return f"no processor runs every operator: {lacks}"
    if few := _too_few_reason(NEEDED[kind], support):
        return few
    if kind == "para-only":
        return NO_USE[0]
    if len(support.units) == 1:
        return (
            f"the model cannot be cut into stages between {support.first(0)} and {support.last(0)}"
        )
    if support.most_stages == 1:
        return "it has 2 stages or more, at most 1 may be"
    return _no_pipe_reason(support) if kind == "pipe-only" else _no_hybrid_reason(support)


def _too_few_reason(needed: int, support: _Support) -> str | None:
    processors = range(len(support.names))
    workers = [p for p in processors if any(mask >> p & 1 for mask in support.runs)]
    if len(processors) < needed:
        excluded = support.costs.excluded
        without = f" without {join_with_and(excluded)}" if excluded else ""
        return f"it needs {needed} processors, and the platform has {len(processors)}{without}"
    if len(workers) < needed:
        working = support.names_of(sum(1 << p for p in workers))
        lacks = support.describe_lacks(sorted({*processors} - {*workers}), support.operators)
        return (
            f"it needs {needed} processors, and only {working} can run operators of this "
            f"model: {lacks}"
        )
    return None


def _no_pipe_reason(support: _Support) -> str:
    processors = range(len(support.names))
    uncovered = [unit for unit, mask in enumerate(support.runs_unit) if not mask]
    if uncovered:
        more = f", nor all of {len(uncovered) - 1} more such units" if len(uncovered) > 1 else ""
        lacks = support.describe_lacks(processors, support.units[uncovered[0]])
        return (
            f"no processor runs all operators from {support.first(uncovered[0])} to "
            f"{support.last(uncovered[0])}, between which there is no place to cut{more}: {lacks}"
        )
    for p in processors:
        if not support.lacking(p, support.operators):
            ends = (*support.units[0], *support.units[-1])
            lacks = support.describe_lacks((q for q in processors if q != p), ends)
            return f"no processor but {support.names[p]} can begin or end the model: {lacks}"
    return _stuck_reason(support)


def _stuck_reason(support: _Support) -> str:
    """Say where stages of one processor each get stuck, in the order that gets furthest."""
    # What a set of processors covers at most, a stage each, and the stages. To get further with
    # the others never hurts, so the longest stages are enough.
    best: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    for mask in range(1, 1 << len(support.names)):
        starts = [best[mask ^ 1 << p] for p in range(len(support.names)) if mask >> p & 1]
        longest = max(starts, key=lambda entry: entry[0])
        for p in range(len(support.names)):
            if mask >> p & 1:
                begin, stages = best[mask ^ 1 << p]
                end = _end_of_prefix(support, 1 << p, begin)
                if end > longest[0]:
                    stage = f"{support.names[p]} up to {support.last(end - 1)}"
                    longest = (end, (*stages, stage))
        best.append(longest)
    end, stages = best[-1]
    if end == len(support.units):  # it takes more stages than are allowed
        return f"it takes more than {support.most_stages} stages, no more may be"
    # Who could go on has a stage already, or there would be one stage more.
    able = support.names_of(support.runs_unit[end])
    return (
        f"stages of one processor each get no further than {', then '.join(stages)}; next comes "
        f"{support.first(end)}, which only {able} can run, and a processor has one stage only"
    )


def _no_hybrid_reason(support: _Support) -> str:
    """Say that the processors cannot be split in two, or that no split has a parallel stage."""
    count, all_processors = len(support.units), (1 << len(support.names)) - 1
    splits = [
        (_end_of_prefix(support, mask, 0), _begin_of_suffix(support, all_processors ^ mask), mask)
        for mask in range(1, all_processors)
    ]
    if any(end and begin < count and end >= begin for end, begin, _ in splits):
        return NO_USE[1]
    short = [split for split in splits if split[0] < count and split[1] > 0]
    if not short:
        mask = next(mask for end, _, mask in splits if end == count)
        able, rest = support.names_of(mask), support.names_of(all_processors ^ mask)
        early = support.needing(mask, support.units[0])[0]
        late = support.needing(mask, support.units[-1])[-1]
        return (
            f"only {able} can begin or end the model: {rest} cannot run "
            f"{support.label_of(early)} at its beginning, nor {support.label_of(late)} at its end"
        )
    end, begin, mask = max(short, key=lambda split: (split[0] - split[1], split[0], -split[2]))
    head, tail = support.names_of(mask), support.names_of(all_processors ^ mask)
    early = support.needing(all_processors ^ mask, support.units[end])[0]
    late = support.needing(mask, support.units[begin - 1])[-1]
    place = "later" if end < begin - 1 else "in the same unit"
    return (
        f"no place to cut suits both sides: with {head} before it and {tail} behind, "
        f"say, {head} cannot run {support.label_of(early)}, and {tail} cannot run "
        f"{support.label_of(late)}, which comes {place}"
    )


def _end_of_prefix(support: _Support, mask: int, begin: int) -> int:
    """Return the unit up to which a set of processors gets from `begin`, not inclusive."""
    while begin < len(support.units) and _can_run_together(support, mask, begin):
        begin += 1
    return begin


def _begin_of_suffix(support: _Support, mask: int) -> int:
    """Return the unit from which on a set of processors runs the rest of the model."""
    begin = len(support.units)
    while begin and _can_run_together(support, mask, begin - 1):
        begin -= 1
    return begin


def _can_run_together(support: _Support, mask: int, unit: int) -> bool:
    return all(support.runs[v] & mask for v in support.units[unit])


def check_times(graph: OperatorGraph, costs: CostTable) -> None:
    """Raise a MappingError if no operator takes time, or all of them take too much."""
    count = range(len(costs.processors))
    times_s = [costs.time_s(v, p) for v in range(len(graph.operators)) for p in count]
    longest_s = sum(time_s for time_s in times_s if time_s < inf)
    if not any(times_s):
        raise MappingError(
            f"'{graph.source.name}' has no operator that takes time: there is nothing to map"
        )
    if longest_s > LONGEST_S:
        raise MappingError(
            f"'{graph.source.name}' would take up to {plain(longest_s, 3)} s for a frame: check "
            "the sizes given with `dims`, `shapes` and `rules`"
        )


def check_energies(costs: CostTable) -> None:
    """Raise a MappingError if a configuration could take no energy at all: power is not known."""
    still = [p for p, static_w in enumerate(costs.static_power_w) if not static_w]
    free = [[p for p in still if costs.energy_j(v, p) == 0] for v in range(len(costs.entries))]
    if all(free):
        names = sorted({costs.processors[p] for where in free for p in where})
        raise MappingError(
            f"a frame would take no energy on {listed(names)}: the platform gives them no power; "
            "give alpha_w_per_v2_hz or beta_w_per_v, nominal ones if none were measured"
        )
