"""docs/board-states.md says what mapping on both states of the A311D's board gives."""

from __future__ import annotations

import re

import pytest

from benchmarks import board_states

LINES = board_states.PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_is_its_text_with_every_place_filled() -> None:
    text = board_states.TEXT.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ .*$", text, flags=re.MULTILINE)
    assert [line for line in LINES if line.startswith("#")] == headings
    assert not [line for line in LINES if "{" in line]


@pytest.mark.nightly
def test_googlenets_rows_on_the_page_are_what_mapping_it_gives() -> None:
    rows = [*board_states.named_rows("googlenet"), board_states.kept_row("googlenet")]
    for cells in rows:
        assert f"| {' | '.join(cells)} |" in LINES
