"""`parapipe platforms`."""

import json
import re
from pathlib import Path

import pytest
import yaml

import parapipe as package
from parapipe.profiling.detect import DetectedPlatform
from tests.cases.soc_texts import spoil

SHIPPED = Path(package.__file__).parents[1] / "platforms" / "amlogic-a311d.yaml"


def test_the_shipped_platform_is_listed(parapipe) -> None:
    assert "amlogic-a311d" in parapipe("platforms", "list").out
    rows = json.loads(parapipe("platforms", "list", "--json").out)["platforms"]
    assert "amlogic-a311d" in [row["name"] for row in rows]


def test_platforms_alone_lists_them(parapipe) -> None:
    assert parapipe("platforms") == parapipe("platforms", "list")


def test_a_platform_is_shown_with_its_processors(parapipe) -> None:
    document = json.loads(parapipe("platforms", "show", "amlogic-a311d", "--json").out)
    assert [processor["name"] for processor in document["processors"]] == ["big", "little", "gpu"]
    text = parapipe("platforms", "show", "amlogic-a311d").out
    assert all(name in text for name in ("big", "little", "gpu"))
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_platform_says_in_which_precision_it_plans_models(parapipe) -> None:
    told = "models are planned in int8 unless --precision says otherwise"
    assert told in parapipe("platforms", "show", "bst-a1000").out.splitlines()
    assert "unless --precision" not in parapipe("platforms", "show", "amlogic-a311d").out


def test_a_platform_says_what_starting_a_captured_graph_takes(parapipe, tmp_path) -> None:
    raw = yaml.safe_load(SHIPPED.read_text())
    raw["processors"][-1]["launch"] |= {"overhead_s": 5e-6, "graph_s": 12e-6}
    (tmp_path / "board.yaml").write_text(yaml.safe_dump(raw))
    told = "gpu captures graphs of operators: 12 µs to start one, 5 µs to start an operator"
    assert told in parapipe("platforms", "show", tmp_path / "board.yaml").out.splitlines()
    assert "captures graphs" not in parapipe("platforms", "show", SHIPPED).out


def test_the_shipped_platform_has_no_mistakes(parapipe) -> None:
    assert parapipe("platforms", "check", SHIPPED).code == 0


def test_five_mistakes_are_listed_at_once_each_with_its_line(parapipe, tmp_path) -> None:
    text = SHIPPED.read_text()
    wrong = {
        r"(?m)^name: ": "nmae: ",
        r"kind: gpu": "kind: quantum",
        r"voltage_v: 0\.\d+": "voltage_v: -1",
        r"frequency_hz: \S+?(?=[,}\s])": "frequency_hz: fast",
        r"idle_power_w: \S+": "idle_power_w: .nan",
    }
    for pattern, replacement in wrong.items():
        text, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, pattern
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    ended = parapipe("platforms", "check", path)
    assert (ended.code, ended.out) == (1, "")
    mistakes = ended.err.splitlines()[1:]
    assert len(mistakes) >= 5
    assert all(re.match(rf"  {re.escape(str(path))}:\d+: ", line) for line in mistakes)
    for word in ("nmae", "quantum", "voltage_v", "frequency_hz", "idle_power_w"):
        assert any(word in line for line in mistakes), word


def test_check_notes_a_sustained_clock_whose_times_may_be_unknown(parapipe, tmp_path) -> None:
    path = tmp_path / "soc.yaml"
    default = "default_frequency_hz: 2e9"
    path.write_text(spoil((default, f"{default}\n      sustained_frequency_hz: 1e9")))
    ended = parapipe("platforms", "check", path)
    assert (ended.code, ended.out) == (0, f"{path}: no mistakes\n")
    assert ended.err.startswith("parapipe: note: 'cpu' states a sustained_frequency_hz")


def test_a_missing_file_is_named(parapipe, tmp_path) -> None:
    assert "no.yaml" in parapipe("platforms", "check", tmp_path / "no.yaml").complaint


def test_check_prints_one_json_document_and_the_exit_code_says_the_same(parapipe, tmp_path) -> None:
    good = parapipe("platforms", "check", "platforms/amlogic-a311d.yaml", "--json")
    assert good.code == 0
    assert json.loads(good.out)["valid"] is True
    path = tmp_path / "soc.yaml"
    path.write_text("schema: parapipe/platform/1\nnames: x\n")
    bad = parapipe("platforms", "check", str(path), "--json")
    document = json.loads(bad.out)
    assert bad.code == 1
    assert document["valid"] is False
    assert document["mistakes"][0].startswith(f"{path}:")
    assert len(document["mistakes"]) > 3


def test_a_new_platform_has_its_chips_processors(parapipe, tmp_path) -> None:
    done = parapipe("platforms", "new", "--chip", "rk3588", "--out", tmp_path / "board.yaml")
    assert done.code == 0
    assert "6 processors: little, big, gpu, npu0, npu1, npu2" in done.out
    assert parapipe("platforms", "check", tmp_path / "board.yaml").code == 0
    shown = parapipe("platforms", "show", tmp_path / "board.yaml", "--json").out
    assert len(json.loads(shown)["processors"]) == 6


def test_a_new_platform_of_parts_is_printed(parapipe) -> None:
    asked = "--cpu 4xCortex-A76@2.4GHz --cpu 4xCortex-A55@1.8GHz --gpu Mali-G610"
    done = parapipe("platforms", "new", *asked.split(), "--memory", "lpddr4x-32bit")
    assert "- {name: big, part: Cortex-A76, cores: [4, 5, 6, 7], frequency_hz: 2.4e9}" in done.out


def test_a_part_that_is_not_known_is_answered_with_those_that_are(parapipe) -> None:
    done = parapipe("platforms", "new", "--cpu", "4xCortex-A77x@2.4GHz", "--memory", "ddr4-32bit")
    assert done.code == 1
    assert "the catalogue has no cpu 'Cortex-A77x'; it has Cortex-A53, " in done.err


def test_the_catalogue_is_listed(parapipe) -> None:
    told = json.loads(parapipe("platforms", "catalogue", "--json").out)
    names = {table: [row["name"] for row in told[table]] for table in told}
    assert "rk3588" in names["chips"]
    assert {"Cortex-A76", "Mali-G610", "RK3588-NPU"} <= set(names["parts"])
    assert "lpddr4x-32bit" in names["memories"]
    text = parapipe("platforms", "catalogue").out
    assert all(name in text for table in names.values() for name in table)
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_name_of_a_chip_in_place_of_a_platform_says_how_to_make_one(parapipe) -> None:
    done = parapipe("platforms", "show", "rk3588")
    assert done.code == 1
    assert "'parapipe platforms new --chip rk3588 --out rk3588.yaml' makes a file of it" in done.err


@pytest.mark.parametrize("command", [("new", "--chip", "rk3588"), ("detect",)])
def test_an_edited_file_is_not_replaced_unless_forced(parapipe, tmp_path, monkeypatch, command):
    monkeypatch.setattr(
        "parapipe.profiling.detect.detect", lambda **_: DetectedPlatform("name: x\n", ())
    )
    path = tmp_path / "board.yaml"
    arguments = ("platforms", *command, "--out", path)
    assert parapipe(*arguments).code == 0
    written = path.read_bytes()
    path.write_bytes(written + b"idle_power_w: 3\n")
    assert "--force" in parapipe(*arguments).complaint
    assert path.read_bytes() != written
    assert parapipe(*arguments, "--force").code == 0
    assert path.read_bytes() == written


def test_a_file_that_would_be_the_same_is_written_again(parapipe, tmp_path) -> None:
    for _ in range(2):
        done = parapipe("platforms", "new", "--chip", "rk3588", "--out", tmp_path / "board.yaml")
        assert done.code == 0


TIMES = """network,processor,ms
alexnet,big,105.5
squeezenet,big,50
alexnet,gpu,97.9
squeezenet,gpu,40
"""


def test_fit_writes_a_platform_and_shows_errors_and_figures(parapipe, tmp_path) -> None:
    board, table, out = (tmp_path / name for name in ("board.yaml", "times.csv", "fitted.yaml"))
    package.new_platform(chip="a311d").write(board)
    table.write_text(TIMES, encoding="utf-8")
    ended = parapipe("platforms", "fit", table, "--platform", board, "--out", out)
    assert ended.code == 0, ended.err
    assert "left out" in ended.out
    assert "not in the table, left as they are: little, npu" in ended.out
    assert parapipe("platforms", "check", out).code == 0
    document = json.loads(parapipe("platforms", "fit", table, "--platform", board, "--json").out)
    assert [each["network"] for each in document["networks"]] == ["alexnet", "squeezenet"] * 2
    assert set(document["median_errors"]) == {"nominal", "fitted", "left_out"}
    again = parapipe("platforms", "fit", table, "--platform", board, "--out", out)
    assert again.code == 0  # equal content is no change
    table.write_text(TIMES.replace("50", "60"), encoding="utf-8")
    refused = parapipe("platforms", "fit", table, "--platform", board, "--out", out)
    assert (refused.code, refused.out) == (1, "")
    assert "--force" in refused.err or "fitted.yaml" in refused.err


def test_fit_with_a_wrong_table_ends_with_one_message(parapipe, tmp_path) -> None:
    board, table = tmp_path / "board.yaml", tmp_path / "times.csv"
    package.new_platform(chip="a311d").write(board)
    table.write_text("network,processor,ms\nalexnet,bigg,1\n", encoding="utf-8")
    ended = parapipe("platforms", "fit", table, "--platform", board)
    assert (ended.code, ended.out) == (1, "")
    assert "times.csv:2" in ended.err
    assert "did you mean 'big'" in ended.err
