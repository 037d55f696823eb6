"""What holds for every model on every platform: random ones, and those of the zoo."""

from __future__ import annotations

import random
from itertools import pairwise
from math import isfinite

import onnx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.measured_source import MeasuredSource, subject_of
from parapipe.cost.price import price
from parapipe.cost.profile import shipped_profiles
from parapipe.platform.load import read_platform
from parapipe.platform.support import Refusal
from tests.cases.coverage import assert_shares_add_up_to_one

ZOO = [
    ("zoo:mobilenet-v1", "amlogic-a311d"),
    ("zoo:squeezenet", "bst-a1000"),
    ("zoo:mobilenet-v1", "rockchip-rk3399pro"),
]
SEEDS = st.integers(0, 10**9)


def network(seed, width=1):
    """Return a random network of convolutions, activations, additions and concatenations.

    With a larger width every tensor has so many times the channels.
    """
    rng = random.Random(seed)
    channels, nodes, weights = {"x": 4 * width}, [], []
    for number in range(rng.randint(2, 9)):
        name, read = f"t{number}", rng.choice(list(channels)[-3:])
        others = [n for n in channels if n != read and channels[n] == channels[read]]
        kind = rng.choice(["Conv", "Conv", "Relu", "Add", "Concat"])
        if kind == "Conv":
            made, size = rng.choice([4, 8, 16]) * width, rng.choice([1, 3])
            weights.append(
                helper.make_tensor_value_info(f"w{number}", TensorProto.FLOAT,
                                              [made, channels[read], size, size])
            )  # fmt: skip
            window = {"kernel_shape": [size, size], "pads": [size // 2] * 4}
            nodes.append(
                helper.make_node("Conv", [read, f"w{number}"], [name], name=name, **window)
            )
            channels[name] = made
        elif kind == "Add" and others:
            nodes.append(helper.make_node("Add", [read, others[0]], [name], name=name))
            channels[name] = channels[read]
        elif kind == "Concat" and len(channels) > 1:
            pair = [read, rng.choice(list(channels))]
            nodes.append(helper.make_node("Concat", pair, [name], name=name, axis=1))
            channels[name] = sum(channels[n] for n in pair)
        else:
            nodes.append(helper.make_node("Relu", [read], [name], name=name))
            channels[name] = channels[read]
    shape = [1, 4 * width, 8, 8]
    read = {name for node in nodes for name in node.input}
    zeros = [
        helper.make_tensor(w.name, TensorProto.FLOAT, dims := [
            d.dim_value for d in w.type.tensor_type.shape.dim
        ], bytes(4 * dims[0] * dims[1] * dims[2] * dims[3]), raw=True)
        for w in weights
    ]  # fmt: skip
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in channels
        if name not in read
    ]
    graph = helper.make_graph(
        nodes, "random", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs,
        zeros,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def soc(seed):
    """Return a random platform of two or three processors as the text of its file."""
    rng = random.Random(seed)
    names = ["a", "b", "c"][: rng.randint(2, 3)]

    def upto(low, high):
        return low * (high / low) ** rng.random()

    def processor(core, name):
        clocks = sorted(rng.sample([0.4e9, 0.8e9, 1.2e9, 1.6e9, 2.0e9], rng.randint(2, 4)))
        return {
            "name": name, "kind": "cpu", "backend": "nominal", "cores": [core],
            "data_types": ["float32"], "source": "made",
            "clock": {
                "default_frequency_hz": rng.choice(clocks),
                "points": [
                    {"frequency_hz": hz, "voltage_v": round(0.7 + hz / 1e10, 3)} for hz in clocks
                ],
                "scaling": {
                    "compute_share": {"conv3x3": rng.random(), "default": rng.random()},
                    "source": "made",
                },
                "source": "made",
            },
            "launch": {"overhead_s": upto(1e-6, 1e-3), "source": "made"},
            "peak": {"macs_per_s": {"float32": upto(1e8, 1e11)}, "source": "made"},
            "memory": {"bandwidth_bytes_per_s": upto(1e8, 1e11), "source": "made"},
            "power": {
                "alpha_w_per_v2_hz": upto(1e-11, 1e-8), "beta_w_per_v": upto(0.01, 1),
                "utilisation": {"conv1x1": rng.random(), "default": rng.random()},
                "source": "made",
            },
            "input": {"latency_s": upto(1e-6, 1e-3), "source": "made"},
            "output": {"latency_s": upto(1e-6, 1e-3), "source": "made"},
        }  # fmt: skip

    document = {
        "schema": "parapipe/platform/1",
        "name": "random",
        "board": {"idle_power_w": 1.5, "source": "made"},
        "memory": {"bandwidth_bytes_per_s": 1e11, "source": "made"},
        "processors": [processor(core, name) for core, name in enumerate(names)],
        "links": [
            {"from": one, "to": other, "latency_s": upto(1e-6, 1e-3), "source": "made",
             "bandwidth_bytes_per_s": upto(1e8, 1e10)}
            for one in names for other in names if one != other
        ],
        "evaluation": {"contention": rng.random(), "source": "made"},
        "sources": {"made": {"provenance": "nominal", "title": "made up"}},
    }  # fmt: skip
    return yaml.safe_dump(document, sort_keys=False)


def graph_of(tmp_path_factory, proto):
    path = tmp_path_factory.mktemp("network") / "network.onnx"
    onnx.save(proto, path)
    return parapipe.load_model(path)


def check_table(costs):
    """Times are positive but for free views, and all that is added up adds up."""
    for row in costs.entries:
        for cost in (each for each in row if not isinstance(each, Refusal)):
            for part in cost.parts:
                assert isfinite(part.time_s)
                assert part.time_s > 0 or part.free_view
                assert part.energy_j >= 0
            assert cost.time_s == pytest.approx(sum(part.time_s for part in cost.parts))
            assert cost.energy_j == pytest.approx(sum(part.energy_j for part in cost.parts))
    for matrix in costs.transfers.values():
        for p, times in enumerate(matrix):
            assert times[p] == 0
            assert min(times) >= 0
    assert_shares_add_up_to_one(costs.coverage())


def check_front(front):
    """Figures are sums and extremes of their stages, and shares of coverage add up."""
    assert_shares_add_up_to_one(front.document.coverage)
    for made in front:
        row = made
        times = [stage.time_s for stage in row.stages]
        used = [processor for stage in row.stages for processor in stage.processors]
        # times of stages are those without co-runs, which take no less
        free = row.co_run
        assert free is not None
        assert free.free_latency_s == pytest.approx(sum(times))
        assert free.free_period_s == max(times)
        assert free.free_latency_s <= row.latency_s
        assert free.free_period_s <= row.period_s
        assert row.throughput_fps == pytest.approx(1 / row.period_s)
        assert len({processor.name for processor in used}) == len(used)
        static_w = sum(processor.static_power_w for processor in used)
        dynamic_j = sum(processor.dynamic_energy_j for processor in used)
        assert row.energy_j == pytest.approx(dynamic_j + static_w * row.period_s)
        assert row.board_energy_j - row.energy_j == pytest.approx(
            row.period_s * made.costs.idle_power_w
        )
        busiest_s = max(processor.busy_s for processor in used)
        rounding_s = 1e-12 * len(made.graph.operators)  # the sustained period's are picoseconds
        sustained_s = free.free_sustained_period_s
        assert busiest_s - rounding_s <= sustained_s <= free.free_period_s + rounding_s
        assert sustained_s <= row.sustained_period_s
        for stage in row.stages:
            assert max(processor.busy_s for processor in stage.processors) <= stage.time_s * (
                1 + 1e-9
            )
        placed = [
            at.operator for stage in made.configuration.mapping.stages for at in stage.placements
        ]
        assert sorted(placed) == list(range(len(made.graph.operators)))
        if row.evaluated:
            assert row.evaluated.latency_s <= row.latency_s * (1 + 1e-9)
            assert row.evaluated.longest_stage_s <= row.evaluated.period_s * (1 + 1e-9)


@given(model=SEEDS, platform=SEEDS)
@settings(max_examples=20)
def test_no_time_is_negative_and_what_is_added_up_adds_up(tmp_path_factory, model, platform):
    known = read_platform(soc(platform), "random.yaml")
    check_table(build_cost_table(graph_of(tmp_path_factory, network(model)), known, profiles=[]))


@given(model=SEEDS, platform=SEEDS, width=st.integers(2, 5))
@settings(max_examples=12)
def test_a_wider_network_is_never_cheaper(tmp_path_factory, model, platform, width):
    known = read_platform(soc(platform), "random.yaml")
    narrow, wide = (
        build_cost_table(graph_of(tmp_path_factory, network(model, w)), known, profiles=[])
        for w in (1, width)
    )
    for v in range(len(narrow.entries)):
        for p in range(len(known.processors)):
            assert wide.time_s(v, p) >= narrow.time_s(v, p) * (1 - 1e-12)
            assert wide.energy_j(v, p) >= narrow.energy_j(v, p) * (1 - 1e-12)


@given(model=SEEDS, platform=SEEDS)
@settings(max_examples=12)
def test_a_higher_frequency_is_never_slower(tmp_path_factory, model, platform):
    known = read_platform(soc(platform), "random.yaml")
    check_frequencies(graph_of(tmp_path_factory, network(model)), known, profiles=[])


def check_frequencies(graph, platform, **options):
    """With all processors at a higher point nothing takes longer: each depends on its own only."""
    clocks = [sorted(point.frequency_hz for point in p.clock.points) for p in platform.processors]
    tables = [
        build_cost_table(graph, platform.at([hz[round(share * (len(hz) - 1))] for hz in clocks]),
                         **options)
        for share in (0, 0.5, 1)
    ]  # fmt: skip
    for slow, fast in pairwise(tables):
        for v in range(len(graph.operators)):
            for p in range(len(clocks)):
                assert fast.time_s(v, p) <= slow.time_s(v, p) * (1 + 1e-9)


@given(model=SEEDS, platform=SEEDS)
@settings(max_examples=2)
def test_the_figures_of_every_configuration_add_up(tmp_path_factory, model, platform):
    folder = tmp_path_factory.mktemp("mapped")
    onnx.save(network(model), folder / "network.onnx")
    (folder / "soc.yaml").write_text(soc(platform))
    check_front(
        parapipe.map(
            folder / "network.onnx", folder / "soc.yaml", time_limit_s=5, dvfs=platform % 2 == 0,
            dvfs_points=2, note=lambda _note: None, resolution=0, jobs=1, interleave="none",
        )
    )  # fmt: skip


@pytest.mark.parametrize(("model", "platform"), ZOO)
def test_the_zoo_keeps_the_same_rules(model, platform):
    graph, known = parapipe.load_model(model), parapipe.load_platform(platform)
    check_table(build_cost_table(graph, known))
    if all(p.clock.scaling for p in known.processors):
        check_frequencies(graph, known)


def test_where_a_zoo_model_is_priced_by_a_fit_more_work_is_never_cheaper():
    graph, known = parapipe.load_model("zoo:mobilenet-v2"), parapipe.load_platform("amlogic-a311d")
    (profile,) = shipped_profiles(known.profile_name)
    clocks_hz = {p.name: p.clock.default_frequency_hz for p in known.processors}
    source, fitted = MeasuredSource(profile, clocks_hz), 0
    subjects = [subject_of(part, graph) for each in graph.operators for part in each.singles]
    for subject in subjects:
        work = subject.operator.work
        size_bytes = work.read_bytes + work.written_bytes
        for processor in known.processors:
            priced = price(subject, processor, "", [source])
            if profile.lookup(subject.signature, processor.name):
                continue
            assert priced.provenance != "measured"
            if priced.provenance != "fitted":
                continue
            about = (subject.signature, subject.operator_class, work.macs)
            fit, fitted = source.model.lookup(processor.name, *about), fitted + 1
            times = [
                fit.time(subject.signature, work.macs * more, size_bytes * more).value
                for more in (1, 1.05, 1.3, 4)
            ]
            assert times == sorted(times)
            assert priced.time_s == times[0]
    assert fitted > 20
