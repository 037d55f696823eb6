"""The page of back ends lists those that platform files may name."""

import re
from pathlib import Path

from parapipe.platform.consistency import BACKENDS

PAGE = Path(__file__).parents[2] / "docs" / "backends.md"


def test_the_page_lists_all_execution_providers_and_what_they_run_on() -> None:
    rows = re.findall(r"^\| `(onnxruntime-\w+)` \| (.+) \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {each.name: each.runs_on for each in BACKENDS.values()}
