"""`parapipe map`: what it prints, what it writes, and what it says when it cannot."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from parapipe import mapper_names
from parapipe.cli.command_line import SETTINGS
from parapipe.cli.map import SECTIONS
from parapipe.cli.map import command as map_command
from parapipe.search.options import option_traits
from tests.cases.branchy import branchy
from tests.cases.full_disk import files_of_at_most

PLATFORM = ("--platform", "amlogic-a311d")
STAGES = ("--interleave", "none")


def test_json_is_one_document_on_standard_output_and_nothing_is_written(
    parapipe, small_model, tmp_path, monkeypatch
) -> None:
    model = small_model()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    ended = parapipe("map", model, *PLATFORM, "--json")
    document = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert document["schema"] == "parapipe/front/1"
    assert document["platform"] == "amlogic-a311d"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_holds_the_front_as_json_and_csv_and_a_plan_of_each_configuration(
    parapipe, small_model, tmp_path
) -> None:
    out = tmp_path / "new" / "folder"
    ended = parapipe("map", small_model(), *PLATFORM, "--json", "--out", out)
    document = json.loads(ended.out)
    assert json.loads((out / "front.json").read_text()) == document
    ids = [row["id"] for row in document["configurations"]]
    with (out / "front.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ids
    assert sorted(path.stem for path in (out / "plans").iterdir()) == sorted(ids)


@pytest.mark.parametrize(("options", "solvers"), [((), {"ortools", "pandas"}), (STAGES, set())])
def test_mapping_a_chain_loads_no_package_that_other_work_needs(
    small_model, tmp_path, options, solvers
) -> None:
    arguments = ["map", str(small_model()), *PLATFORM, "--no-cache", "--out", str(tmp_path / "out")]
    arguments += options
    script = (
        f"import sys; from parapipe.cli.command_line import run; code = run({arguments!r}); "
        "print(code, *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert "onnx" in loaded
    # for the least period of interleaved frames OR-Tools is loaded, which loads pandas
    others = {"matplotlib", "networkx", "onnxruntime", "ortools", "pandas", "pulp"}
    assert others & {*loaded} == solvers


def test_the_same_input_gives_the_same_bytes(parapipe, small_model, tmp_path) -> None:
    for run in ("one", "two"):
        assert parapipe("map", small_model(), *PLATFORM, "--out", tmp_path / run).code == 0
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")]
    assert len(files) > 3
    for file in files:
        if file.name != "solve_log.json":
            assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_text_lists_configurations_sources_of_times_and_files_in_100_columns(
    parapipe, small_model, tmp_path
) -> None:
    out = tmp_path / "out"
    ended = parapipe("map", small_model(), *PLATFORM, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert all(len(line) <= 100 for line in lines if str(out) not in line)
    assert any(re.match(r"c01 +\w+\[1", line) for line in lines)
    assert any(line.startswith("operators (and their time): measured ") for line in lines)


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("f.png", b"\x89PNG"),
        pytest.param("f.SVG", b"<?xml", marks=pytest.mark.nightly),
        pytest.param("f.pdf", b"%PDF", marks=pytest.mark.nightly),
    ],
)
def test_the_front_is_drawn_into_a_file_if_one_is_named(
    parapipe, small_model, tmp_path, name, begin
) -> None:
    path = tmp_path / name
    ended = parapipe("map", small_model(), *PLATFORM, "--figure", path, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert path.read_bytes().startswith(begin)
    assert f"picture: {path}" in ended.out.splitlines()


def test_a_figure_of_no_known_kind_is_refused_before_any_work(
    parapipe, small_model, tmp_path
) -> None:
    ended = parapipe("map", small_model(), *PLATFORM, "--figure", "front.txt", "--out", tmp_path)
    assert ended.code == 1
    assert ended.err == (
        "parapipe: 'front.txt' ends in no kind of picture; name it .png, .pdf, .svg\n"
    )
    assert not (tmp_path / "front.json").exists()


def test_a_figure_may_be_in_a_folder_that_is_not_there_yet(parapipe, small_model, tmp_path) -> None:
    path = tmp_path / "out" / "figures" / "front.svg"
    ended = parapipe("map", small_model(), *PLATFORM, "--figure", path, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert path.is_file()


@pytest.mark.parametrize("in_the_way", ["folder.png", "file/front.png"])
def test_a_figure_that_cannot_be_written_is_refused_before_any_work(
    parapipe, small_model, tmp_path, in_the_way
) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").touch()
    out = tmp_path / "out"
    ended = parapipe(
        "map", small_model(), *PLATFORM, "--figure", tmp_path / in_the_way, "--out", out
    )
    assert ended.code == 1
    assert str(tmp_path / in_the_way.partition("/")[0]) in ended.err
    assert not out.exists()


def test_the_default_folder_is_named_after_model_and_platform(
    parapipe, small_model, tmp_path, monkeypatch
) -> None:
    model = small_model()
    monkeypatch.chdir(tmp_path)
    assert parapipe("map", model, *PLATFORM).code == 0
    assert (tmp_path / "parapipe-out" / "small-amlogic-a311d" / "front.json").is_file()


def test_all_lists_every_configuration(parapipe, small_model, tmp_path) -> None:
    ended = parapipe("map", small_model(), *PLATFORM, "--all", "--out", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "front.json").read_text())
    listed = re.findall(r"^c\d+", ended.out, flags=re.MULTILINE)
    assert listed == [row["id"] for row in document["configurations"]]


def test_without_energy_the_front_trades_latency_and_throughput_only(parapipe, small_model) -> None:
    ended = parapipe(
        "map", small_model(), *PLATFORM, "--json", "--objectives", "latency-throughput"
    )
    document = json.loads(ended.out)
    assert document["options"]["objectives"] == ["latency", "throughput"]
    rows = document["configurations"]
    assert all(row["pareto"] == row["pareto_latency_throughput"] for row in rows)


def test_a_missing_model_is_named(parapipe, tmp_path) -> None:
    complaint = parapipe("map", tmp_path / "no.onnx", *PLATFORM, "--out", tmp_path / "o").complaint
    assert str(tmp_path / "no.onnx") in complaint
    assert not (tmp_path / "o").exists()


def test_an_unknown_platform_is_answered_with_the_shipped_ones(parapipe, small_model) -> None:
    complaint = parapipe("map", small_model(), "--platform", "amlogic-a311").complaint
    assert "amlogic-a311d" in complaint


def test_an_unknown_mapper_is_a_usage_error_with_the_known_ones_and_the_nearest(parapipe) -> None:
    ended = parapipe("map", "no-such-model", *PLATFORM, "--mapper", "corse")
    assert (ended.code, ended.out) == (2, "")
    assert "no mapper 'corse'; choose one of auto, coarse, cpop, " in ended.err
    assert "did you mean 'coarse'?" in ended.err


def test_the_help_lists_all_mappers(parapipe) -> None:
    words = "".join(parapipe("map", "--help").out.split())
    assert f"--mapper[{'|'.join(mapper_names())}]" in words


def test_the_help_lists_options_in_sections_and_each_of_them_once(parapipe) -> None:
    lines = parapipe("map", "--help").out.splitlines()
    headings = [line for line in lines if re.fullmatch(r"[A-Z].*:", line)]
    assert headings == [f"{heading}:" for heading in SECTIONS.values()]
    listed = [flag[1] for line in lines if (flag := re.match(r"  (?:-h, )?(--[a-z-]+)", line))]
    own = [
        max(each.opts, key=len)
        for each in map_command.get_params(click.Context(map_command, **SETTINGS))[1:]
    ]
    assert sorted(listed) == sorted(own)
    assert all(each.section in SECTIONS for each in option_traits().values())
    printed = lines[lines.index(headings[-1]) :]
    assert [line.split()[0] for line in printed[1:]] == ["--all", "--quiet", "--json", "-h,"]


def test_the_commonest_options_are_on_the_first_screen_of_the_help(parapipe, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    screen = parapipe("map", "--help").out.splitlines()[:24]
    for option in ("platform", "out", "budget", "min-fps", "max-latency", "max-energy", "figure"):
        assert any(line.startswith(f"  --{option} ") for line in screen)


def test_a_missing_profile_is_named(parapipe, small_model, tmp_path) -> None:
    profile = tmp_path / "no.csv"
    complaint = parapipe("map", small_model(), *PLATFORM, "--profile", profile).complaint
    assert str(profile) in complaint


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_half_written(
    parapipe, small_model, tmp_path
) -> None:
    # A file stands where the folder should be: not even root can write below it.
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file" / "out", tmp_path / "file"):
        complaint = parapipe("map", small_model(), *PLATFORM, "--out", out).complaint
        assert f"{tmp_path / 'file'}: is a file, not a folder" in complaint
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_full_disk_is_named_and_nothing_is_half_written(parapipe, small_model, tmp_path) -> None:
    out = tmp_path / "out"
    with files_of_at_most(1000):
        ended = parapipe("map", small_model(), *PLATFORM, "--out", out, "--no-cache")
    assert ended.code == 1
    assert "File too large" in ended.err
    assert not out.exists()
    # what was found was shown before it was written
    assert re.search(r"^c01 +\w", ended.out, re.M)
    assert "wrote" not in ended.out


def test_a_folder_in_place_of_a_file_is_named_before_any_work_is_done(
    parapipe, small_model, tmp_path
) -> None:
    out = tmp_path / "out"
    (out / "front.csv").mkdir(parents=True)
    missing = tmp_path / "missing.onnx"
    complaint = parapipe("map", missing, *PLATFORM, "--out", out).complaint
    assert f"{out / 'front.csv'}: cannot be written, a folder has that name" in complaint
    assert [path.name for path in out.iterdir()] == ["front.csv"]


def test_the_files_are_written_even_if_nobody_reads_the_table(small_model, tmp_path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = tmp_path / "out"
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "parapipe.cli.main", "map", small_model(), *PLATFORM,
             "--out", out, "--quiet"],
            stdout=closed, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert (out / "front.json").is_file()


def test_the_solve_log_says_what_each_subproblem_stands_for(
    parapipe, small_model, tmp_path
) -> None:
    out = tmp_path / "out"
    model = small_model("Relu", "Sigmoid", "Tanh")
    assert parapipe("map", model, *PLATFORM, "--out", out, "--granularity", "onnx").code == 0
    log = json.loads((out / "solve_log.json").read_text())
    asked = [place for entry in log for place in entry["asked_for"]]
    assert all(entry["asked_for"] for entry in log)
    keys = ("subgraphs", "first_operator", "last_operator")
    on_gpu = [
        tuple(place[key] for key in keys) for place in asked if place["processors"] == ["gpu"]
    ]
    assert ([1], "t1", "t1") in on_gpu
    first = {
        tuple(place.get("locations_before", ()))
        for place in asked
        if place["first_operator"] == "t0"
    }
    assert first == {()}


def test_in_the_solve_log_problems_alike_share_a_line_with_the_largest_gap(
    parapipe, tmp_path
) -> None:
    out = tmp_path / "out"
    model = branchy(tmp_path / "branchy.onnx")
    command = ("map", model, *PLATFORM, "--out", out, "--time-limit", "0.001", "--no-cache")
    assert parapipe(*command, "--interleave", "none", "--jobs", "1").code == 0
    log = json.loads((out / "solve_log.json").read_text())
    assert sum(entry["problems"] for entry in log) > 2 * len(log)
    for entry in log:
        assert entry["requests"] >= entry["problems"] > 0
        (place,) = entry["asked_for"]
        stated = {"locations_before", "locations_behind"} <= place.keys()
        assert stated == (entry["problems"] == 1 or entry["gap"] > 0)
    assert {entry["gap"] > 0 for entry in log} == {True, False}


def test_the_solve_log_does_not_repeat_itself_for_blocks_that_repeat(
    parapipe, small_model, tmp_path
) -> None:
    """Twenty equal Relus ask for what one asks for: no more entries, each a line, and counted."""
    out, entries = tmp_path / "out", []
    for operators in (10, 20):
        model = small_model(*["Relu"] * operators)
        command = ("map", model, *PLATFORM, "--out", out, "--granularity", "onnx")
        assert parapipe(*command, "--interleave", "none").code == 0
        text = (out / "solve_log.json").read_text()
        log = json.loads(text)
        assert len(text.splitlines()) == len(log) + 2
        assert all(len(entry["asked_for"]) <= 1 for entry in log)
        entries.append({entry["proves"]: 0 for entry in log} | {"all": len(log)})
        assert max(entry["requests"] for entry in log) >= operators - 2
    assert entries[0] == entries[1]


def test_googlenet_on_the_a311d_has_a_front_with_every_named_configuration(
    parapipe, tmp_path: Path
) -> None:
    ended = parapipe("map", "zoo:googlenet", *PLATFORM, "--json")
    document = json.loads(ended.out)
    named = {name: row for row in document["configurations"] for name in row["names"]}
    kinds = {"sequential", "pipe-only", "para-only", "hybrid-L", "hybrid-T", "interleaved-T"}
    assert kinds | {"balanced", "most-efficient"} <= named.keys()
    for processor, milliseconds in (("big", 126.6), ("gpu", 100.3), ("little", 310.8)):
        alone = named[f"{processor}-alone"]
        assert alone["latency_s"] * 1e3 == pytest.approx(milliseconds, rel=0.011)
        assert alone["period_s"] == alone["latency_s"]


def test_a_rule_that_fits_no_operator_is_noted(parapipe, small_model, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "schema: parapipe/rules/1\nrules:\n- {type: Sigmoyd, macs: 1, source: guessed}\n"
    )
    named = ("--platform", "amlogic-a311d", "--rules", rules)
    told = "the rule for Sigmoyd fits no operator of the model; did you mean 'Sigmoid'?"
    for command in (("map", "--quiet", "--out", tmp_path / "out"), ("inspect",)):
        ended = parapipe(command[0], small_model(), *command[1:], *named)
        assert ended.code == 0
        assert ended.err == f"parapipe: note: rules file '{rules}': {told}\n"
