"""`parapipe map --max-segments` and `pick --max-segments`: what is shown and what is written."""

from __future__ import annotations

import json

import pytest

MAP = ("map", "zoo:squeezenet", "--platform", "amlogic-a311d")
TWO = ("--objectives", "latency-throughput", "--resolution", "0.05")


def rows_of(folder):
    return json.loads((folder / "front.json").read_text())["configurations"]


def segments_of(row):
    return {p["name"]: p["segments"] for stage in row["stages"] for p in stage["processors"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("segments")


@pytest.fixture
def limited(parapipe, folder):
    if not (folder / "front.json").exists():
        ended = parapipe(*MAP, *TWO, "--max-segments", "2", "--out", folder)
        assert (ended.code, ended.err) == (0, "")
        (folder / "told.txt").write_text(ended.out)
    return folder, (folder / "told.txt").read_text()


def test_what_is_written_keeps_the_limit_and_says_so(limited, parapipe) -> None:
    folder, told = limited
    for row in rows_of(folder):
        assert max(segments_of(row).values()) == row["most_segments"] <= 2
        assert "load_s" not in row  # this board says nothing of loading
        assert parapipe("verify", folder / "plans" / f"{row['id']}.json").code == 0
    assert "segments: at most 2 on each processor (--max-segments)" in told
    assert "of frames that take turns only what was found without that limit" in told


def test_the_command_in_front_json_makes_the_front_again(limited, parapipe, tmp_path) -> None:
    folder, _ = limited
    command = json.loads((folder / "front.json").read_text())["command"]
    assert "--max-segments 2" in command
    assert parapipe(*command.split()[1:], "--out", tmp_path / "again").code == 0
    again = (tmp_path / "again" / "front.csv").read_bytes()
    assert again == (folder / "front.csv").read_bytes()


def test_explain_counts_them(limited, parapipe) -> None:
    folder, _ = limited
    row = rows_of(folder)[0]
    document = json.loads(parapipe("explain", folder, row["id"], "--json").out)
    (text,) = [each["text"] for each in document["reasons"] if each["about"] == "segments"]
    counts = segments_of(row)
    assert f"It has {sum(counts.values())} segment" in text
    assert all(f"{name} {count}" in text for name, count in counts.items())


def test_pick_takes_the_demand(limited, parapipe) -> None:
    folder, _ = limited
    picked = parapipe("pick", folder, "--max-segments", "1", "--minimise", "period", "--json")
    (row,) = [
        each
        for each in rows_of(folder)
        if each["id"] == json.loads(picked.out)["configuration"]["id"]
    ]
    assert row["most_segments"] == 1


@pytest.mark.parametrize("given", ["0", "1.5", "big=", "=3", "big=2 big=3"])
def test_what_is_no_number_of_segments_is_a_usage_error(given, parapipe) -> None:
    words = [word for each in given.split() for word in ("--max-segments", each)]
    ended = parapipe(*MAP, *words)
    assert ended.code == 2
    assert "--max-segments" in ended.err
