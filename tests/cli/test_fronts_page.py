"""docs/fronts.md has a row for each zoo model on each of two platforms, with sound figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parapipe import api

PAGE = (Path(__file__).parents[2] / "docs/fronts.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
BOTH = ("amlogic-a311d", "bst-a1000")


def rows(platform: str) -> dict[str, list[str]]:
    """Return the cells behind each model's name."""
    lines = re.findall(r"^\| `(.+?)` \| (.*) \|$", SECTIONS[platform], flags=re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in lines}


@pytest.mark.parametrize("platform", BOTH)
def test_every_model_of_the_zoo_has_a_front(platform) -> None:
    assert tuple(rows(platform)) == api.zoo_examples()


@pytest.mark.parametrize("platform", BOTH)
def test_a_front_is_at_least_as_good_as_its_best_processor_alone(platform) -> None:
    for latency, alone, throughput, fastest, efficiency, configurations, _ in rows(
        platform
    ).values():
        assert float(latency) <= float(alone)
        assert float(throughput) >= float(fastest)
        assert float(efficiency) > 0
        assert int(configurations) >= 3


def test_the_page_shows_what_the_command_finds(tmp_path) -> None:
    front = api.map_model("zoo:alexnet", "amlogic-a311d", cache=tmp_path)
    latency, _, throughput, *_ = rows("amlogic-a311d")["alexnet"]
    assert float(latency) == pytest.approx(front.best("latency").latency_s * 1e3, rel=1e-3)
    assert float(throughput) == pytest.approx(front.best("period").throughput_fps, rel=1e-3)
