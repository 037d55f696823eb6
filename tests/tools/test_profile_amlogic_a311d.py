"""The profile of the A311D is what its script makes of the measured tables."""

import csv
import subprocess
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import median_low

import pytest

from tools.states_amlogic_a311d import BIG_SLOWER_IN_2025, RUN_2024, STATES

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
    for platform, name in product(STATES, ("armcl-f32.csv", "armcl-f32.rows.csv")):
        made = (tmp_path / platform / name).read_bytes()
        assert made == (FOLDER.parent / platform / name).read_bytes()


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
        factor = BIG_SLOWER_IN_2025 if processor == "big" and line["run"] == RUN_2024 else 1
        block_s = float(line["time_ms"]) / 1e3 * factor
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
def test_whole_networks_cost_what_the_board_took_in_its_state_within_a_hundredth(
    rows, profile, processor
):
    time_s = {
        signature(line): float(line["time_s"]) for line in profile if line["processor"] == processor
    }
    for model, measured_ms in MILLISECONDS[processor].items():
        earlier = processor == "big" and model in ("GoogLeNet", "Inception-v3")
        milliseconds = measured_ms * (BIG_SLOWER_IN_2025 if earlier else 1)
        total_s = sum(time_s[signature(row)] for row in rows if row["model"] == model)
        assert total_s * 1e3 == pytest.approx(milliseconds, rel=0.011)


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


def test_only_times_of_the_gpu_are_apportioned_and_only_some_on_big_are_scaled(profile):
    methods = {(line["processor"], line["method"]) for line in profile}
    assert methods == {
        ("big", "timed"), ("big", "scaled"), ("little", "timed"), ("gpu", "apportioned"),
    }  # fmt: skip


def test_what_is_scaled_says_so_and_is_a_time_of_2024_times_the_factor(rows, profile):
    (raw,) = [folder for folder in STATES if folder != FOLDER.name]
    with (FOLDER.parent / raw / "armcl-f32.rows.csv").open(newline="") as file:
        before = list(csv.DictReader(file))
    assert len(before) == len(rows)
    for row, as_measured in zip(rows, before, strict=True):
        earlier = row["model"] == "GoogLeNet" or row["model"].startswith("Inception")
        factor = float(row["big_factor"] or 1)
        assert factor == (BIG_SLOWER_IN_2025 if earlier else 1)
        assert float(row["big_s"]) == pytest.approx(float(as_measured["big_s"]) * factor, abs=2e-9)
        assert row["little_s"] == as_measured["little_s"]
        assert row["gpu_s"] == as_measured["gpu_s"]
    newer = {signature(row) for row in rows if not row["big_factor"]}
    for line in profile:
        if line["processor"] == "big" and signature(line) not in newer:
            assert line["method"] == "scaled"


def test_the_2024_profile_has_nothing_scaled():
    (raw,) = [folder for folder in STATES if folder != FOLDER.name]
    with (FOLDER.parent / raw / "armcl-f32.csv").open(newline="") as file:
        assert {line["method"] for line in csv.DictReader(file)} == {"timed", "apportioned"}
