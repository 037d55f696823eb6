"""`parapipe map` of several models: the table, and plans that other commands take."""

import json
import re

import numpy as np
import pytest

from tests.cases.small_models import parsed
from tests.cases.small_network import saved

TWO = ("--rate", "detect=40", "--rate", "read=20", "--quiet", "--objectives", "latency-throughput")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    text = "agraph (float[1,8] x) => (float[1,8] y) { s = MatMul(x, w) y = Relu(s) }"
    weights = np.random.default_rng(0).random((8, 8), np.float32)
    read = folder / "read.onnx"
    read.write_bytes(parsed(text, opset=14, w=weights).SerializeToString())
    return f"detect={saved(folder)}", str(read)


def test_the_table_and_plans_that_verify_simulate_report_and_export_take(
    parapipe, models, tmp_path
):
    front = tmp_path / "front"
    asked = ("--deadline", "detect=80ms", "--priority", "read=2", "--out", front)
    ended = parapipe("map", *models, "--platform", "amlogic-a311d", *TWO, *asked)
    assert ended.code == 0, ended.err
    assert "the plans repeat every 100 ms, with these frames: 2 of read, 4 of detect" in ended.out
    assert re.search(r"most growth: c\d+, [\d.]+ times the rates that are asked\.", ended.out)
    legend = ended.out.split("\n\n")[-1].partition("the plans repeat")[0]
    assert [line.partition(":")[0] for line in legend.splitlines()] == ["ms", "×"]
    assert "one model after the other on all processors:" in ended.out
    plan = next((front / "plans").glob("*.json"))
    verified = parapipe("verify", plan).out
    assert "keeps every rule" in verified
    assert "throughput  10 patterns/s; " in verified
    assert " mJ per pattern; " in verified
    assert "of detect: 40 frames/s, " in verified
    assert " per frame" not in verified
    told = [line.split() for line in parapipe("simulate", plan).out.splitlines()]
    assert ["patterns", "100,"] in [line[:2] for line in told]
    assert ["patterns/s", "10.00", "10.00"] in [line[:3] for line in told]
    assert "40.00" in next(line for line in told if line[:1] == ["detect"])
    assert "frames/s" not in [line[0] for line in told if line]
    sustained = parapipe("pick", front, "--sustained").out
    assert "patterns/s at" in sustained
    assert "mJ per pattern" in sustained
    assert "frames/s" not in sustained
    drawn = parapipe("simulate", plan, "--random-arrivals", "--seed", "1", "--frames", "50").out
    assert "at random" in drawn
    assert "turns used %" in drawn
    assert "W at the rates that are asked" in parapipe("pick", front).out
    assert parapipe("report", front).code == 0
    exported = parapipe("export", plan, tmp_path / "board", "--to", "onnxruntime")
    assert exported.code == 0, exported.err
    assert " mJ per pattern." in (tmp_path / "board" / "README.md").read_text()
    assert parapipe("export", plan, tmp_path / "cut", "--to", "segments").code == 0
    explained = parapipe("explain", front)
    assert (explained.code, explained.out) == (1, "")
    assert "several models cannot be explained yet" in explained.err


@pytest.mark.nightly
def test_its_command_makes_the_same_front_again(parapipe, models):
    command = ("map", *models, "--platform", "amlogic-a311d", *TWO, "--json")
    first = json.loads(parapipe(*command).out)
    words = [word for word in first["command"].split()[1:] if word]
    assert "--deadline" not in words
    again = json.loads(parapipe(*words, "--json", "--quiet").out)
    for row in (*first["configurations"], *again["configurations"]):
        row.pop("memories")
    assert first["configurations"] == again["configurations"]


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        (("--rate", "detect=fast"), 2, "'fast' is not a number in fps, as in 30"),
        (("--rate", "detect=30"), 1, "give a rate for 'read', as in read=30"),
        ((), 1, "give a rate for 'detect', 'read'"),
    ],
)
def test_rates_that_are_missing_or_none_are_said_in_one_line(parapipe, models, asked, code, told):
    ended = parapipe("map", *models, "--platform", "amlogic-a311d", *asked)
    assert ended.code == code
    assert told in ended.err
