"""What docs/profiling.md shows of a fit to whole networks is what the commands print."""

import re
from pathlib import Path

from benchmarks import whole_network_fits as benchmark

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "profiling.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## From the times of whole networks")[2].partition("\n## ")[0]


def test_the_example_prints_what_the_page_shows(parapipe, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (table,) = re.findall(r"```csv\n(.*?)```", SECTION, re.DOTALL)
    (Path.cwd() / "times.csv").write_text(table, encoding="utf-8")
    (example,) = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    new, fit, *shown = example.splitlines()
    for line in (new, fit):
        ended = parapipe(*line.removeprefix("$ parapipe ").split())
        assert ended.code == 0, ended.err
    assert ended.out.partition("\n\nfigures")[0].splitlines() == shown


def test_the_errors_of_the_rk3399pro_are_those_of_the_benchmark() -> None:
    board = benchmark.TRIED[1]
    fit = benchmark.fitted(board, "as-measured")
    cells = benchmark.median_cells(board, "as-measured", fit)
    rows = benchmark.PAGE.read_text(encoding="utf-8").splitlines()
    assert f"| {' | '.join(map(str, cells))} |" in rows
    assert f"{cells[4]} against {cells[3]} on the RK3399Pro" in " ".join(SECTION.split())
    assert fit.median_errors["nominal"] > 3 * fit.median_errors["left_out"]
    for each in benchmark.network_cells(board, fit):
        assert f"| {' | '.join(map(str, each))} |" in rows
