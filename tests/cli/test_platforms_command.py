"""`parapipe platforms`."""

import json
import re
from pathlib import Path

import parapipe as package

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
