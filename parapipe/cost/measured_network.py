"""Networks that were measured as a whole: the time of each of their operators, block by block.

A profile's time of a signature is the median over all places where it was measured, so a sum of
such times misses a network by up to 2 %. Where the model to be priced is one of the networks that
were measured, each operator takes the time of its own row instead: then operators add up to the
measured times of their blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_rows import Row, rows_behind
from parapipe.cost.measured_source import Subject, subject_of
from parapipe.cost.price import OperatorCost, PartCost
from parapipe.cost.pricing import folded_into
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.cost.signature import Signature, signature_of
from parapipe.cost.spread import ONCE, OTHER_STATE
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.platform.fields import named_value
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.platform.support import Refusal

Key = tuple[str, str, str]
_FREE = frozenset({"Reshape", "Split"})  # as signatures have them; no work on the boards so far


@dataclass(frozen=True, slots=True)
class MeasuredNetwork:
    """A network's rows in the order in which they ran.

    Parameters
    ----------
    name
        As the measurements call it.
    profile
        Folder and backend of the table, such as `amlogic-a311d/armcl-f32`.
    """

    name: str
    profile: str
    rows: tuple[Row, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return 1 + max(row.block for row in self.rows)


@dataclass(frozen=True, slots=True)
class RecognisedNetwork:
    """A graph that is one of the measured networks.

    Parameters
    ----------
    rows_of
        Rows of each single operator, by its key; an operator that cost nothing has none.
    """

    network: MeasuredNetwork
    rows_of: Mapping[Key, tuple[Row, ...]]

    def blocks_of(self, graph: OperatorGraph) -> tuple[int, ...]:
        """Return the block of every operator; one without rows goes with what it reads."""
        blocks: list[int] = []
        for v, operator in enumerate(graph.operators):
            of_rows = [row.block for p in parts_of(operator) for row in self.rows_of[key_of(p)]]
            before = max((blocks[u] for u in graph.predecessors(v)), default=0)
            blocks.append(of_rows[0] if of_rows else before)
        return tuple(blocks)


def key_of(part: Operator) -> Key:
    """Return what tells a single operator from all others.

    Its id does not: a convolution takes the name of the result of what is folded into it.
    """
    return part.id, part.type, part.name


def parts_of(operator: Operator) -> tuple[Operator, ...]:
    """Return the single operators that ran on the board, those folded into others last."""
    return (*operator.singles, *folded_into(operator))


@lru_cache(maxsize=8)
def measured_networks(profile: str) -> tuple[MeasuredNetwork, ...]:
    """Return the networks that were measured for the profiles of that name, in the files' order.

    Raises
    ------
    CostError
        If a table is wrong.
    """
    return tuple(network for each in shipped_profiles(profile) for network in networks_of(each))


def networks_of(profile: Profile) -> Iterator[MeasuredNetwork]:
    """Yield the networks that the rows behind a profile are of, in order of appearance.

    Raises
    ------
    CostError
        As for `rows_behind`; a time that is left empty is a mistake as well.
    """
    rows = rows_behind(profile, complete=True)
    for name in dict.fromkeys(row.network for row in rows):
        yield MeasuredNetwork(name, profile.name, tuple(r for r in rows if r.network == name))


def recognise(
    graph: OperatorGraph, networks: Sequence[MeasuredNetwork]
) -> RecognisedNetwork | None:
    """Return the network whose operators are the graph's, signature by signature in order."""
    subjects = [
        (key_of(part), signature_of(part, graph))
        for operator in graph.operators
        for single in operator.singles
        for part in (single, *single.folded)  # in the order in which they ran
    ]
    for network in networks:
        rows_of = _match_rows(subjects, network.rows)
        if rows_of is not None:
            return RecognisedNetwork(network, rows_of)
    return None


def _match_rows(
    subjects: Sequence[tuple[Key, Signature]], rows: Sequence[Row]
) -> dict[Key, tuple[Row, ...]] | None:
    """Match in order; a row that only changes a shape goes with a neighbour in its block."""
    rows_of: dict[Key, tuple[Row, ...]] = {}
    waiting: tuple[Row, ...] = ()
    last: Key | None = None
    queue = deque(rows)
    for name, signature in subjects:
        while queue and queue[0].signature != signature and queue[0].signature.type in _FREE:
            row = queue.popleft()
            if last and rows_of[last][-1].block == row.block:
                rows_of[last] += (row,)
            else:
                waiting += (row,)
        if queue and queue[0].signature == signature:
            rows_of[name], waiting, last = (*waiting, queue.popleft()), (), name
        elif signature.type in _FREE:
            rows_of[name] = ()
        else:
            return None
    return None if queue or waiting else rows_of


def costs_as_run(
    costs: CostTable, graph: OperatorGraph, platform: Platform, recognised: RecognisedNetwork
) -> CostTable:
    """Return the cost table with the time of each operator's own row.

    Parameters
    ----------
    costs
        Of the same graph in the view `as-measured`. Processors that were not measured keep their
        prices.
    """
    entries = []
    for operator, row in zip(graph.operators, costs.entries, strict=True):
        subjects = [subject_of(part, graph) for part in parts_of(operator)]
        entries.append(
            tuple(
                entry
                if isinstance(entry, Refusal)
                else replace(
                    entry,
                    parts=tuple(
                        _as_run_part(part, recognised, subject, processor)
                        for part, subject in zip(entry.parts, subjects, strict=True)
                    ),
                )
                for processor, entry in zip(platform.processors, row, strict=True)
            )
        )
    return replace(costs, entries=tuple(entries))


def _as_run_part(
    part: PartCost, recognised: RecognisedNetwork, subject: Subject, processor: Processor
) -> PartCost:
    rows = recognised.rows_of[key_of(subject.operator)]
    if any(processor.name not in row.times_s for row in rows):
        return part
    network = recognised.network
    time = named_value("as it ran", sum(row.times_s[processor.name] for row in rows), "s")
    factors = {row.factors[processor.name] for row in rows if processor.name in row.factors}
    scaled = f", scaled by {', '.join(f'{each:g}' for each in sorted(factors))}" if factors else ""
    return replace(
        part,
        provenance="fitted" if scaled else "measured",
        source=f"profile {network.profile}, {network.name} as it ran{scaled}",
        time=time,
        power=processor.dynamic_power(subject.operator_class),
        free_view=not rows,
        extrapolated=False,
        noisy_spread=None,
        spread=ONCE.moved(OTHER_STATE) if scaled else ONCE,
    )


def costs_as_run_elsewhere(
    costs: CostTable, default: CostTable, as_run: CostTable, wholes: Sequence[int]
) -> CostTable:
    """Return costs at other operating points or divisions, changed as `costs_as_run` changed them.

    Parameters
    ----------
    costs
        At these operating points, with clusters divided like this.
    default, as_run
        At the default points, undivided: before `costs_as_run`, and after.
    wholes
        Of each processor of `costs`: its column in `default`, for a part that of its cluster.
    """
    rows = zip(costs.entries, default.entries, as_run.entries, strict=True)
    entries = (
        tuple(_in_proportion(here[p], before[w], after[w]) for p, w in enumerate(wholes))
        for here, before, after in rows
    )
    return replace(costs, entries=tuple(entries))


def _in_proportion(
    here: OperatorCost | Refusal, default: OperatorCost | Refusal, as_run: OperatorCost | Refusal
) -> OperatorCost | Refusal:
    if isinstance(here, Refusal) or isinstance(default, Refusal) or isinstance(as_run, Refusal):
        return here
    parts = (
        replace(part, time=part.time * named_value("as it ran", after.time_s / before.time_s))
        if before.time_s
        else replace(part, time=after.time, power=after.power)
        for part, before, after in zip(here.parts, default.parts, as_run.parts, strict=True)
    )
    return replace(here, parts=tuple(parts))
