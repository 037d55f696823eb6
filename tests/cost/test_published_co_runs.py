"""Published times of processors that work at the same time, predicted and not fitted.

One assumption holds for all: processors that work at the same time move the same bytes for a frame,
each alone is memory-bound, and the fastest of them draws all that the memory gives. So each draws
in proportion to its rate alone, and nothing but the times alone is put in. Sources stand in
docs/co-runs.md, whose table is compared here.
"""

import re
from math import log
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

from parapipe.cost.co_run import Draw, Running, SharedMemoryLaw
from parapipe.mappings.power_budget import power_s
from parapipe.platform.co_run import PowerBudget

BANDWIDTH = 1e9  # any: only ratios count
PAGE = Path("docs/co-runs.md").read_text(encoding="utf-8")
PAIRS = {
    "BetterTogether, a phone": {"big cluster": (4.1, 7.9), "GPU": (3.8, 8.9)},
    "Jetson": {"GPU": (17.0, 21.8), "DLA": (45.0, 59.0)},
}
"""By source: milliseconds of each processor alone, and beside the other one."""


def predicted_ms(alone_ms):
    """Return what processors take beside each other, given what each takes alone."""
    moved = BANDWIDTH * min(alone_ms.values()) * 1e-3  # the fastest draws all there is
    running = [Running(name, moved, ms * 1e-3) for name, ms in alone_ms.items()]
    law = SharedMemoryLaw(BANDWIDTH, {each.processor: Draw(each.bytes_per_s) for each in running})
    factors = zip(alone_ms, law.slowdowns(running), strict=True)
    return {name: alone_ms[name] * factor for name, factor in factors}


def rows():
    for source, pair in PAIRS.items():
        predicted = predicted_ms({name: alone for name, (alone, _) in pair.items()})
        for name, (alone, beside) in pair.items():
            yield (
                f"| {source} | {name} | {alone:g} | {beside:g} | {predicted[name]:.1f} | "
                f"{percent(predicted[name] / beside - 1)} |"
            )


def test_the_page_tells_what_is_predicted_and_how_far_that_is_off():
    table = re.findall(r"^\| (?:BetterTogether|Jetson).*\|$", PAGE, re.MULTILINE)
    assert table == [*rows()]


def test_no_prediction_is_off_by_more_than_a_fifth_and_without_the_law_all_are():
    for pair in PAIRS.values():
        predicted = predicted_ms({name: alone for name, (alone, _) in pair.items()})
        for name, (alone, beside) in pair.items():
            assert abs(predicted[name] / beside - 1) < 0.2
            assert abs(alone / beside - 1) > 0.2


INTEL = {
    ("Atom x6425E", "ResNet-50"): (19.86, 48.54, 59.83),
    ("Atom x6425E", "BERT-base"): (3.26, 12.93, 14.64),
    ("Atom x6425E", "U-Net"): (0.39, 1.97, 1.19),
    ("Celeron 6305E", "ResNet-50"): (51.59, 208.42, 200.06),
    ("Celeron 6305E", "BERT-base"): (11.76, 44.9, 46.11),
    ("Celeron 6305E", "U-Net"): (1.49, 8.33, 8.89),
    ("Core i7-1185G7", "ResNet-50"): (224.68, 282.0, 381.34),
    ("Core i7-1185G7", "BERT-base"): (50.9, 66.66, 87.03),
    ("Core i7-1185G7", "U-Net"): (6.52, 14.8, 15.92),
    ("Core i7-1185GRE", "ResNet-50"): (175.98, 202.08, 227.97),
    ("Core i7-1185GRE", "BERT-base"): (39.95, 47.84, 51.43),
    ("Core i7-1185GRE", "U-Net"): (5.0, 10.19, 8.06),
    ("Core i7-12700H", "ResNet-50"): (404.07, 385.97, 610.51),
    ("Core i7-12700H", "BERT-base"): (82.93, 86.13, 143.22),
    ("Core i7-12700H", "U-Net"): (9.34, 18.34, 25.02),
    ("Core i7-1360P", "ResNet-50"): (305.86, 395.74, 453.08),
    ("Core i7-1360P", "BERT-base"): (63.56, 92.13, 100.13),
    ("Core i7-1360P", "U-Net"): (7.34, 19.51, 19.79),
    ("Core Ultra 7 165H", "U-Net"): (6.58, 33.4, 20.56),
}
"""Frames a second in int8: of the CPU, of the integrated GPU, and of both at the same time.

OpenVINO 2024.3.0's benchmark table, docs/sphinx_setup/_static/benchmarks_files/
OV-2024.3-benchmark-data.csv of openvinotoolkit/openvino at d45251740fe4 (resnet-50,
bert-base-cased, unet-camvid-onnx-0001): every chip and these three models, wherever all three
numbers are there.
"""


def together_fps(cpu, gpu):
    """Return the frames a second of both, each slowed down by the other one."""
    return sum(1e3 / ms for ms in predicted_ms({"CPU": 1e3 / cpu, "GPU": 1e3 / gpu}).values())


def percent(share):
    return f"{round(share, 2) + 0.0:+.0%}".replace("%", " %").replace("-", "−")


def intel_rows():
    for (chip, model), (cpu, gpu, both) in INTEL.items():
        predicted = together_fps(cpu, gpu)
        yield (
            f"| {chip} | {model} | {cpu:g} | {gpu:g} | {both:g} | {both / (cpu + gpu):.0%} | "
            f"{predicted:.4g} | ".replace("%", " %")
            + f"{percent(predicted / both - 1)} |"
        )


def test_the_page_tells_what_is_predicted_of_intels_processors():
    assert re.findall(r"^\| (?:Atom|Celeron|Core).*\|$", PAGE, re.MULTILINE) == [*intel_rows()]
    errors = [together_fps(cpu, gpu) / both - 1 for cpu, gpu, both in INTEL.values()]
    blind = [(cpu + gpu) / both - 1 for cpu, gpu, both in INTEL.values()]
    medians = [median(map(abs, each)) for each in (errors, blind)]
    assert [round(each, 3) for each in medians] == [0.127, 0.339]
    shares = [both / (cpu + gpu) for cpu, gpu, both in INTEL.values()]
    assert [round(min(shares), 2), round(max(shares), 2)] == [0.5, 0.91]
    told = f"{medians[0]:.1%} in the median, and {medians[1]:.1%} without"
    assert told.replace("%", " %") in PAGE.replace("\n", " ")


def test_two_processors_together_reach_at_least_half_of_the_sum_of_their_rates():
    for cpu, gpu, _ in INTEL.values():
        share = together_fps(cpu, gpu) / (cpu + gpu)
        assert share == pytest.approx(1 / (1 + min(cpu, gpu) / max(cpu, gpu)))


RUNS = {1280: (195.7, 399.4, 5185), 640: (55.5, 124.7, 17890)}
"""Tensor G3 (Pixel 8 Pro), a detector for 30 minutes on four threads: by the side of its images,
milliseconds of a frame in the first minute, in the last ten (median), and frames in all.

microsoft/MegaDetector issue 34; results/README.md of DaedricKnight/megadetector-int8-ptq at
6d9e6b061eef.
"""
LASTED_S = 1800


def heat_of(run):
    """Return power over the budget and the time constant, by the rule, that one run shows."""
    cold_ms, slow_ms, frames = RUNS[run]
    fast, slow = 1e3 / cold_ms, 1e3 / slow_ms  # frames a second
    lasts_s = (frames - LASTED_S * slow) / (fast - slow)
    ratio = slow_ms / cold_ms
    return ratio, lasts_s / -log(1 - 1 / ratio)


def other_run(run, by):
    """Return what is predicted of a run by another one: milliseconds in the end, and frames."""
    ratio, time_constant_s = heat_of(by)
    budget = PowerBudget(sustained_w=1.0, time_constant_s=time_constant_s, source="x")
    cold_s = RUNS[run][0] * 1e-3
    at = SimpleNamespace(operator=0, processor=0)
    costs = SimpleNamespace(
        power_budget_w=budget.sustained_w,
        energy_j=lambda _v, _p: ratio * cold_s,
        static_power_w=(0.0,),
        arrival_s=0.0,
    )
    slow_s = power_s(SimpleNamespace(placements=(at,), processors=(0,)), costs)
    lasts_s = budget.lasts_s(ratio)
    return slow_s * 1e3, lasts_s / cold_s + (LASTED_S - lasts_s) / slow_s


def test_one_long_run_of_a_phone_tells_what_another_model_comes_to():
    """The CPU is always busy: the same power, budget and time constant whatever it computes."""
    for run, by in ((640, 1280), (1280, 640)):
        slow_ms, frames = other_run(run, by)
        _, measured_ms, measured = RUNS[run]
        row = (
            f"| {run} × {run} | {by} × {by} | {RUNS[run][0]:g} | {measured_ms:g} | {slow_ms:.1f} | "
            f"{percent(slow_ms / measured_ms - 1)} | {measured} | {frames:.0f} | "
            f"{percent(frames / measured - 1)} |"
        )
        assert row in PAGE.splitlines()
        assert abs(slow_ms / measured_ms - 1) < 0.11
        assert abs(frames / measured - 1) < 0.03


def test_the_page_tells_how_hot_the_phone_is():
    ratio, time_constant_s = heat_of(1280)
    assert f"{ratio:.2f} times its budget" in PAGE.replace("\n", " ")
    assert f"{time_constant_s / 60:.1f} minutes" in PAGE.replace("\n", " ")
