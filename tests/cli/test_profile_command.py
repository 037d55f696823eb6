"""`parapipe profile` and `parapipe platforms detect` on the command line."""

import json

import pytest

from parapipe import load_platform
from parapipe.cli.command_line import run


@pytest.mark.parametrize(
    "arguments",
    [
        ["profile", "--platform", "p.yaml"],
        ["profile", "m.onnx"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--import", "r.csv", "--again"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--processor", "cpu"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--precision", "int8"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--bundle", "out", "--again"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--bundle", "out", "--operators-only"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--bundle", "out", "--out", "p.csv"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--from-run", "r.json", "--again"],
        ["profile", "--platform", "p.yaml", "--from-run", "r.json"],
        ["profile", "m.onnx", "--platform", "p.yaml", "--from-run", "r.json", "--parts"],
        ["profile", "--platform", "p.yaml", "--import", "r.csv", "--parts"],
        ["platforms", "detect", "--split", "0"],
        ["platforms", "detect", "--processors", "a;b"],
        ["platforms", "detect", "--split", "2", "--processors", "0;1"],
    ],
    ids=" ".join,
)
def test_a_wrong_use_has_exit_code_2(arguments):
    assert run(arguments) == 2


def test_a_core_that_is_not_there_is_told_in_one_line(parapipe):
    complaint = parapipe("platforms", "detect", "--processors", "4000").complaint
    assert "core 4000 is not among" in complaint


def test_the_detected_platform_is_checked_mapped_and_profiled(parapipe, small_model, tmp_path):
    file = tmp_path / "here.yaml"
    found = parapipe("platforms", "detect", "--out", file, "--name", "here", "--watch", 1)
    assert found.code == 0
    assert "power is not known" in found.err
    assert parapipe("platforms", "check", file).code == 0
    measured = parapipe("profile", small_model(), "--platform", file, "--json", "--quiet")
    report = json.loads(measured.out)
    assert report["measured"] >= 3
    mapped = parapipe("map", small_model(), "--platform", file, "--json", "--quiet")
    assert json.loads(mapped.out)["coverage"]["measured"]["operators"] == 1.0
    assert "rests on nominal power" in mapped.err


@pytest.mark.nightly
def test_the_loop_closes_profile_map_run_compare_and_learn(parapipe, small_model, tmp_path):
    model, file, front = (
        small_model(shape=(1, 8, 64, 64)),
        tmp_path / "here.yaml",
        tmp_path / "front",
    )
    options = ("--name", "here", "--split", 2, "--watch", 1)
    assert parapipe("platforms", "detect", "--out", file, *options).code == 0
    target = load_platform(file)
    assert all(link.overhead_s > 0 and link.bandwidth_bytes_per_s for link in target.links)
    assert target.spread.state > 0
    assert target.spread.hand_overs > 0 or not target.links
    assert parapipe("profile", model, "--platform", file, "--quiet").code == 0
    assert parapipe("map", model, "--platform", file, "--out", front, "--quiet").code == 0
    rows = json.loads((front / "front.json").read_text())["configurations"]
    (plan,) = (
        front / "plans" / f"{row['id']}.json" for row in rows if "sequential" in row["names"]
    )
    ran = parapipe("run", plan, "--frames", 20, "--json", "--quiet")
    (tmp_path / "run.json").write_text(ran.out)
    compared = json.loads(parapipe("compare", plan, tmp_path / "run.json", "--json").out)
    assert {pair["metric"] for pair in compared["pairs"]} >= {"work of a processor"}
    learned = parapipe(
        "profile", model, "--platform", file, "--from-run", tmp_path / "run.json", "--json"
    )
    report = json.loads(learned.out)
    assert report["path"] == str(tmp_path / "profiles" / "here" / "onnxruntime.csv")
    processors = json.loads((front / "front.json").read_text())["processors"]
    assert report["measured"] == 3 * len(processors)
    assert parapipe("map", model, "--platform", file, "--out", front, "--quiet").code == 0
    named = ["explain", front, "sequential", "--operator", "t2"]
    assert "onnxruntime, run" in parapipe(*named).out
