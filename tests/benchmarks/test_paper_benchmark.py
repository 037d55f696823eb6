"""docs/paper.md says what the benchmark computes, and published figures are judged by one rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import parapipe
from benchmarks import paper_page
from benchmarks.paper import PAGE, PLATFORMS, TEXT
from benchmarks.paper_runs import SetRow, front, gains, rows, without_others
from benchmarks.paper_verdicts import EQUAL, judged

LINES = PAGE.read_text(encoding="utf-8").splitlines()


def test_the_counts_of_googlenet_on_the_page_are_those_of_the_partition() -> None:
    cells = paper_page.network_cells("googlenet", paper_page.counts("googlenet"))
    assert f"| {' | '.join(map(str, cells))} |" in LINES


def test_googlenets_rows_on_the_page_are_what_mapping_it_gives() -> None:
    platform = PLATFORMS[1]
    found = rows(front("googlenet", platform, cache=False), "googlenet", platform)
    section = LINES[LINES.index(f"### {platform}") :]
    for figure in ("ms", "fps"):
        cells = paper_page.method_cells(found, "googlenet", figure)
        assert f"| {' | '.join(cells)} |" in section


def test_the_page_is_its_text_with_every_place_filled() -> None:
    headings = re.findall(r"^#+ .*$", TEXT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [line for line in LINES if line.startswith("#")] == headings
    assert not [line for line in LINES if "{" in line]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"paper/[\w-]+\.svg", "\n".join(LINES)))))
def test_every_picture_of_the_page_is_there(name) -> None:
    assert (PAGE.parent / name).read_text(encoding="utf-8").startswith("<?xml")


def test_figures_within_the_margin_are_equal_and_others_better_or_worse() -> None:
    assert judged(0.2, 0.2 * (1 + 0.99 * EQUAL), less_is_better=True) == "equal"
    assert judged(0.2, 0.2 * (1 + 1.01 * EQUAL), less_is_better=True) == "worse"
    assert judged(0.2, 0.2 * (1 - 1.01 * EQUAL), less_is_better=True) == "better"
    assert judged(0.2, 0.2 * (1 + 1.01 * EQUAL), less_is_better=False) == "better"


def test_a_change_below_zero_is_better_the_lower_it_is() -> None:
    assert judged(-0.164, -0.2, less_is_better=True) == "better"
    assert judged(-0.164, -0.1, less_is_better=True) == "worse"
    assert judged(-0.164, -0.1627, less_is_better=True) == "equal"


def test_gains_are_means_over_networks_against_big_alone() -> None:
    found = [
        SetRow("a", "big", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        SetRow("b", "big", 2.0, 0.5, 1.0, 1.0, 1.0, 1.0),
        SetRow("a", "big+gpu", 0.5, 2.0, 1.0, 3.0, 1.0, 2.0),
        SetRow("b", "big+gpu", 1.8, 0.5, 1.0, 1.0, 1.0, 1.0),
    ]
    (only,) = gains(found).values()
    assert only["latency_s"] == pytest.approx(-0.3)
    assert only["one_stage_fps"] == pytest.approx(0.5)
    assert only["throughput_fps"] == pytest.approx(1.0)
    assert only["frames_per_joule"] == pytest.approx(0.5)


def test_a_platform_without_others_keeps_its_processors_as_they_are(tmp_path: Path) -> None:
    whole = parapipe.load_platform("amlogic-a311d")
    kept = parapipe.load_platform(without_others("amlogic-a311d", ["big", "little"], tmp_path))
    assert kept.processors == whole.processors[:2]
    assert kept.links == tuple(
        link for link in whole.links if "gpu" not in (link.sender, link.receiver)
    )
