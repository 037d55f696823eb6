"""Small random models and platforms, as files, for what must hold of every front.

Platforms have identical processors, clusters that can be divided, streams, several operating
points, and hand-overs that only delay, or keep the sender, the receiver or a link busy.
"""

from __future__ import annotations

import json
import random

import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.cases.cut_cases import OPSET, floats

BUSY = (None, None, "sender", "receiver", "bus")
FIGURES = ("latency_s", "period_s", "energy_j")
CLOSE = 1e-6
KINDS = ("npu", "dsp", "cpu", "gpu")


def random_model(rng: random.Random, most: int = 4) -> onnx.ModelProto:
    """A network of convolutions and activations, in a row, side by side or with a way around."""
    channels, side = 4, 8
    nodes: list[onnx.NodeProto] = []
    stored: list[onnx.TensorProto] = []
    made = ["x"]

    def add(kind: str, reads: list[str], arrays=(), **said) -> str:
        name = f"n{len(nodes)}"
        given = [f"{name}_{position}" for position in range(len(arrays))]
        stored.extend(map(numpy_helper.from_array, arrays, given))
        nodes.append(helper.make_node(kind, [*reads, *given], [name], name, **said))
        return name

    for _ in range(rng.randint(2, most)):
        x = made[-1] if rng.random() < 0.6 else rng.choice(made[-3:])
        kind = rng.choice(["Conv", "Conv", "Conv", "Sigmoid", "Add"])
        if kind == "Conv":
            size = rng.choice([1, 3])
            weights = floats(rng, channels, channels, size, size)
            made.append(add("Conv", [x], [weights], pads=[size // 2] * 4))
        else:
            made.append(add(kind, [x] if kind != "Add" else [x, rng.choice(made)]))
    read = {name for node in nodes for name in node.input}
    left = [name for name in made[1:] if name not in read]
    while len(left) > 1:
        left.append(add("Add", [left.pop(), left.pop()]))
    shape = [1, channels, side, side]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(left[0], TensorProto.FLOAT, shape)],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def random_platform(rng: random.Random) -> str:
    """Return the text of a platform of two to four processors, some of them identical."""
    processors: list[dict[str, object]] = []
    kinds = [*KINDS]
    while len(processors) < 2:
        for kind in [kinds.pop(rng.randrange(len(kinds))) for _ in range(rng.randint(1, 2))]:
            made = _processor(rng, f"{kind}{len(processors)}", kind)
            twins = 1 if kind == "cpu" else rng.choice([1, 2, 2])  # cores are listed once
            processors += [{**made, "name": f"{made['name']}{'ab'[i]}"} for i in range(twins)]
    busy = rng.choice(BUSY)
    names = [str(each["name"]) for each in processors]
    cost: dict[tuple[str, str], dict[str, object]] = {}
    links = []
    for one in names:
        for other in names:
            if one != other:
                pair = (one[:-1], other[:-1])  # the same between twins
                link = cost.setdefault(pair, _link(rng, busy))
                links.append({"from": one, "to": other, **link})
    return json.dumps(
        {
            "schema": "parapipe/platform/1",
            "name": "random",
            "description": "random",
            "board": {"idle_power_w": 1.5, "source": "s"},
            "memory": {"bandwidth_bytes_per_s": 5e9, "source": "s"},
            "processors": processors,
            "links": links,
            "sources": {"s": {"provenance": "nominal", "title": "random", "reasoning": "random"}},
        }
    )


def _link(rng: random.Random, busy: str | None) -> dict[str, object]:
    made: dict[str, object] = {
        "latency_s": rng.choice([1e-6, 1e-5, 1e-4]) * rng.uniform(0.5, 1),
        "source": "s",
    }
    if rng.random() < 0.7:
        made["bandwidth_bytes_per_s"] = rng.choice([1e7, 1e8]) * rng.uniform(0.5, 2)
    return made | ({"occupies": busy} if busy else {})


def _processor(rng: random.Random, name: str, kind: str) -> dict[str, object]:
    points = [{"frequency_hz": 1e9, "voltage_v": 0.7}, {"frequency_hz": 2e9, "voltage_v": 1.0}]
    made: dict[str, object] = {
        "name": name,
        "kind": kind,
        "backend": "nominal",
        "data_types": ["float32"],
        "source": "s",
        "clock": {
            "default_frequency_hz": 2e9,
            "points": points,
            "scaling": {"compute_share": {"default": rng.choice([0.5, 1.0])}, "source": "s"},
            "source": "s",
        },
        "launch": {"overhead_s": rng.uniform(1e-6, 1e-4), "source": "s"},
        "peak": {"macs_per_s": {"float32": rng.uniform(1e7, 1e8)}, "source": "s"},
        "memory": {"bandwidth_bytes_per_s": rng.uniform(1e8, 2e9), "source": "s"},
        "power": {
            "alpha_w_per_v2_hz": rng.uniform(1e-10, 2e-9),
            "beta_w_per_v": rng.uniform(0.05, 0.5),
            "utilisation": {"default": rng.choice([0.5, 1.0])},
            "source": "s",
        },
        "input": {"latency_s": 0, "source": "s"},
        "output": {"latency_s": 0, "source": "s"},
    }
    if not name.endswith("0") and rng.random() < 0.4:
        made["operators"] = {
            "deny": [{"type": [rng.choice(["Add", "Sigmoid"])], "reason": "it does not"}],
            "source": "s",
        }
    hand_over = {"latency_s": rng.uniform(1e-6, 5e-5)}
    if kind == "cpu":
        made["cores"] = [0, 1, 2, 3]
        if rng.random() < 0.5:
            made["divisions"] = {
                "into": [[2, 2], [1, 3]],
                "parallel_share": {"default": rng.choice([0.3, 0.8])},
                "hand_over": hand_over,
                "source": "s",
            }
    elif rng.random() < 0.25:
        made["streams"] = {"slowdown": [1, 1.15, 1.6], "hand_over": hand_over, "source": "s"}
    return made


def random_options(rng: random.Random) -> dict[str, object]:
    """Return keywords of `map`: what decides which kinds of configurations are listed."""
    made: dict[str, object] = {}
    if rng.random() < 0.25:
        made["split"] = "auto"
    if rng.random() < 0.15:
        made["interleave"] = "none"
    if rng.random() < 0.3:
        made["objectives"] = "latency-throughput"
    if rng.random() < 0.1:
        made |= {"dvfs": True, "dvfs_points": 2}
    if rng.random() < 0.15:
        made["objectives"] = "latency-throughput-energy-memory"
    return made


def below_bounds(front: dict) -> list[str]:
    """Say which rows of a front.json lie below a bound that it states of all."""
    rows, undone = front["configurations"], front.get("unfinished")
    found = [*_below(rows, undone, FIGURES, "unfinished")] if undone else []
    for row in rows:
        if least := row["least"]:
            soon = [each for each in rows if each["period_s"] <= row["period_s"]]
            found += _below(rows, least, ["period_s"], f"least of {row['id']}")
            found += _below(soon, least, ["latency_s", "energy_j"], f"least of {row['id']}")
    return found


def _below(rows, bounds, keys, of):
    return [
        f"{row['id']} is below {key} of {of}: {row[key]} < {bounds[key]}"
        for row in rows
        for key in keys
        if row[key] < bounds[key] * (1 - CLOSE)
    ]
