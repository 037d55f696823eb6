"""`python -m benchmarks.wide_subgraphs`: what `fine` proves of 169 operators, 16 wide.

The problem is that of `mapping_time`, of the size of the largest subgraph of the paper's PETR
network, for which the paper's integer programme took hours: 3^169 placements on an NPU and two
identical DSPs. Seeded families of `instances`: layers of a decoder, ten seeds; and, harder than any
network at hand, series side by side and layers without any regularity, three seeds each.

Watched because width is what makes proofs hard: with so many operators ready at a time the loads of
the processors bound the makespan rather than paths, and an optimum must be packed to the
microsecond. One call for each instance with a limit of 60 s; a gap is the bound's, not the truth's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

import click

from benchmarks.instances import decoder_like, irregular, parallel_series
from benchmarks.machine import description, load
from benchmarks.mapping_registry import Instance
from benchmarks.mapping_time import warm_up
from benchmarks.tables import markdown_table, write_csv
from parapipe.solvers.fine.mapper import map as fine

RESULTS = Path(__file__).parent / "results"
LIMIT_S = 60.0
OPERATORS, WIDTH = 169, 16
SEEDS = {decoder_like: 10, parallel_series: 3, irregular: 3}
HEAD = ("instance", "wall_s", "makespan_s", "bound_s", "gap", "proven")


def wide_instances() -> Iterator[Instance]:
    """Yield every family's seeds."""
    for family, seeds in SEEDS.items():
        for seed in range(seeds):
            name = f"{family.__name__.replace('_', '-')} seed {seed}"
            yield Instance(name, partial(family, OPERATORS, WIDTH, seed=seed))


def measured(instance: Instance, time_limit_s: float) -> dict[str, object]:
    """Solve an instance once."""
    problem = instance.build()
    began_s = perf_counter()
    schedule = fine(problem, time_limit_s=time_limit_s, seed=0)
    wall_s = perf_counter() - began_s
    claim = schedule.certificate
    figures = (wall_s, claim.objective_s, claim.bound_s, claim.gap, claim.proven)
    return dict(zip(HEAD, (instance.name, *figures), strict=True))


@click.command()
@click.option("--time-limit", default=LIMIT_S, show_default=True, help="Seconds for one solve.")
@click.option("--only", default="", help="Instances whose name holds this text.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    help="Folder of wide_subgraphs.csv and .md.  [default: benchmarks/results]",
)
def main(*, time_limit: float, only: str, out: Path) -> None:
    """Measure what `fine` proves of wide subgraphs."""
    machine = description()
    warm_up()
    chosen = [instance for instance in wide_instances() if only in instance.name]
    if not chosen:
        raise click.UsageError(f"no instance has '{only}' in its name")
    records = [measured(instance, time_limit) for instance in chosen]
    machine["load when ended"] = load()
    cells = [[_cell(record[name]) for name in HEAD] for record in records]
    parts = [
        f"# {OPERATORS} operators, {WIDTH} wide, on an NPU and two DSPs",
        f"What is measured and how: `benchmarks/wide_subgraphs.py`. Limit {time_limit:g} s.",
        markdown_table(("", ""), list(machine.items())),
        markdown_table(HEAD, cells),
    ]
    write_csv(records, out / "wide_subgraphs.csv")
    (out / "wide_subgraphs.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
