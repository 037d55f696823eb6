"""docs/doubt.md: its commands print what it shows, its table is what the script writes."""

from __future__ import annotations

import re
import subprocess

import pytest

from parapipe.cost import spread
from tests.cases.pages import DOCS, script_of
from tests.cli.test_readme import blocks, environment, matches, steps

pytestmark = pytest.mark.usefixtures("shared_cache")
TEXT = (DOCS / "doubt.md").read_text(encoding="utf-8")


def script():
    return script_of("doubt")


@pytest.fixture(scope="module")
def made():
    return script()


def test_whole_runs_are_in_their_intervals_about_as_often_as_they_promise(made) -> None:
    for inside, widths in made.runs().values():
        assert 0.8 * len(inside) <= sum(inside) < len(inside)
        assert max(widths) < 0.15


def test_of_energies_with_the_network_left_out_80_to_95_percent_are_inside(made) -> None:
    for figure in ("latency", "longest stage", "energy, each network left out"):
        inside, _ = made.runs()[figure]
        assert 0.8 <= sum(inside) / len(inside) <= 0.95


def test_the_table_of_runs_is_what_the_script_writes(made) -> None:
    assert made.page(TEXT, {"runs": made.runs_table()}) == TEXT


@pytest.mark.nightly
def test_the_commands_print_what_stands_there(tmp_path) -> None:
    for command, shown in steps("".join(blocks("console", TEXT))):
        done = subprocess.run(
            command,
            check=False,
            shell=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        assert matches(shown, done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(
    "number", [spread.REPEATED, spread.NOMINAL_OWN, spread.NOMINAL_SHARED, spread.FITTED_POWER]
)
def test_the_page_states_the_spreads_of_the_code(number) -> None:
    assert re.search(rf"\b{re.escape(str(number))}\b", TEXT)
