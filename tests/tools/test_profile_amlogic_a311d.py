"""The profile of the A311D is what its script makes of the measured tables."""

import csv
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median_low

import pytest

FOLDER = Path(__file__).parents[2] / "profiles" / "amlogic-a311d"
MILLISECONDS = {  # of the whole network, in blocks.csv
    "big": {"AlexNet": 105.5, "GoogLeNet": 113.9, "Inception-v3": 349.2, "MobileNet-v1": 65.8},
    "little": {"AlexNet": 212.9, "GoogLeNet": 310.8, "Inception-v3": 985.8, "MobileNet-v1": 156.5},
    "gpu": {"AlexNet": 97.9, "GoogLeNet": 100.3, "Inception-v3": 352.0, "MobileNet-v1": 71.2},
}


def table(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def rows():
    return table("armcl-f32.rows.csv")


@pytest.fixture(scope="module")
def profile():
    return table("armcl-f32.csv")


def signature(line):
    columns = ("type", "kernel", "strides", "attributes", "inputs", "output", "dtype")
    return tuple(line[column] for column in columns)


def test_the_script_makes_the_committed_files_byte_for_byte(tmp_path):
    script = [sys.executable, "-m", "tools.profile_amlogic_a311d", "--out", tmp_path]
    subprocess.run(script, check=True, capture_output=True, cwd=FOLDER.parents[1])
    for name in ("armcl-f32.csv", "armcl-f32.rows.csv"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("processor", ["big", "little", "gpu"])
def test_the_rows_of_each_block_add_up_to_the_time_of_the_block(rows, processor):
    summed = defaultdict(float)
    for row in rows:
        summed[row["model"], row["block"]] += float(row[f"{processor}_s"])
    blocks = [
        line
        for line in table("measured/blocks.csv")
        if (line["metric"], line["processor"]) == ("task", processor)
    ]
    assert len(blocks) == len(summed) == 141
    for line in blocks:
        block_s = float(line["time_ms"]) / 1e3
        assert summed[line["model"], line["block"]] == pytest.approx(block_s, abs=1e-6)


@pytest.mark.parametrize("processor", ["big", "little", "gpu"])
def test_a_time_in_the_profile_is_the_median_of_its_rows(rows, profile, processor):
    times = defaultdict(list)
    for row in rows:
        times[signature(row)].append(float(row[f"{processor}_s"]))
    lines = [line for line in profile if line["processor"] == processor]
    assert {signature(line) for line in lines} == set(times)
    for line in lines:
        group = times[signature(line)]
        assert float(line["time_s"]) == pytest.approx(median_low(group), abs=2e-9)
        assert int(line["rows"]) == len(group)


@pytest.mark.parametrize("processor", ["big", "little", "gpu"])
def test_whole_networks_as_measured_cost_what_the_board_took_within_a_hundredth(
    rows, profile, processor
):
    time_s = {
        signature(line): float(line["time_s"]) for line in profile if line["processor"] == processor
    }
    for model, milliseconds in MILLISECONDS[processor].items():
        total_s = sum(time_s[signature(row)] for row in rows if row["model"] == model)
        assert total_s * 1e3 == pytest.approx(milliseconds, rel=0.01)


def test_the_mislabelled_convolutions_of_inception_are_3x3_with_stride_2(rows):
    layers = [
        row
        for row in rows
        if row["model"] == "Inception-v3"
        and row["layer"].startswith("Mixed_6a/")
        and row["layer"].endswith("Conv2d_1a_1x1/convolution")
    ]
    assert [(r["kernel"], r["strides"], r["inputs"]) for r in layers] == [
        ("3x3", "2x2", "288x35x35"),
        ("3x3", "2x2", "96x35x35"),
    ]


def test_only_times_of_the_gpu_are_apportioned(profile):
    methods = {(line["processor"], line["method"]) for line in profile}
    assert methods == {("big", "timed"), ("little", "timed"), ("gpu", "apportioned")}
