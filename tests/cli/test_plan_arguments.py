"""Every command that takes a plan takes its file, and the folder of a front with an ID in it."""

import json
from pathlib import Path

import click
import pytest

from parapipe.cli.command_line import cli
from parapipe.cli.plan_arguments import PLAN

COMMANDS = {
    "verify": [],
    "run": ["--frames", "2", "--warmup", "0"],
    "simulate": ["--frames", "4"],
    "export": ["--to", "perfetto"],
    "explain": [],
}


def answer(ended) -> object:
    """Return what was printed, without what differs from one run to the next."""
    document = json.loads(ended.out)
    if document.get("how") == "run":
        return document["stages"], document["tasks"][0]["name"]
    document.pop("files", None)
    return document


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plan_by_file_and_by_id_or_name_in_its_folder_is_the_same(
    parapipe, branchy_folder, tmp_path, command
) -> None:
    front = json.loads((branchy_folder / "front.json").read_text())
    row = next(each for each in front["configurations"] if "balanced" in each["names"])
    place = [tmp_path / "out.json"] if command == "export" else []
    options = [*place, *COMMANDS[command], "--json"]
    file = branchy_folder / "plans" / f"{row['id']}.json"
    expected = parapipe(command, file, *options)
    assert expected.code == 0, expected.err
    names = [[row["id"]], ["balanced"], *([] if place else [[]])]
    for folder in (branchy_folder, branchy_folder / "front.json"):
        for name in names:
            ended = parapipe(command, folder, *name, *options)
            assert (ended.code, answer(ended)) == (0, answer(expected))


def test_all_commands_that_say_plan_take_both() -> None:
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        for each in command.params:
            metavar = getattr(each, "metavar", None) or ""
            if isinstance(each, click.Argument) and "PLAN" in metavar:
                assert metavar.startswith(("PLAN|DIR", f"{{{PLAN}"))
                assert name in COMMANDS


def test_several_plans_may_be_named_in_both_ways(branchy_folder) -> None:
    from parapipe.api.front import plan_files

    plans = branchy_folder / "plans"
    named = [branchy_folder, "c01", plans / "c02.json", branchy_folder, plans / "c03.json"]
    files = [path.name for path in plan_files([Path(each) for each in named])]
    assert files[:2] == ["c01.json", "c02.json"]
    assert files[3:] == ["c03.json"]


def test_an_id_counts_before_a_file_of_that_name(branchy_folder, tmp_path, monkeypatch) -> None:
    from parapipe.api.front import first_plan_file

    monkeypatch.chdir(tmp_path)
    Path("c01").write_text("a file")
    assert first_plan_file([branchy_folder, Path("c01")])[1] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["c99"], "no configuration 'c99' in this front"),
        (["c01", "c02"], "unexpected extra argument (c02)"),
    ],
)
def test_a_wrong_id_and_a_word_too_many_are_named(parapipe, branchy_folder, words, told) -> None:
    ended = parapipe("verify", branchy_folder, *words)
    assert ended.code
    assert told in ended.err


def test_what_is_no_folder_is_named_not_the_word_after_it(parapipe, tmp_path) -> None:
    assert f"'{tmp_path / 'none'}'" in parapipe("verify", tmp_path / "none", "c01").err
    assert "front.json" in parapipe("verify", tmp_path, "c01").complaint


def test_a_plan_outside_a_front_cannot_be_explained(parapipe, branchy_folder, tmp_path) -> None:
    copy = tmp_path / "plan.json"
    copy.write_bytes((branchy_folder / "plans" / "c01.json").read_bytes())
    assert "is a plan, not a front" in parapipe("explain", copy).complaint
