"""docs/fronts.md has a row for each network on each of two platforms, with sound figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import parapipe
from docs.networks import NETWORKS

PAGE = (Path(__file__).parents[2] / "docs/fronts.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
PLATFORMS = ("amlogic-a311d", "bst-a1000")


def rows(platform: str) -> dict[str, list[str]]:
    """Return the cells behind each model's name."""
    lines = re.findall(r"^\| `(.+?)` \| (.*) \|$", SECTIONS[platform], flags=re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in lines}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_network_has_a_front(platform) -> None:
    assert tuple(rows(platform)) == NETWORKS


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_front_is_at_least_as_good_as_its_best_processor_alone(platform) -> None:
    for latency, alone, throughput, fastest, efficiency, configurations, _ in rows(
        platform
    ).values():
        assert float(latency) <= float(alone)
        assert float(throughput) >= float(fastest)
        assert float(efficiency) > 0
        assert int(configurations) >= 3


def interleaved() -> dict[str, list[list[str]]]:
    """Return the cells of each table of interleaved frames, the model first."""
    behind = PAGE.partition("\n## Interleaved frames\n")[2]
    tables = re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", behind, flags=re.MULTILINE | re.DOTALL)
    return {
        title: [line.split(" | ") for line in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)]
        for title, text in tables
    }


def test_each_table_of_interleaved_frames_has_every_network() -> None:
    found = interleaved()
    assert len(found) == 2
    for rows_of_it in found.values():
        names = tuple(re.findall(r"`(.+?)`", cells[0])[0] for cells in rows_of_it)
        assert names == NETWORKS


def test_no_interleaved_mapping_has_more_throughput_than_its_bound() -> None:
    compared = 0
    for cells in (cells for rows_of_it in interleaved().values() for cells in rows_of_it):
        if cells[1].startswith("not run yet") or cells[2] == "none better":
            continue
        stages, best, gain, bound = map(float, cells[1:5])
        assert gain >= 1
        assert stages < best <= bound * 1.001
        compared += 1
    assert compared > 10


def test_the_page_shows_what_the_command_finds(tmp_path) -> None:
    front = parapipe.map("zoo:alexnet", "amlogic-a311d", cache=tmp_path)
    latency, _, throughput, *_ = rows("amlogic-a311d")["alexnet"]
    assert float(latency) == pytest.approx(front.best("latency").latency_s * 1e3, rel=1e-3)
    staged = max(each.throughput_fps for each in front if each.least is None)
    assert float(throughput) == pytest.approx(staged, rel=1e-3)
    ((_, stages, best, *_),) = (
        cells
        for cells in interleaved()["amlogic-a311d, hand-overs as delays"]
        if cells[0] == "`alexnet`"
    )
    assert stages == throughput
    # the table's objectives leave out energy, which shifts no bound
    assert float(best) == pytest.approx(front.best("period").throughput_fps, rel=5e-3)
