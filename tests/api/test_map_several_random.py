"""Fronts of random small models on random boards, against figures worked out from the plans."""

import random
import re
from itertools import pairwise
from math import gcd

import numpy as np
import pytest
import yaml

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import DemandError
from tests.cases.small_models import parsed

MOST_TIMES = 4  # as long as the shortest pattern, that exhaustive search looks at
ROUNDING = 1e-9


def random_board(rng):
    """Two or three processors whose times are those of starting an operator and of its work."""
    source = {"source": "s"}
    names = [f"p{number}" for number in range(rng.randint(2, 3))]
    return {
        "schema": "parapipe/platform/1",
        "name": "random",
        "description": "random",
        "board": {"idle_power_w": rng.uniform(0, 2), **source},
        "memory": {"bandwidth_bytes_per_s": 1e10, **source},
        "processors": [
            {
                "name": name,
                "kind": rng.choice(["npu", "dsp"]),
                "backend": "nominal",
                "data_types": ["float32"],
                **source,
                "clock": {
                    "default_frequency_hz": 1e9,
                    "points": [{"frequency_hz": 1e9, "voltage_v": 1.0}],
                    **source,
                },
                "launch": {
                    "overhead_s": rng.choice([1e-3, 2e-3, rng.uniform(1e-3, 9e-3)]),
                    **source,
                },
                "peak": {
                    "macs_per_s": {"float32": rng.choice([1e6, rng.uniform(1e6, 9e6)])},
                    **source,
                },
                "memory": {"bandwidth_bytes_per_s": 1e9, **source},
                "power": {
                    "alpha_w_per_v2_hz": rng.uniform(1e-10, 3e-9),
                    "beta_w_per_v": rng.uniform(0.01, 0.2),
                    "utilisation": {"default": 1},
                    **source,
                },
                "input": {"latency_s": 0, "bandwidth_bytes_per_s": 1e9, **source},
                "output": {"latency_s": 0, **source},
            }
            for name in names
        ],
        "links": [
            {"from": one, "to": other, "latency_s": rng.uniform(0, 1e-3), **source}
            for one in names
            for other in names
            if one != other
        ],
        "sources": {"s": {"provenance": "nominal", "title": "random", "reasoning": "random"}},
    }


def random_model(rng):
    """One or two multiplications, one after the other."""
    sizes = [rng.choice([20, 50, 100, rng.randint(10, 120)]) for _ in range(rng.randint(2, 3))]
    arrays = {f"w{i}": np.zeros(pair, np.float32) for i, pair in enumerate(pairwise(sizes))}
    names = ["x", *(f"t{i}" for i in range(len(arrays) - 1)), "y"]
    steps = " ".join(f"{names[i + 1]} = MatMul({names[i]}, w{i})" for i in range(len(arrays)))
    text = f"agraph (float[1,{sizes[0]}] x) => (float[1,{sizes[-1]}] y) {{ {steps} }}"
    return parsed(text, **arrays)


class RandomCase:
    """Models, a board, and rates of which some cannot be kept."""

    def __init__(self, seed, folder):
        rng = random.Random(seed)
        self.board = folder / "board.yaml"
        self.board.write_text(yaml.safe_dump(random_board(rng)))
        platform = parapipe.load_platform(self.board)
        self.models, times, counts = {}, [], []
        for number in range(rng.choice([1, 2, 2, 3])):
            path = folder / f"m{number}.onnx"
            path.write_bytes(random_model(rng).SerializeToString())
            self.models[f"m{number}"] = path
            graph = parapipe.load_model(path)
            costs = build_cost_table(graph, platform)
            processors = range(len(costs.processors))
            operators = range(len(graph.operators))
            times.append([tuple(costs.time_s(v, p) for p in processors) for v in operators])
            counts.append(rng.randint(1, 3))
        self.counts = [count // gcd(*counts) for count in counts]
        self.rows = [
            row
            for rows, count in zip(times, self.counts, strict=True)
            for row in rows
            for _ in range(count)
        ]
        self.period_s = sum(map(min, self.rows)) / len(processors) * rng.uniform(0.8, 2.5)
        fps = [count / self.period_s for count in self.counts]
        self.rates = dict(zip(self.models, fps, strict=True))

    def front(self):
        return parapipe.map(
            self.models, self.board, rates=self.rates, cache=False, note=lambda _note: None
        )

    def keeps_rates(self, times):
        """Whether some assignment of the frames of so many patterns keeps their period."""
        most_s = times * self.period_s * (1 + 1e-7)
        reached = {(0.0,) * len(self.rows[0])}
        for row in sorted(self.rows * times, key=max, reverse=True):
            reached = {
                (*loads[:p], round(loads[p] + time_s, 12), *loads[p + 1 :])
                for loads in reached
                for p, time_s in enumerate(row)
                if loads[p] + time_s <= most_s
            }
        return bool(reached)


def check_case(seed, folder):
    """Check a front, or why there is none."""
    case = RandomCase(seed, folder)
    try:
        front = case.front()
    except DemandError as error:
        told = str(error)
        kept = [times for times in range(1, MOST_TIMES + 1) if case.keeps_rates(times)]
        assert not kept, told
        proven = re.search(r"no pattern reaches more than ([\d.]+) times", told)
        assert float(proven[1]) <= 1 if proven else "of what is asked; that none" in told
        return
    several = front.document.several
    assert several.shared <= several.bound * (1 + ROUNDING)
    for each in several.models:
        assert each.pattern_fps == pytest.approx(case.rates[each.name], rel=1e-5)
        assert each.pattern_fps == pytest.approx(each.frames / several.period_s)
    for row in front:
        check_row(row, several)


def check_row(row, several):
    """Check what a row says against its plan."""
    plan = row.plan()
    parapipe.verify_plan(plan)
    assert row.period_s == several.period_s
    assert plan.predicted.period_s == several.period_s
    growth = row.several
    assert growth.rate_factor <= several.bound * (1 + ROUNDING)
    work_s, energy_j = {}, 0.0
    for stage in plan.stages:
        for processor in stage.processors:
            for at in processor.operators:
                here_s = work_s.get(processor.name, 0.0) + at.end_s - at.start_s
                work_s[processor.name] = here_s
                energy_j += at.energy_j
    assert growth.rate_factor <= several.period_s / max(work_s.values()) * (1 + ROUNDING)
    static_w = {p.name: p.static_power_w for p in row.processors}
    energy_j += several.period_s * sum(static_w[name] for name in work_s)
    assert growth.power_w == pytest.approx(energy_j / several.period_s)


@pytest.mark.parametrize("seed", [3, 4, 7, 9, 19, 23])
def test_rows_keep_the_asked_rates_and_stay_within_the_bound(seed, tmp_path):
    check_case(seed, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_fronts_keep_the_asked_rates_and_stay_within_the_bound(seed, tmp_path):
    check_case(seed, tmp_path)
