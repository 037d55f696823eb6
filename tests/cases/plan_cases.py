"""Graphs and valid configurations to make plans of: one drawn by hand, and any number at random."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

from parapipe.cost.price import OperatorCost, PartCost
from parapipe.graph.operator_graph import (
    Constant,
    ModelSource,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.mapping import Edge, Mapping, Placement, Transfer
from parapipe.plan.build import build_plan
from parapipe.platform.fields import named_value

SOURCE = ModelSource("nets/small.onnx", "0" * 64, {"weights.bin": "1" * 64, "a.bin": "2" * 64})


def operator(outputs, inputs, *, kind="Relu", parts=(), folded=(), attributes=None):
    outputs = tuple(outputs.split())
    return Operator(
        id=outputs[0],
        name=f"node/{outputs[0]}",
        domain="",
        type=kind,
        attributes=attributes or {},
        inputs=tuple("" if name == "_" else name for name in inputs.split()),
        outputs=outputs,
        work=Work(0, 0, 0),
        members=tuple(f"node/{part.id}" for part in parts) or (f"node/{outputs[0]}",),
        parts=tuple(parts),
        folded=tuple(folded),
    )


def graph_of(operators, *, inputs, outputs, constants=()):
    names = [*inputs, *(name for o in operators for s in o.singles for name in s.outputs)]
    return OperatorGraph(
        source=SOURCE,
        granularity="fused",
        operators=tuple(operators),
        tensors={name: Tensor(name, (1, 2, 3), "float32") for name in names if name},
        constants={constant.name: constant for constant in constants},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def platform_of(count):
    names = ["big", "little", "gpu", "npu", "dsp"][:count]
    link = SimpleNamespace(time=lambda _size_bytes: named_value("link", 0.25, "s"))
    return SimpleNamespace(
        name="board",
        link_of={(p, q): link for p in range(count) for q in range(count)},
        processors=tuple(
            SimpleNamespace(
                name=name,
                kind="cpu" if i < 2 else name,
                backend=f"backend-{name}",
                compiler=None,
                options={},
                cores=(2 * i, 2 * i + 1) if i < 2 else (),
                stream_of=None,
                point=SimpleNamespace(frequency_hz=1e9 + i, voltage_v=0.8),
            )
            for i, name in enumerate(names)
        ),
    )


class Costs:
    """Seconds as tables: `time_s[v][p]`, and one transfer time for each tensor and pair."""

    def __init__(self, time_s, moved_s, provenance=("measured", "fitted")):
        self.table, self.moved_s, self.provenance = time_s, moved_s, provenance

    processors = ("big", "little", "gpu", "npu", "dsp")
    static_power_w = (0.5,) * 5
    idle_power_w = 0.25
    precision = "model"
    working = (None,) * 5
    memory_system = None
    excluded = ()
    arrival_s = least_frame_s = least_period_s = 0.0
    bandwidth_bytes_per_s = power_budget_w = None
    co_run = None
    graph_launch_s = ()
    power_budget_w = None
    moved_bytes = 0  # by each operator

    def memory_s(self, v, p):
        return 0.0

    def memory_range_s(self):
        return 0.0, 0.0

    def frame_s(self, period_s):
        return max(period_s, self.arrival_s)

    def time_s(self, v, p):
        return self.table[v][p]

    def input_s(self, p):
        return 0.01

    def output_s(self, p):
        return 0.002

    def energy_j(self, v, p):
        return 2.0 * self.table[v][p]

    def transfer_s(self, name, p, q):
        return 0.0 if p == q else self.moved_s.get((name, p, q), 0.25)

    def cost(self, v, p):
        half, power = named_value("time", self.table[v][p] / 2, "s"), named_value("power", 0.0, "W")
        return OperatorCost(
            tuple(PartCost("part", "Relu", name, "", half, power) for name in self.provenance),
            self.moved_bytes,
        )


def configured(graph, costs, stages):
    """Earliest schedule of stages given as lists of (operator, processor), as a mapping."""
    placed, placements = {}, []
    for lag, stage in enumerate(stages):
        free_s = {}
        for v, p in stage:
            start_s = free_s.get(p, 0.0)
            for name in graph.reads(graph.operators[v]):
                if (producer := graph.producer.get(name)) is not None:
                    made = placed[producer]
                    end_s = made.end_s if made.lag == lag else 0.0
                    start_s = max(start_s, end_s + costs.transfer_s(name, made.processor, p))
            free_s[p] = start_s + costs.time_s(v, p)
            placed[v] = Placement(v, p, start_s, free_s[p], lag)
            placements.append(placed[v])
    return mapping_of(graph, costs, placements)


def mapping_of(graph, costs, placements, period_s=None):
    """A mapping of placements, with a transfer wherever a tensor is read elsewhere."""
    placed = {each.operator: each for each in placements}
    transfers, edges = {}, []
    for name, producer in graph.producer.items():
        made = placed[producer]
        for reader in sorted(graph.consumers.get(name, ()), key=lambda v: placed[v].lag):
            read = placed[reader]
            if made.processor == read.processor:
                edges.append(Edge(producer, reader))
                continue
            route = (name, read.processor)
            if route not in transfers:
                ends = made.processor, read.processor
                time_s = costs.transfer_s(name, *ends)
                transfers[route] = Transfer(name, producer, *ends, read.lag, time_s)
            edges.append(Edge(producer, reader, list(transfers).index(route)))
    return Mapping(tuple(placements), tuple(transfers.values()), tuple(edges), period_s)


def drawn():
    r"""A graph drawn by hand, in two stages.

    Seconds stand behind the operators, and every transfer takes 0.25 s. Conv `a` is fused with
    its Relu, and a batch-norm is folded into it.

        x ─ a 1 ─┬─ b 2 ─┐             stage 0   big:    a [0, 1]   b [1, 3]
                 ├─ c 1 ─┴─ d 1 ─┐               little: c [1.25, 2.25]
                 └───────────────┴ e 1  stage 1  gpu:    d [0.25, 1.25]   e [1.25, 2.25]
    """
    weight = Constant("w", (2, 2, 1, 1), "float32")
    scale = Constant("scale", (2,), "float32", nodes=("node/exp", "node/neg"))
    norm = operator("before", "raw scale", kind="BatchNormalization", attributes={"epsilon": 1e-5})
    conv = operator(
        "inner", "x w _", kind="Conv", attributes={"strides": (1, 1), "group": 1}, folded=[norm]
    )
    whole = operator(
        "a",
        "x w _",
        kind="Conv",
        attributes={"strides": (1, 1), "group": 1},
        parts=[conv, operator("a", "inner")],
        folded=[norm],
    )
    operators = [
        whole,
        operator("b", "a"),
        operator("c", "a"),
        operator("d", "b c", kind="Add"),
        operator("e", "d a", kind="Add"),
    ]
    graph = graph_of(operators, inputs=["x"], outputs=["e"], constants=[weight, scale])
    costs = Costs([[1.0] * 3, [2.0] * 3, [1.0] * 3, [1.0] * 3, [1.0] * 3], {})
    stages = [[(0, 0), (1, 0), (2, 1)], [(3, 2), (4, 2)]]
    return graph, platform_of(3), costs, configured(graph, costs, stages)


def drawn_plan():
    graph, platform, costs, mapping = drawn()
    found = replace(evaluate(mapping, graph, costs), energy_j=0.5, board_energy_j=0.75)
    return build_plan(graph, platform, costs, mapping, found=found)


def random_case(seed):
    """A random graph in a random valid configuration of up to four stages and five processors."""
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    operators, tensors = [], ["x", "y"]
    for v in range(count):
        reads = rng.sample(tensors, min(len(tensors), rng.randint(1, 3)))
        made = [f"t{v}", f"u{v}"] if rng.random() < 0.3 else [f"t{v}"]
        parts = []
        if rng.random() < 0.3:
            inner = operator(f"i{v}", " ".join([*reads, "k"]), kind="Conv")
            parts = [inner, operator(" ".join(made), f"i{v}")]
        operators.append(operator(" ".join(made), " ".join([*reads, "k"]), parts=parts))
        tensors += made
    graph = graph_of(
        operators,
        inputs=["x", "y"],
        outputs=sorted({tensors[-1], rng.choice(tensors[2:])}),
        constants=[Constant("k", (2,), "float32")],
    )
    processors = rng.randint(1, 5)
    moved_s = {
        (name, p, q): rng.choice([0.0, 0.125, 0.3])
        for name in tensors
        for p in range(processors)
        for q in range(processors)
    }
    costs = Costs(
        [[rng.choice([0.0, 0.1, 0.7, 1.5]) for _ in range(5)] for _ in operators], moved_s
    )
    costs.table[0] = [0.4] * 5
    return (
        graph,
        platform_of(processors),
        costs,
        configured(graph, costs, cut_into_stages(rng, count, processors)),
    )


def cut_into_stages(rng, operators, processors):
    """Stages of consecutive operators, each on processors of its own."""
    stages = rng.randint(1, min(4, operators, processors))
    cuts = [0, *sorted(rng.sample(range(1, operators), stages - 1)), operators]
    free = rng.sample(range(processors), processors)
    shares = [[free[i]] for i in range(stages)]
    for p in free[stages:]:
        rng.choice(shares).append(p)
    return [
        [(v, rng.choice(shares[i])) for v in range(cuts[i], cuts[i + 1])] for i in range(stages)
    ]
