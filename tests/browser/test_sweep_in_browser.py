"""The page of a sweep in a real browser: it picks as `parapipe pick` does, and shows any name."""

import json
import re

import pytest

import parapipe
from tests.cases.branchy import branchy

BOARDS = ("amlogic-a311d", "bst-a1000")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    first = branchy(folder / "<b>branchy.onnx")
    broken = folder / "broken<img src=x onerror=alert(1)>.onnx"
    broken.write_bytes(b"")
    return parapipe.sweep(
        out=folder / "out", models=[first, broken], platforms=BOARDS, jobs=1, cache=False,
        objectives="latency-throughput", draws=0, note=lambda _: None,
    )  # fmt: skip


def test_demands_pick_what_the_command_picks(opened, swept) -> None:
    page = opened(swept.folder / "index.html")
    fastest = max(row.throughput_fps for row in swept.document.results if row.error is None)
    page.run(
        "const set = (id, value, event) => { const each = document.getElementById(id);"
        "each.value = value; each.dispatchEvent(new Event(event)); };"
        "set('minimise', 'energy', 'change'); set('min-fps', arguments[0], 'input')",
        f"{0.5 * fastest}",
    )
    shown = [
        [cell.text for cell in row.find_elements("css selector", "td")]
        for row in page.all("#results tbody tr")
    ]
    found = {each.row.platform: each for each in swept.pick("energy", min_fps=0.5 * fastest)}
    for platform, cells in zip(BOARDS, shown, strict=False):
        picked = found[platform].picked
        expected = picked.configuration.id if picked else "no configuration meets all demands"
        assert cells[1] == platform
        assert cells[3] == expected
    assert page.console() == []


def test_a_figure_that_a_front_does_not_state_meets_no_demand(opened, swept, tmp_path) -> None:
    text = (swept.folder / "index.html").read_text(encoding="utf-8")
    data = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1]
    sweep = json.loads(data)
    column = sweep["columns"].index("peak_memory_bytes")
    for rows in sweep["configurations"].values():
        for row in rows:
            row[column] = None
    changed = tmp_path / "index.html"
    changed.write_text(text.replace(data, json.dumps(sweep)), encoding="utf-8")
    page = opened(changed)
    page.run(
        "const each = document.getElementById('max-memory');"
        "each.value = '1e9'; each.dispatchEvent(new Event('input'))"
    )
    rows = page.all("#results tbody tr")[: len(BOARDS)]
    picked = {row.find_elements("css selector", "td")[3].text for row in rows}
    assert picked == {"no configuration meets all demands"}


def test_names_and_errors_are_text(opened, swept) -> None:
    page = opened(swept.folder / "index.html")
    assert page.all("main img") == []
    assert "<b>branchy" in page.text("#matrix")
    assert "onerror=alert(1)" in page.text("#results")
    assert page.console() == []
