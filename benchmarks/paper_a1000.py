"""The half of the paper's evaluation that is on the A1000, with its maker's times.

Networks, times and hand-overs are those of `benchmarks/stated_a1000.py`, of which the times of an
author of the paper are the whole source. Methods are those of `benchmarks/paper_runs.py`:
Layer-switched, HEFT and CPOP map a network as one problem; the others are named configurations of
stages. With C the latency of the better of HEFT and CPOP and B a proven bound of what the network
takes on all processors, no plan of one stage has a latency below

    1 − B / C

less than C. Where the paper's gain is above that, HEFT or CPOP were not these there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import mean

import parapipe
from benchmarks.mapping_quality import Network, renamed
from benchmarks.paper_published import Ratio
from benchmarks.stated_a1000 import PLATFORM, RULES, Rule, network_of, stated_networks
from parapipe.graph.partition import Subgraph
from parapipe.mappings.configuration import Configuration
from parapipe.search.configurations_from_costs import explore
from parapipe.search.option_types import Interleaving, Splitting
from parapipe.search.options import MapOptions
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.registry import mapper

LIMIT_S = 10.0
BUDGET_S = 60.0
METHODS = (
    "Layer-switched", "HEFT", "CPOP", "pipe-only", "para-only", "hybrid-L", "hybrid-T",
)  # fmt: skip
_ALONE = {"Layer-switched": "layer_switched", "HEFT": "heft", "CPOP": "cpop"}


@dataclass(frozen=True, slots=True)
class Row:
    """What a method makes of a network.

    Parameters
    ----------
    stages
        As in Table II: processors and subgraphs, counted from 1; empty of a network that was mapped
        as one problem.
    """

    network: str
    rule: Rule
    method: str
    stages: str
    latency_s: float
    period_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a network's plans by the source's own rule, and how long it took to solve.

    Parameters
    ----------
    largest
        Operators of the largest subgraph.
    bound_s
        What no plan of one stage is below.
    solved_s, longest_s
        Seconds in solvers, of all problems one by one, and of the longest.
    problems, proven
        How many there were, and how many were solved with proof.
    """

    network: str
    operators: int
    subgraphs: int
    parallelism: int
    largest: int
    bound_s: float
    solved_s: float
    longest_s: float
    problems: int
    proven: int

    @property
    def all_proven(self) -> bool:
        """Whether no stages can be shorter: all cuts into stages are compared in any case."""
        return self.proven == self.problems


def rows_and_limits(name: str) -> tuple[list[Row], Limits]:
    """Map a network of the source by every method and every rule."""
    rows, limits = methods(name, RULES[0])
    for rule in RULES[1:]:
        rows += methods(name, rule)[0]
    return rows, limits


def methods(name: str, rule: Rule) -> tuple[list[Row], Limits]:
    """Map a network of the source by every method of the paper."""
    network = network_of(stated_networks()[name], rule)
    whole = network.whole()
    rows = []
    for method, solver in _ALONE.items():
        made = mapper(solver)(whole, time_limit_s=LIMIT_S, seed=0)
        rows.append(Row(name, rule, method, "", made.makespan_s, made.makespan_s))
    options = MapOptions(objectives="latency-throughput", interleave="none", time_limit_s=LIMIT_S)
    found = explore(network.graph, network.parts, network.costs, options)
    named = {label: each for each in found.found for label in each.names}
    rows += [
        Row(
            name, rule, method, stages_text(network, each), each.evaluated.latency_s,
            each.period_s,
        )
        for method in METHODS
        if (each := named.get(method))
    ]  # fmt: skip
    certificates = [each.certificate for each in found.schedules.values()]
    return rows, Limits(
        name,
        len(network.graph.operators),
        len(network.parts.subgraphs),
        max(each.parallelism for each in network.parts.subgraphs),
        max(len(each.operators) for each in network.parts.subgraphs),
        mapper("fine")(whole, time_limit_s=LIMIT_S, seed=0).certificate.bound_s,
        sum(each.wall_s for each in certificates),
        max(each.wall_s for each in certificates),
        len(certificates),
        sum(each.proven for each in certificates),
    )


@dataclass(frozen=True, slots=True)
class Beyond:
    """The least latency and period of the zoo's network on the shipped platform, one way.

    Parameters
    ----------
    way
        A name of `WAYS`.
    """

    network: str
    way: str
    latency_s: float
    period_s: float


WAYS: Mapping[str, tuple[str, Interleaving, Splitting]] = {
    "stages": (PLATFORM, "none", "none"),
    "interleaved": (PLATFORM, "auto", "none"),
    "split": (PLATFORM, "auto", "auto"),
    "four DSPs": (f"{PLATFORM}-4dsp", "none", "none"),
    "four DSPs, interleaved": (f"{PLATFORM}-4dsp", "auto", "none"),
}
"""Ways to map: platform, `interleave` and `split`."""
UNSPLIT = frozenset({"inception-resnet-v2"})
"""Models whose operators are not split here: that takes a quarter of an hour."""


def beyond(model: str) -> Iterator[Beyond]:
    """Map a network of the zoo in ways that the paper does not have."""
    for way, (platform, interleave, split) in WAYS.items():
        if split == "auto" and model in UNSPLIT:
            continue
        found = parapipe.map(
            f"zoo:{model}",
            platform,
            objectives="latency-throughput",
            time_limit_s=LIMIT_S,
            budget_s=BUDGET_S,
            note=lambda _: None,
            interleave=interleave,
            split=split,
        ).document.configurations
        yield Beyond(
            model,
            way,
            min(each.latency_s for each in found),
            min(each.period_s for each in found),
        )


def stages_text(network: Network, each: Configuration) -> str:
    """Write stages as Table II does: `npu [1–10] │ dsp0+dsp1 [11]`, subgraphs counted from 1.

    A subgraph that is cut stands in both stages.
    """
    subgraph = {
        v: number for number, part in enumerate(network.parts.subgraphs, 1) for v in part.operators
    }
    texts = []
    for stage in each.mapping.stages:
        its = sorted(subgraph[placement.operator] for placement in stage.placements)
        names = "+".join(network.costs.processors[p] for p in stage.processors)
        texts.append(f"{names} {_range_text(its[0], its[-1])}")
    return " │ ".join(texts)


def priced(name: str, rule: Rule, stages: Sequence[tuple[Sequence[str], int]]) -> Row | None:
    """Return what a plan of Table II takes here, each stage as short as it is found to be.

    None if its processors lack the time of an operator.

    Parameters
    ----------
    stages
        Processors, and the last subgraph, counted from 1.
    """
    network = network_of(stated_networks()[name], rule)
    subgraphs = network.parts.subgraphs
    home: dict[int, int] = {}
    times_s, first = [], 0
    for processors, last in stages:
        allowed = [network.costs.processors.index(each) for each in processors]
        part = subgraphs[first:last]
        operators = [v for each in part for v in each.operators]
        if any(all(network.costs.time_s(v, p) == inf for p in allowed) for v in operators):
            return None
        problem = _restricted(network, part, allowed, home)
        made = mapper("fine")(problem, time_limit_s=LIMIT_S, seed=0)
        home.update(zip(operators, made.processor, strict=True))
        times_s.append(made.makespan_s)
        first = last
    return Row(name, rule, "the paper's", stages_line(stages), sum(times_s), max(times_s))


def _restricted(
    network: Network, part: Sequence[Subgraph], allowed: Sequence[int], home: Mapping[int, int]
) -> MappingProblem:
    """Return a problem of some subgraphs on some processors, what is made before being at home."""
    graph, costs = network.graph, network.costs
    operators = [v for each in part for v in each.operators]
    local = {v: i for i, v in enumerate(operators)}
    rows = tuple(
        tuple(costs.time_s(v, p) if p in allowed else inf for p in range(len(costs.processors)))
        for v in operators
    )
    flows = []
    for name in dict.fromkeys(t for v in operators for t in graph.reads(graph.operators[v])):
        producer = graph.producer.get(name)
        if producer is not None:
            readers = tuple(sorted(local[v] for v in graph.consumers[name] if v in local))
            at = None if producer in local else home[producer]
            flows.append(Flow(local.get(producer), readers, costs.transfer_matrix(name), at))
    structure = tuple(step for each in part for unit in each.units for step in unit.structure)
    return MappingProblem(rows, tuple(flows), renamed(structure, local))


def change(rows: Sequence[Row], of: Ratio) -> float | None:
    """Return what a published change is here: its network's, or the mean of those that have both.

    Parameters
    ----------
    rows
        Of one rule.
    """
    changes = changes_by_network(rows, of)
    if of.network:
        return changes.get(of.network)
    return mean(changes.values()) if changes else None


def changes_by_network(rows: Sequence[Row], of: Ratio) -> dict[str, float]:
    """Return by which share a method changes a figure against its base, by network."""

    def figure_of(row: Row) -> float:
        return row.latency_s if of.figure == "latency" else row.period_s

    changes = {}
    for network in dict.fromkeys(row.network for row in rows):
        own = {row.method: figure_of(row) for row in rows if row.network == network}
        bases = [own[base] for base in of.base.split(" & ") if base in own]
        if of.method in own and bases:
            ratio = own[of.method] / min(bases)
            changes[network] = (ratio if of.figure == "latency" else 1 / ratio) - 1
    return changes


def stages_line(stages: Sequence[tuple[Sequence[str], int]]) -> str:
    """Write stages given by processors and last subgraph as `stages_text` does."""
    begins = [1, *(last + 1 for _, last in stages[:-1])]
    return " │ ".join(
        f"{'+'.join(processors)} {_range_text(first, last)}"
        for first, (processors, last) in zip(begins, stages, strict=True)
    )


def _range_text(first: int, last: int) -> str:
    return f"[{first}–{last}]" if first < last else f"[{last}]"
