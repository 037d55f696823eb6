"""Published times of processors that work at the same time, predicted and not fitted.

One assumption holds for all: processors that work at the same time move the same bytes for a frame,
each alone is memory-bound, and the fastest of them draws all that the memory gives. So each draws
in proportion to its rate alone, and nothing but the times alone is put in. Sources stand in
docs/co-runs.md, whose table is compared here.
"""

import re
from math import log
from pathlib import Path

import pytest

from parapipe.cost.co_run import Draw, Running, SharedMemoryLaw
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
            error = round(predicted[name] / beside - 1, 2) + 0.0
            yield (
                f"| {source} | {name} | {alone:g} | {beside:g} | {predicted[name]:.1f} | "
                f"{error:+.0%} |".replace("%", " %").replace("-", "−")
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


@pytest.mark.parametrize(("ratio", "share"), [(1.0, 0.5), (4.0, 0.8), (1 / 0.53 - 1, 0.53)])
def test_two_processors_together_reach_a_share_of_the_sum_of_their_rates(ratio, share):
    """Intel's CPU and integrated GPU: 53 to 80 %, so their rates are as 1 to 0.89 or 0.25."""
    ratio = max(ratio, 1 / ratio)
    alone = {"fast": 1.0, "slow": ratio}
    together = predicted_ms(alone)
    rates = [sum(1 / ms for ms in times.values()) for times in (together, alone)]
    assert rates[0] / rates[1] == pytest.approx(share)


def test_a_chip_that_falls_to_half_its_rate_within_half_an_hour():
    """Tensor G3: 196 to 400 ms, 2.04 times the power that it may draw for ever, by the rule."""
    budget = PowerBudget(sustained_w=1.0, time_constant_s=2000.0, source="x")
    ratio = 400 / 196
    assert budget.lasts_s(ratio) == pytest.approx(-2000 * log(1 - 1 / ratio))
    # Half an hour is enough for every time constant up to 45 minutes.
    assert budget.lasts_s(ratio) / 2000 == pytest.approx(0.673, abs=1e-3)
    assert budget.lasts_s(ratio) == pytest.approx(1800 * 2000 / (45 * 60), rel=0.02)
