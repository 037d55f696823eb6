"""Reports of very large models open: rows and schedules are drawn, and nothing is complained of."""

import pytest

from benchmarks.generated import inception_like
from parapipe.cli.main import main

PARTS = ("front", "summary", "gantt", "processors", "network", "sources", "table")
OPERATORS = 10_000


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["zoo:gpt:96", f"{OPERATORS} operators"])
def test_a_large_model_maps_by_the_plain_command_and_its_report_opens(
    model, opened, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if not model.startswith("zoo:"):
        model = "model.onnx"
        (tmp_path / model).write_bytes(inception_like(OPERATORS).SerializeToString())
    for arguments in (
        ["map", model, "--platform", "amlogic-a311d", "--out", "front"],
        ["report", "front"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code
    page = opened(tmp_path / "front" / "report.html")
    rows = page.all("#table tbody tr")
    assert len(rows) > 3
    assert all(page.run("return document.getElementById(arguments[0]).children.length", part)
               for part in PARTS)  # fmt: skip
    page.click(rows[-1])
    assert page.all("#gantt rect, #gantt path")
    assert page.console() == []
