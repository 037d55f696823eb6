"""`parapipe map --max-memory` and memory as an objective: what is shown and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parapipe.plan.schema import Plan
from tests.cases.nightly import nightly_from

MAP = ("map", "zoo:squeezenet", "--platform", "amlogic-a311d")
TWO = ("--objectives", "latency-throughput", "--resolution", "0.05")


def rows_of(folder):
    return json.loads((folder / "front.json").read_text())["configurations"]


@pytest.fixture
def limited(parapipe, tmp_path):
    ended = parapipe(*MAP, *TWO, "--max-memory", "9.5MB", "--out", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    return tmp_path, ended.out


def test_what_is_written_keeps_the_limit_and_says_so(limited, parapipe) -> None:
    folder, told = limited
    rows = rows_of(folder)
    assert all(row["peak_memory_bytes"] <= 9.5e6 for row in rows)
    assert all(row["memories"][0]["peak_bytes"] == row["peak_memory_bytes"] for row in rows)
    assert "memory: at most 9.5 MB (--max-memory)" in told
    assert "peak: memory (" in told
    for row in rows:
        Plan.load(folder / "plans" / f"{row['id']}.json")
        assert parapipe("verify", folder / "plans" / f"{row['id']}.json").code == 0


@pytest.mark.nightly
def test_the_command_in_front_json_makes_the_front_again(limited, parapipe, tmp_path) -> None:
    folder, _ = limited
    command = json.loads((folder / "front.json").read_text())["command"]
    assert "--max-memory 9500000B" in command
    again = tmp_path / "again"
    assert parapipe(*command.split()[1:], "--out", again).code == 0
    assert (again / "front.csv").read_bytes() == (folder / "front.csv").read_bytes()


@pytest.mark.nightly
def test_a_row_is_explained_by_what_is_alive_at_its_peak(limited, parapipe) -> None:
    folder, _ = limited
    (row, *_) = rows_of(folder)
    document = json.loads(parapipe("explain", folder, row["id"], "--json").out)
    text, arena = [each["text"] for each in document["reasons"] if each["about"] == "memory"]
    (found,) = json.loads((folder / "plans" / f"{row['id']}.json").read_text())["memory"]["arenas"]
    assert f"in an arena of {found['size_bytes'] / 1e6:.4g} MB (no arena is smaller)" in arena
    assert f"at most {row['peak_memory_bytes'] / 1e6:.4g} MB" in text
    assert row["memories"][0]["alive"][0]["name"] in text
    (bound,) = [each["text"] for each in document["reasons"] if each["about"] == "bound"]
    assert "is not proven" in bound


def test_pick_takes_the_same_limit(parapipe, tmp_path) -> None:
    assert parapipe(*MAP, *TWO, "--out", tmp_path).code == 0
    fits = [row for row in rows_of(tmp_path) if row["peak_memory_bytes"] <= 9.5e6]
    asked = ("--max-memory", "9.5MB", "--minimise", "period", "--json")
    picked = json.loads(parapipe("pick", tmp_path, *asked).out)["configuration"]
    assert picked["period_s"] == min(row["period_s"] for row in fits)
    least = min(row["peak_memory_bytes"] for row in rows_of(tmp_path))
    thriftiest = json.loads(parapipe("pick", tmp_path, "--minimise", "memory", "--json").out)
    assert thriftiest["configuration"]["peak_memory_bytes"] == least


def test_nothing_fits_is_one_line_that_says_how_little_would_do(parapipe) -> None:
    complaint = parapipe(*MAP, *TWO, "--max-memory", "1MB", "--json").complaint
    assert "needs 9.014 MB instead of 1 MB; 4.941 MB of it are weights" in complaint
    assert "no mapping needs less than 9.013 MB" in complaint


def test_memory_as_an_objective_names_the_thriftiest_and_answers_for_it(parapipe, tmp_path) -> None:
    objectives = ("--objectives", "latency-throughput-memory", "--resolution", "0.05")
    ended = parapipe(*MAP, *objectives, "--out", tmp_path)
    assert ended.code == 0
    rows = rows_of(tmp_path)
    (named,) = [row for row in rows if "least-memory" in row["names"]]
    assert named["peak_memory_bytes"] == min(row["peak_memory_bytes"] for row in rows)
    assert f"for memory {named['id']}" in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["64"], "'64' has no unit: give one, as in 64MB or 64GB"),
        (["dram=x"], "'x' is not a number in MB or GB or kB or B or KiB or MiB or GiB"),
        (["=1MB"], "'=1MB' names no memory: give 64MB or NAME=64MB"),
        (["0MB"], "'0MB' is not positive and finite, as 64MB is"),
        (["1MB", "2MB"], "the size of all memories together is given twice: say which"),
        (["a=1MB", "a=2MB"], "'a' is given twice: say which"),
        (["1MB", "a=2MB"], "give one size for all memories together, or sizes by name, not both"),
    ],
)
def test_a_limit_in_a_wrong_form_is_a_usage_error(parapipe, given, words) -> None:
    ended = parapipe(*MAP, *(word for each in given for word in ("--max-memory", each)))
    assert ended.code == 2
    assert words in " ".join(ended.err.split())


def test_an_empty_path_is_a_usage_error(parapipe) -> None:
    ended = parapipe(*MAP, "--out", "")
    assert ended.code == 2
    assert "Invalid value for '--out': the path is empty" in ended.err


def test_plans_under_a_limit_lie_in_arenas_that_keep_it(limited) -> None:
    folder, _ = limited
    for row in rows_of(folder):
        (arena,) = Plan.load(folder / "plans" / f"{row['id']}.json").memory.arenas
        assert arena.size_bytes + row["memories"][0]["weights_bytes"] <= 9.5e6


def test_a_memory_that_the_platform_does_not_state_is_named(parapipe) -> None:
    complaint = parapipe(*MAP, "--max-memory", "dram=64MB").complaint
    assert "no memory 'dram'; it has 'shared memory assumed'" in complaint


def stating_memories(path, free_bytes):
    """The A311D's file with two memories."""
    text = (Path(__file__).parents[2] / "platforms" / "amlogic-a311d.yaml").read_text()
    first = (
        f"{{name: dram, processors: [big, little], free_bytes: {free_bytes}, source: tinymembench}}"
    )
    second = "{name: local, processors: [gpu], alignment_bytes: 64, source: tinymembench}"
    memories = f"memories: [{first}, {second}]\nprocessors:\n"
    path.write_text(text.replace("processors:\n", memories, 1))
    return path


@pytest.mark.nightly
def test_two_memories_are_told_apart_limited_apart_and_what_is_free_is_compared(
    parapipe, tmp_path
) -> None:
    platform = stating_memories(tmp_path / "two.yaml", 2e6)
    model = ("map", "zoo:squeezenet", "--platform", platform)
    ended = parapipe(*model, *TWO, "--out", tmp_path / "all")
    assert (ended.code, ended.err) == (0, "")
    rows = rows_of(tmp_path / "all")
    more = sum(row["memories"][0]["peak_bytes"] > 2e6 for row in rows)
    assert 0 < more < len(rows)
    told = f"{more} of {len(rows)} configurations need more than the 2 MB that are free in dram"
    assert told in " ".join(ended.out.split())
    (alone,) = [row for row in rows if "gpu-alone" in row["names"]]
    assert alone["memories"][0]["peak_bytes"] == 0
    picked = parapipe("pick", tmp_path / "all", "--max-memory", "dram=2MB", "--json")
    fitting = [row for row in rows if row["memories"][0]["peak_bytes"] <= 2e6]
    fastest = min(fitting, key=lambda row: row["latency_s"])
    assert json.loads(picked.out)["configuration"]["id"] == fastest["id"]
    complaint = parapipe("pick", tmp_path / "all", "--max-memory", "drm=2MB").complaint
    assert "no memory 'drm'; it has 'dram', 'local'; did you mean 'dram'?" in complaint
    limited = parapipe(*model, *TWO, "--max-memory", "dram=2MB", "--out", tmp_path / "few")
    assert limited.code == 0
    assert all(row["memories"][0]["peak_bytes"] <= 2e6 for row in rows_of(tmp_path / "few"))
    assert "configurations need more" not in limited.out
    assert "memory: at most 2 MB in dram (--max-memory)" in limited.out
    page = parapipe("report", tmp_path / "few")
    assert page.code == 0


@pytest.mark.parametrize("limit", nightly_from(1, ["12MB", "14MB"]))
def test_arenas_of_two_memories_keep_a_limit_of_both_as_peaks_do(parapipe, tmp_path, limit) -> None:
    platform = stating_memories(tmp_path / "two.yaml", 20e6)
    model = ("map", "zoo:squeezenet", "--platform", platform)
    assert parapipe(*model, *TWO, "--max-memory", limit, "--out", tmp_path / "few").code == 0
    shared = 0
    for row in rows_of(tmp_path / "few"):
        arenas = Plan.load(tmp_path / "few" / "plans" / f"{row['id']}.json").memory.arenas
        weights = sum(each["weights_bytes"] for each in row["memories"])
        # peaks may come at different moments; each arena holds its own
        most = max(1e6 * float(limit[:-2]), sum(each["peak_bytes"] for each in row["memories"]))
        assert weights + sum(each.size_bytes for each in arenas) <= most
        shared += all(each.size_bytes for each in arenas)
    assert shared
