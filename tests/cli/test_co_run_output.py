"""What commands print of processors that slow each other down."""

import json

import pytest

from parapipe.platform.load import find_platform
from tests.cases.co_runs import disturbed_board
from tests.cases.small_network import saved

SAME = "draws: co-runs by the same factor in all"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return disturbed_board(tmp_path_factory.mktemp("board"), 1.5)


def test_a_table_with_draws_says_how_they_hold_co_runs(parapipe, board, tmp_path):
    model = saved(tmp_path)
    few = ("--interleave", "none", "--mapper", "heft", "--all")
    drawn = parapipe("map", model, "--platform", board, "--draws", 5, *few)
    assert SAME in drawn.out.replace("\n", " ")
    assert SAME not in parapipe("map", model, "--platform", board, "--draws", 0, *few).out
    alone = parapipe("map", model, "--platform", "amlogic-a311d", "--draws", 5, *few)
    assert SAME not in alone.out.replace("\n", " ")


def test_an_evaluation_says_what_it_would_take_without_co_runs(parapipe, board, tmp_path):
    assignment = tmp_path / "assignment.yaml"
    assignment.write_text(
        "schema: parapipe/assignment/1\ndefault: big\noperators: {conv1: gpu}\n"
        "stages:\n  - {operators: [conv1]}\n"
        "  - {operators: [left1, left3, right1, join, fc, prob]}\n"
    )
    words = ("evaluate", saved(tmp_path), "--platform", board, "--assignment", assignment)
    ended = parapipe(*words)
    assert ended.code == 0, ended.err
    assert "if processors did not slow each other down" in ended.out
    assert "co-runs by the same factor in all" in ended.out
    document = json.loads(parapipe(*words, "--json").out)
    assert document["co_run"]["free_period_s"] <= document["period_s"]


def test_a_platform_says_how_much_contention_costs(parapipe, tmp_path):
    text = find_platform("amlogic-a311d").read_text()
    board = tmp_path / "board.yaml"
    share = "  hand_over_share: "
    board.write_text(text.replace(share, f"  contention: 0.5\n{share}", 1))
    sentence = "an operator takes 1.5 times as long while others move as many bytes"
    assert sentence in parapipe("platforms", "show", board).out
    assert sentence not in parapipe("platforms", "show", "amlogic-a311d").out
