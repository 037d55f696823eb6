"""`python -m benchmarks.mapping_quality`: how much shorter the optimum is than heuristic schedules.

For a network on all processors of a platform, as one stage, with C_m the makespan of mapper m:

    improvement of `fine` over m = 1 − C_fine / C_m, in per cent, and
    improvement over the better of HEFT and CPOP = 1 − C_fine / min(C_HEFT, C_CPOP).

Once for the network as a whole, one mapping problem; and once for each of its subgraphs with
parallel branches alone, as the paper's mapper sees them, of which the mean and the most are told.
A makespan of `fine` that is not proven comes with its gap: the true optimum improves more, by the
gap at most. For platforms whose links state a synchronisation overhead, the same without it.

Watched because the Para-Pipe paper reports 10.9 % and 15.5 % over the better of HEFT and CPOP for
its fine-grained plans, and because `fine` is worth its time only where it is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter

import click

import parapipe
from benchmarks.machine import description, load
from benchmarks.mapping_quality_report import FrontRow, QualityRow, write_report
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, partition
from parapipe.platform.platform import Platform
from parapipe.solvers.problem import Flow, MappingProblem, Series
from parapipe.solvers.registry import mapper
from parapipe.solvers.schedule import Schedule

RESULTS = Path(__file__).parent / "results"
PLATFORMS = ("amlogic-a311d", "bst-a1000")
PAPER = ("googlenet", "inception-v3", "inception-v4", "inception-resnet-v2", "petr", "bevformer")
BESIDE = ("squeezenet", "resnet-50", "densenet-121", "unet", "yolo-pan", "vit-b16", "bert-base")
QUICK = ("squeezenet",)
HEURISTICS = ("heft", "cpop")
OTHERS = (*HEURISTICS, "peft", "layer_switched", "coarse", "auto")
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Network:
    """A model priced on a platform, each of its pieces a mapping problem."""

    graph: OperatorGraph
    parts: Partition
    costs: CostTable

    def whole(self) -> MappingProblem:
        """Return all operators as one problem."""
        structure = tuple(step for unit in self.parts.units for step in unit.structure)
        return self._problem(self.parts.order, structure)

    def parallel(self) -> Iterator[MappingProblem]:
        """Yield the subgraphs with parallel branches; what they read is at home on processor 0."""
        for subgraph in self.parts.subgraphs:
            if subgraph.parallelism > 1:
                structure = tuple(step for unit in subgraph.units for step in unit.structure)
                yield self._problem(subgraph.operators, structure)

    def _problem(self, operators: Sequence[int], structure: Series) -> MappingProblem:
        local = {v: i for i, v in enumerate(operators)}
        count = range(len(self.costs.processors))
        rows = tuple(tuple(self.costs.time_s(v, p) for p in count) for v in operators)
        flows = tuple(self._flows(operators, local))
        return MappingProblem(rows, flows, renamed(structure, local))

    def _flows(self, operators: Sequence[int], local: Mapping[int, int]) -> Iterator[Flow]:
        read = (name for v in operators for name in self.graph.reads(self.graph.operators[v]))
        for name in dict.fromkeys(read):
            producer = self.graph.producer.get(name)
            if producer is None:
                continue  # a graph input: available everywhere once loaded
            readers = tuple(sorted(local[v] for v in self.graph.consumers[name] if v in local))
            home = None if producer in local else 0
            yield Flow(local.get(producer), readers, self.costs.transfer_matrix(name), home)


def renamed(series: Series, local: Mapping[int, int]) -> Series:
    """Return a series with the numbers that its operators have in a problem."""
    return tuple(
        local[step] if isinstance(step, int) else tuple(renamed(each, local) for each in step)
        for step in series
    )


def quality(model: str, platform: Platform, variant: str, *, time_limit_s: float) -> QualityRow:
    """Map a network, and its parallel subgraphs, by every mapper."""
    graph = parapipe.load_model(f"zoo:{model}")
    network = Network(graph, partition(graph), build_cost_table(graph, platform))
    makespan_s: dict[str, float] = {}
    whole = network.whole()
    for name in OTHERS:
        makespan_s[name] = mapper(name)(whole, time_limit_s=time_limit_s, seed=0).makespan_s
    began_s = perf_counter()
    exact = mapper("fine")(whole, time_limit_s=time_limit_s, seed=0)
    wall_s = perf_counter() - began_s
    makespan_s["fine"] = exact.makespan_s
    shares = [improvement(each, time_limit_s) for each in network.parallel()]
    return QualityRow(
        model=model,
        platform=variant,
        operators=whole.operators,
        makespan_s=makespan_s,
        fine_s=wall_s,
        fine_gap=exact.certificate.gap,
        fine_proven=exact.certificate.proven,
        busiest_share=_busiest_s(whole, exact) / exact.makespan_s,
        subgraphs=len(shares),
        mean_share=mean(shares) if shares else 0.0,
        most_share=max(shares, default=0.0),
    )


def _busiest_s(problem: MappingProblem, schedule: Schedule) -> float:
    loads_s = [0.0] * problem.processors
    for row, p in zip(problem.time_s, schedule.processor, strict=True):
        loads_s[p] += row[p]
    return max(loads_s)


def improvement(problem: MappingProblem, time_limit_s: float) -> float:
    """Return by which share the optimum of a subgraph is below the better of HEFT and CPOP."""
    found = [
        mapper(name)(problem, time_limit_s=time_limit_s, seed=0).makespan_s
        for name in (*HEURISTICS, "fine")
    ]
    return 1 - found[-1] / min(found[:-1])


def variants(name: str) -> Iterator[tuple[str, Platform]]:
    """Yield a platform, and if hand-overs have an overhead there, the same without it."""
    platform = parapipe.load_platform(name)
    yield name, platform
    if any(link.synchronisation and link.synchronisation.overhead_s for link in platform.links):
        fresh = parapipe.load_platform(
            name
        )  # a used one keeps what it has reckoned, and so do copies
        links = tuple(link.model_copy(update={"synchronisation": None}) for link in fresh.links)
        yield f"{name}, no overhead", fresh.model_copy(update={"links": links})


def front(model: str, platform: str) -> FrontRow:
    """Find all stages with `fine`, and count what is proven of them; nothing is cached."""
    began_s = perf_counter()
    found = parapipe.map(
        f"zoo:{model}", platform, mapper="fine", interleave="none", cache=False, jobs=1
    )
    wall_s = perf_counter() - began_s
    certificates = [schedule.certificate for schedule in found.exploration.schedules.values()]
    return FrontRow(
        model=model,
        platform=platform,
        problems=len(certificates),
        proven=sum(each.proven for each in certificates),
        largest_gap=max(each.gap for each in certificates),
        wall_s=wall_s,
    )


@click.command()
@click.option("--quick", is_flag=True, help="A small model, to see that it runs.")
@click.option("--time-limit", default=LIMIT_S, show_default=True, help="Seconds for one solve.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of mapping_quality.csv and .md; none when quick.  [default: benchmarks/results]",
)
def main(quick: bool, time_limit: float, out: Path | None) -> None:
    """Compare the optimum with what heuristics find."""
    machine = description()
    models = [
        name for name in (QUICK if quick else (*PAPER, *BESIDE)) if name in parapipe.zoo_names()
    ]
    platforms = PLATFORMS[:1] if quick else PLATFORMS
    folder = out or (None if quick else RESULTS)
    fronts = [front("squeezenet" if quick else "googlenet", each) for each in platforms]
    rows: list[QualityRow] = []
    for model in models:
        for name in platforms:
            for variant, platform in variants(name):
                rows.append(quality(model, platform, variant, time_limit_s=time_limit))
                click.echo(rows[-1].told, err=True)
                if folder:
                    machine["load when ended"] = load()
                    write_report(rows, fronts, machine, folder)


if __name__ == "__main__":
    main()
