"""Plans of which some stages run on several identical processors in turn."""

from types import SimpleNamespace

from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from tests.cases.plan_cases import Costs, configured, platform_of


def replicated(path, counts):
    """A plan of as many stages as counts: so many processors take turns in each."""
    graph = import_model(path)
    count, stages = len(graph.operators), len(counts)
    total = sum(counts)
    costs = Costs([[1e-3] * total for _ in range(count)], {})
    platform = platform_of(total)
    for processor in platform.processors:
        processor.kind, processor.backend, processor.cores = "cpu", "nominal", ()
        processor.point = SimpleNamespace(frequency_hz=1e9, voltage_v=0.8)
    placed = [
        [(v, stage) for v in range(count) if stages * v // count == stage]
        for stage in range(stages)
    ]
    turns, following = [], stages
    for stage, number in enumerate(counts):
        if number > 1:
            turns.append((stage, *range(following, following + number - 1)))
            following += number - 1
    mapping = configured(graph, costs, placed).with_replicas(turns)
    return build_plan(graph, platform, costs, mapping)
