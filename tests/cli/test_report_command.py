"""`parapipe report`: writes the page beside the front, or where it is told to."""

import pytest

from parapipe import map as map_model
from tests.cases.branchy import branchy
from tests.cases.scripts import run_script


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A folder that holds a front."""
    model = branchy(tmp_path_factory.mktemp("model") / "branchy.onnx")
    folder = tmp_path_factory.mktemp("front") / "o u"
    map_model(model, "amlogic-a311d", mapper="heft", cache=False, jobs=1, interleave="none").write(
        folder
    )
    return folder


def test_map_says_how_to_look_at_what_it_wrote(parapipe, small_model, tmp_path) -> None:
    out = tmp_path / "o u"
    ended = parapipe("map", small_model("Relu"), "--platform", "amlogic-a311d", "--out", out)
    assert f"to view it: parapipe report '{out}'" in ended.out.splitlines()


def test_the_report_stands_in_the_folder_unless_a_place_is_given(
    parapipe, mapped, tmp_path
) -> None:
    ended = parapipe("report", mapped)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"report: {mapped / 'report.html'} (")
    ended = parapipe("report", mapped, "--out", tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_bytes() == (mapped / "report.html").read_bytes()
    assert parapipe("report", mapped / "front.json").out == parapipe("report", mapped).out


COMMAND = "import sys; from parapipe.cli.command_line import run; sys.exit(run(sys.argv[1:]))"


def test_it_is_shown_in_the_browser_if_asked_for(mapped, tmp_path) -> None:
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{shown}"\n')
    browser.chmod(0o700)
    ended = run_script(COMMAND, "report", mapped, "--open", BROWSER=browser)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert shown.read_text().strip() == (mapped / "report.html").as_uri()


def test_it_is_said_if_there_is_no_browser(mapped) -> None:
    ended = run_script(COMMAND, "report", mapped, "--open", BROWSER="", PATH="/nowhere")
    assert (ended.returncode, ended.stderr) == (
        0, "parapipe: note: no browser was found; open the file by hand\n",
    )  # fmt: skip


def test_a_folder_without_a_front_is_named(parapipe, tmp_path) -> None:
    complaint = parapipe("report", tmp_path).complaint
    assert str(tmp_path / "front.json") in complaint
    assert "parapipe map" in complaint


def test_a_place_that_cannot_be_written_is_named(parapipe, mapped, tmp_path) -> None:
    complaint = parapipe("report", mapped, "--out", tmp_path / "no" / "r.html").complaint
    assert str(tmp_path / "no" / "r.html") in complaint
