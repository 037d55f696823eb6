"""`python -m benchmarks.compiled_fronts`: fronts with and without a compiler in the loop.

Networks of the zoo are mapped onto the RK3588 in int8, in stages. First by nominal figures: the
plan of the least latency and that of the most throughput are compiled segment by segment, and
evaluated again with the times that their segments take. Then by `map --compiler rknn`, whose plans
take what was compiled. Both are the same measure, published rates by the fit of
docs/compiler-costs.md, so what is compared is the choice of plans, not a board.

Needs rknn-toolkit2, see docs/compilers.md. Writes a table of docs/compiler-costs.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import parapipe
from benchmarks.tables import markdown_table
from parapipe.api.compiled import model_parts
from parapipe.api.front import Configuration
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.files.atomic import write_atomically
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.evaluate import evaluate
from parapipe.plan.segments import segments
from parapipe.platform.fields import Expression
from parapipe.profiling.compiled_rows import RowTimes, operator_times
from parapipe.profiling.compiled_segments import CompilerChoice, ModelParts, compiler_for

MODELS = ("zoo:mobilenet-v2", "zoo:squeezenet", "zoo:googlenet", "zoo:resnet-50", "zoo:yolo-pan")
CHOICE = CompilerChoice("rknn", "int8", 600.0)
STAGES = ("sequential", "pipe-only", "para-only", "hybrid")
PAGE = Path(__file__).parents[1] / "docs" / "compiler-costs.md"
BEGIN = "<!-- begin: benchmarks.compiled_fronts -->\n"
END = "<!-- end: benchmarks.compiled_fronts -->\n"


class Figures(NamedTuple):
    """Latency of the plan of the least, and throughput of that of the most."""

    latency_s: float
    throughput_fps: float


def mapped(model: str, platform: Path, compiler: str | None) -> parapipe.ParetoFront:
    """Return the front of a model."""
    return parapipe.map(
        model, platform, compiler=compiler, precision="int8", interleave="none", draws=0,
        objectives="latency-throughput", time_limit_s=2.0, jobs=1, note=lambda _: None,
    )  # fmt: skip


def best(front: parapipe.ParetoFront) -> tuple[Configuration, Configuration]:
    """Return the configurations of the least latency and of the most throughput."""
    rows = [each for each in front.configurations if each.kind in STAGES]
    return min(rows, key=lambda each: each.latency_s), min(rows, key=lambda each: each.period_s)


def compiled_costs(each: Configuration, parts: ModelParts) -> CostTable:
    """Return the costs of a configuration with the times that its segments take when compiled."""
    graph, platform, costs = each.graph, each.platform, each.costs
    own = build_cost_table(graph, platform, profiles=(), precision="int8")
    number = {operator.id: v for v, operator in enumerate(graph.operators)}
    times_s: dict[tuple[int, int], float] = {}
    for name, runs in segments(each.plan()).items():
        place = platform.names.index(name)
        processor = platform.processors[place]
        if processor.compiler is None:
            continue
        rows = RowTimes.of(own, platform, processor)
        for run in runs:
            operators = [number[v] for v in run.operators]
            segment = compiler_for(processor, CHOICE, own, operators).compile(parts, operators)
            times = operator_times(graph, segment, rows)
            times_s |= {(v, place): times[v].time_s if v in times else 0.0 for v in operators}
    return with_times(costs, times_s)


def with_times(costs: CostTable, times_s: Mapping[tuple[int, int], float]) -> CostTable:
    """Return costs with other seconds of some operators on some processors."""
    entries = [list(row) for row in costs.entries]
    for (v, p), time_s in times_s.items():
        cost = costs.cost(v, p)
        assert cost is not None
        part = replace(cost.parts[0], time=Expression(time_s))
        entries[v][p] = replace(cost, parts=(part,))
    return replace(costs, entries=tuple(map(tuple, entries)))


def when_compiled(front: parapipe.ParetoFront, model: str) -> Figures:
    """Return the figures of a front's best plans with the times of their compiled segments."""
    evaluated = []
    for each in best(front):
        with model_parts(model, each.graph) as parts:
            costs = compiled_costs(each, parts)
        assignment = assignment_of(each.configuration.mapping)
        mapping = mapping_of(each.graph, each.platform, costs, assignment)
        evaluated.append(evaluate(mapping, each.graph, costs))
    return Figures(evaluated[0].latency_s, evaluated[1].throughput_fps)


def row(model: str, folder: Path) -> list[str]:
    """Return the table's row of a model."""
    platform = folder / "rk3588.yaml"
    platform.write_text("schema: parapipe/platform/1\nname: rk3588\nchip: rk3588\n", "utf-8")
    nominal = mapped(model, platform, None)
    latency, throughput = best(nominal)
    predicted = Figures(latency.latency_s, throughput.throughput_fps)
    compiled = when_compiled(nominal, model)
    in_loop = mapped(model, platform, "rknn")
    found = Figures(
        *(f(each) for f, each in zip((_latency, _throughput), best(in_loop), strict=True))
    )
    record = in_loop.document.compilation
    assert record is not None
    pairs = zip(predicted, compiled, found, strict=True)
    cells = [
        text
        for unit, (one, two, three) in zip((1e3, 1.0), pairs, strict=True)
        for text in (f"{one * unit:.2f}", f"{two * unit:.2f}", f"{three * unit:.2f}")
    ]
    return [
        model.removeprefix("zoo:"), *cells,
        f"{record.rounds}", f"{record.segments}", f"{record.largest_difference:.1%}",
    ]  # fmt: skip


def _latency(each: Configuration) -> float:
    return each.latency_s


def _throughput(each: Configuration) -> float:
    return each.throughput_fps


def main(models: Sequence[str]) -> int:
    """Write the table."""
    head = [
        "network", "ms: nominal", "compiled", "in the loop", "frames/s: nominal", "compiled",
        "in the loop", "searches", "segments", "off by at most",
    ]  # fmt: skip
    rows = []
    for model in models or MODELS:
        with TemporaryDirectory() as folder:
            rows.append(row(model, Path(folder)))
        sys.stderr.write(" ".join(rows[-1]) + "\n")
    text = markdown_table(head, rows)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_atomically(PAGE, f"{before}{BEGIN}\n{text}\n{END}{after}".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
