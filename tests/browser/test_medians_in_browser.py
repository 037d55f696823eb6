"""Where stated figures lie outside their intervals, all of the page shows medians of the draws."""

import pytest

from parapipe.documents.shown import medians_of, shown_values


def test_chart_header_and_card_have_the_figures_of_the_table(
    opened, six_processors, tmp_path
) -> None:
    front, report = six_processors, tmp_path / "report.html"
    front.write_report(report)
    plain = [row.model_dump() for row in front]
    fps = shown_values(plain, "throughput_fps")
    at = next(i for i, row in enumerate(front) if row.kind == "interleaved")
    page, row = opened(report, f"#{front[at].id}"), plain[at]
    assert "throughput_fps" in medians_of(plain)
    assert row["throughput_fps"] != fps[at]
    assert f"up to {max(fps):.0f} frames per second" in page.text("#lede")
    axes = page.texts("#front .axis")
    assert axes.count("median of draws") == 1
    across = "latency_s" in medians_of(plain)
    assert any(text.endswith(", median of draws") for text in axes) == across
    heights = page.run(MARKS)
    drawn = [i for i, each in enumerate(front) if each.id in heights]
    assert at in drawn
    by_height = sorted(drawn, key=lambda i: (-heights[front[i].id], fps[i]))
    assert [fps[i] for i in by_height] == sorted(fps[i] for i in drawn)
    assert page.text("#summary .stage .time") == f"~{1e3 / fps[at]:.4g}\u202fms"
    (cross,) = page.all("#front .doubt")
    plot = page.all("#front svg")[0].rect
    assert plot["x"] < cross.rect["x"] + cross.rect["width"] / 2 < plot["x"] + plot["width"]
    ((said, sustained),) = page.run(SUSTAINED)
    low, high = (1 / each for each in reversed(row["intervals"]["period_s"]))
    assert sustained == pytest.approx(1 / row["sustained_period_s"], rel=1e-3)
    assert (sustained > high) == said.endswith("by the stated costs; most draws are slower")
    assert low < fps[at] < high


MARKS = """
  return Object.fromEntries([...document.querySelectorAll("#front [data-id]")].map((mark) =>
    [mark.dataset.id, mark.getBoundingClientRect().top + mark.getBoundingClientRect().height / 2]));
"""
SUSTAINED = """
  return [...document.querySelectorAll("#summary > .figures tr")]
    .filter((row) => row.textContent.startsWith("Sustained"))
    .map((row) => [row.cells[1].textContent, Number(row.querySelector("b").textContent)]);
"""
