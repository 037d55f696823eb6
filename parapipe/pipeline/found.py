"""From candidates of searches, each with a cost table, to configurations worth showing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.choices import Choice
from parapipe.pipeline.choose import choose
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.configure import configure
from parapipe.pipeline.runs import Runs
from parapipe.pipeline.search import Candidate


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that is worth showing.

    Parameters
    ----------
    names
        Names it carries ("hybrid-L", ...), in a fixed order; may be empty.
    pareto
        Whether it is on the front of latency, throughput and energy.
    pareto_latency_throughput
        Whether it is on the paper's front, of latency and throughput alone.
    table
        Which cost table it was found with: 0 is the first.
    """

    configuration: Configuration
    names: tuple[str, ...]
    pareto: bool
    pareto_latency_throughput: bool
    table: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A cost table and its number."""

    number: int
    costs: CostTable


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search finds with a cost table, and the runs and schedules it is made of."""

    table: Table
    runs: Runs
    choices: Sequence[Choice]
    candidates: Sequence[Candidate]


def spelled_out(
    searched: Sequence[Searched], graph: OperatorGraph, *, energy: bool, resolution: float
) -> tuple[Found, ...]:
    """Return the configurations worth showing, by ascending latency; see `choose`."""
    of = {id(candidate): each for each in searched for candidate in each.candidates}
    candidates = [candidate for each in searched for candidate in each.candidates]
    chosen = choose(
        candidates,
        [candidate for candidate in candidates if of[id(candidate)].table.number == 0],
        searched[0].table.costs.processors,
        energy=energy,
        resolution=resolution,
    )
    return tuple(
        Found(
            configure(
                each.candidate,
                runs=found_in.runs,
                graph=graph,
                costs=found_in.table.costs,
                choices=found_in.choices,
            ),
            each.names,
            each.pareto,
            each.pareto_latency_throughput,
            found_in.table.number,
        )
        for each in chosen
        for found_in in [of[id(each.candidate)]]
    )
