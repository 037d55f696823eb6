"""The evaluation of the Para-Pipe paper, made again: python benchmarks/paper.py.

Six networks on two platforms by every method of the paper, the estimator against runs of the board,
sets of processors, energy, and the time to solve; `benchmarks/paper_runs.py` has the mathematics.
It writes docs/paper.md with its pictures and benchmarks/results/paper*.csv, and ends with where the
published figures are met. On two quiet cores that takes a quarter of an hour; subgraphs that were
solved before, with the same time limit, come from the user's cache.

Why this exists: so that no number of that page is typed by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter

import click

if not __package__:  # run as a file: its neighbours are found from the repository
    sys.path.insert(0, str(Path(__file__).parents[1]))

import parapipe
from benchmarks import (
    accuracy,
    granularity,
    paper_a1000_page,
    paper_figures,
    paper_page,
    paper_verdicts,
)
from benchmarks import paper_published as published
from benchmarks.machine import description, load
from benchmarks.paper_a1000 import BUDGET_S, Beyond, Limits, beyond, rows_and_limits
from benchmarks.paper_a1000 import Row as StatedRow
from benchmarks.paper_runs import (
    LIMIT_S,
    METHODS,
    Overtaken,
    Row,
    SetRow,
    Solving,
    front,
    gains,
    overtaken,
    rows,
    set_rows,
    solving,
)
from benchmarks.paper_verdicts import Verdict
from benchmarks.tables import markdown_table, write_csv
from parapipe import ParetoFront
from parapipe.documents.comparison import Errors, Pair
from parapipe.files.atomic import write_atomically

PAGE = Path(__file__).parents[1] / "docs/paper.md"
TEXT = Path(__file__).parent / "paper.txt"
RESULTS = Path(__file__).parent / "results"
BOARD, OTHER = PLATFORMS = ("amlogic-a311d-2024", "bst-a1000")
CONVOLUTIONAL = ("googlenet", "inception-v3", "inception-v4", "inception-resnet-v2")
GRANULAR = [*((model, "big+little") for model in CONVOLUTIONAL), ("googlenet", "big+gpu")]
SHOWN = ("googlenet", "inception-v3")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the page tells.

    Parameters
    ----------
    fronts
        By platform and network.
    counted
        Operators, subgraphs and parallelism by network.
    errors, plain
        Of the estimator, by metric; of adding up blocks as they were metered.
    granular
        Coarse and fine by network and processors.
    stated, limits, beyond
        Of the A1000: the networks of its stated times, and what the paper does not have.
    """

    fronts: Mapping[tuple[str, str], ParetoFront]
    methods: Sequence[Row]
    heuristics: Sequence[Overtaken]
    solving: Sequence[Solving]
    sets: Sequence[SetRow]
    counted: Mapping[str, published.Network]
    errors: Mapping[str, Errors]
    plain: Mapping[str, Errors]
    granular: Mapping[tuple[str, str], granularity.Row]
    stated: Sequence[StatedRow]
    limits: Sequence[Limits]
    beyond: Sequence[Beyond]


def gather() -> Evidence:
    """Map, measure and compare."""
    fronts: dict[tuple[str, str], ParetoFront] = {}
    methods: list[Row] = []
    heuristics: list[Overtaken] = []
    for platform in PLATFORMS:
        for model in published.NETWORKS:
            with _told(f"{model} on {platform}"):
                found = fronts[platform, model] = front(model, platform)
                own = rows(found, model, platform)
                methods += own
                heuristics.append(overtaken(found, {row.method: row for row in own}))
    sets: list[SetRow] = []
    for model in CONVOLUTIONAL:
        with _told(f"{model} on sets of processors"):
            sets += set_rows(model, BOARD, fronts[BOARD, model])
    with _told("errors of the estimator"):
        errors, plain = (_errors(each) for each in (accuracy.held_out(), accuracy.plain()))
    with _told("coarse and fine"):
        granular = {
            (model, processors): granularity.rows(f"zoo:{model}", [processors.split("+")])[0]
            for model, processors in GRANULAR
        }
    stated: list[StatedRow] = []
    limits: list[Limits] = []
    further: list[Beyond] = []
    for network, model in published.A1000_NETWORKS.items():
        with _told(f"{network} with the A1000's stated times"):
            made, limit = rows_and_limits(network)
            stated += made
            limits.append(limit)
        if model in CONVOLUTIONAL:
            with _told(f"{model} beyond the paper"):
                further += beyond(model)
    return Evidence(
        fronts,
        methods,
        heuristics,
        [solving(found, model, platform) for (platform, model), found in fronts.items()],
        sets,
        {model: paper_page.counts(model) for model in published.NETWORKS},
        errors,
        plain,
        granular,
        stated,
        limits,
        further,
    )


def _errors(pairs: Sequence[Pair]) -> dict[str, Errors]:
    return {
        metric: each for (metric, model), each in accuracy.pooled(pairs).items() if model is None
    }


@contextmanager
def _told(what: str) -> Iterator[None]:
    began_s = perf_counter()
    yield
    click.echo(f"{what}: {perf_counter() - began_s:.1f} s", err=True)


def verdicts(of: Evidence) -> list[Verdict]:
    """Judge every published figure."""
    return [
        *paper_verdicts.of_networks(of.counted),
        *paper_verdicts.of_estimator(of.errors, of.plain),
        *paper_verdicts.of_solving(of.solving),
        *paper_verdicts.of_heuristics([row for row in of.heuristics if row.platform == BOARD]),
        *paper_verdicts.of_granularity(of.granular),
        *paper_verdicts.of_sets(gains(of.sets), _alone(of)),
        *paper_a1000_page.verdicts(of.stated, of.limits),
    ]


def page(of: Evidence, machine: Mapping[str, str]) -> str:
    """Return docs/paper.md: the text beside this file with its tables."""
    judged = verdicts(of)
    gain = published.GAINS["big+little"]
    assert gain.latency is not None
    return TEXT.read_text(encoding="utf-8").format(
        machine=markdown_table(["", ""], list(machine.items())),
        counts=paper_verdicts.counts(judged),
        equal=f"{100 * paper_verdicts.EQUAL:.0f} %",
        equal_counts=paper_verdicts.EQUAL_OPERATORS,
        verdicts=paper_verdicts.table(judged),
        networks=paper_page.networks_table(of.counted),
        petr_largest=paper_page.largest_subgraph("petr"),
        petr_paper=published.PETR_LARGEST,
        platforms=paper_page.platforms_table(PLATFORMS, _coverage(of)),
        runs=of.errors["latency"].runs,
        estimator=paper_page.estimator_table(of.errors),
        methods_a311d=paper_page.methods_table(of.methods, BOARD),
        methods_a1000=paper_page.methods_table(of.methods, OTHER),
        method_means=paper_page.method_means(of.methods),
        heuristics=paper_page.heuristics_table(of.heuristics),
        granularity=paper_page.granularity_table(of.granular),
        one_stage_paper=paper_page.percent(gain.throughput),
        one_stage_implied=paper_page.percent(1 / (1 + gain.latency) - 1),
        sets=paper_page.sets_table(gains(of.sets)),
        solving=paper_page.solving_table(of.solving),
        limit_s=f"{LIMIT_S:.0f}",
        a1000_largest=paper_a1000_page.largest(of.limits, "bev_conv"),
        zoo_over_heft=paper_page.percent(
            mean(row.latency for row in of.heuristics if row.platform == OTHER)
        ),
        stated_over_heft=paper_a1000_page.over_heuristics(of.stated),
        budget_s=f"{BUDGET_S:.0f}",
        a1000_networks=paper_a1000_page.networks_table(of.limits),
        a1000_methods=paper_a1000_page.methods_table(of.stated),
        a1000_ratios=paper_a1000_page.ratios_table(of.stated),
        a1000_limits=paper_a1000_page.heuristics_table(of.stated, of.limits),
        a1000_stages=paper_a1000_page.stages_table(of.stated),
        a1000_solving=paper_a1000_page.solving_table(of.limits),
        a1000_beyond=paper_a1000_page.beyond_table(of.beyond),
    )


def _coverage(of: Evidence) -> dict[str, dict[str, float]]:
    return {
        platform: {
            kind: mean(
                share.operators if (share := getattr(found.document.coverage, kind)) else 0.0
                for (where, _), found in of.fronts.items()
                if where == platform
            )
            for kind in ("measured", "stated", "fitted", "nominal")
        }
        for platform in PLATFORMS
    }


def _alone(of: Evidence) -> dict[str, float]:
    """Return by which share a processor alone has more frames per joule than big alone: means."""
    return {
        name: mean(
            found[f"{name}-alone"].frames_per_joule / found["big-alone"].frames_per_joule - 1
            for found in (of.fronts[BOARD, model] for model in CONVOLUTIONAL)
        )
        for name in ("little", "gpu")
    }


def _busy(of: Evidence) -> dict[str, dict[str, dict[str, float]]]:
    """Return mean busy shares by platform, method and processor."""
    return {
        platform: {
            method: {each.name: mean(row.busy.get(each.name, 0.0) for row in own) for each in chips}
            for method in METHODS
            if (own := [r for r in of.methods if (r.platform, r.method) == (platform, method)])
        }
        for platform in PLATFORMS
        for chips in [parapipe.load_platform(platform).processors]
    }


def draw(of: Evidence) -> None:
    """Write the page's pictures."""
    googlenet = of.fronts[BOARD, "googlenet"]
    paper_figures.subgraph_times(googlenet)
    paper_figures.schedules(googlenet, ("para-only", "hybrid-T"))
    paper_figures.predicted(accuracy.held_out())
    for platform in PLATFORMS:
        paper_figures.methods(of.methods, platform)
    paper_figures.energies({model: of.fronts[BOARD, model] for model in CONVOLUTIONAL})
    for model in SHOWN:
        paper_figures.write(f"front-{model}", of.fronts[BOARD, model].plot())
    paper_figures.sets(gains(of.sets))
    paper_figures.busy(_busy(of))
    paper_figures.solve_times(of.solving)


def write_results(of: Evidence) -> None:
    """Write the numbers behind the page."""
    records = [asdict(row) for row in of.methods]
    for record in records:
        record.update({f"busy_{name}": share for name, share in record.pop("busy").items()})
    write_csv(records, RESULTS / "paper.csv")
    write_csv([asdict(row) for row in of.sets], RESULTS / "paper_sets.csv")
    write_csv([asdict(row) for row in of.solving], RESULTS / "paper_solving.csv")
    write_csv([asdict(row) for row in of.stated], RESULTS / "paper_a1000.csv")


def _cached(of: Evidence) -> str:
    explorations = [found.exploration for found in of.fronts.values()]
    known = sum(len(each.cached) for each in explorations)
    return f"{known} of {sum(len(each.schedules) for each in explorations)}"


@click.command()
def main() -> None:
    """Make the paper's evaluation again, and say where its figures are met."""
    began_s, machine = perf_counter(), description()
    found = gather()
    draw(found)
    write_results(found)
    machine["load when ended"] = load()
    machine["problems solved by earlier runs"] = _cached(found)
    machine["minutes"] = f"{(perf_counter() - began_s) / 60:.1f}"
    write_atomically(PAGE, page(found, machine).encode())
    judged = verdicts(found)
    for each in judged:
        click.echo(f"{each.judgement:11} {each.what}: {each.ours} (the paper {each.paper})")
        click.echo(f"{'':11} {each.reason}")
    click.echo(paper_verdicts.counts(judged))


if __name__ == "__main__":
    main()
