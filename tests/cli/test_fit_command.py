"""`parapipe fit`."""

import json
from pathlib import Path

import pytest
import yaml

HEADER = "processor,frequency_hz,voltage_v,power_w,idle_power_w\n"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Write samples of a processor of 1 nW per V²·Hz and 0.25 W per V on a board of 2 W."""
    path = tmp_path / "samples.csv"
    points = ((1e9, 0.8), (1.5e9, 1.0), (2e9, 1.2))
    lines = [f"npu,{f:g},{v},{2 + 1e-9 * v * v * f + 0.25 * v:.6f},2" for f, v in points]
    path.write_text(HEADER + "\n".join(lines))
    return path


def test_the_power_section_that_is_printed_can_be_pasted(parapipe, samples) -> None:
    ended = parapipe("fit", "power", samples)
    assert ended.code == 0
    assert "# npu: 3 samples at 3 operating points, median error 0.0 %" in ended.out
    assert "# each operating point left out in turn: median error 0.0 %" in ended.out
    document = yaml.safe_load(ended.out)
    assert float(document["power"]["alpha_w_per_v2_hz"]) == pytest.approx(1e-9)
    assert document["power"]["beta_w_per_v"] == pytest.approx(0.25)
    assert document["power"]["source"] in document


def test_too_few_samples_to_know_the_error_of_power_are_told(parapipe, samples) -> None:
    samples.write_text("\n".join(samples.read_text().splitlines()[:3]))
    ended = parapipe("fit", "power", samples)
    assert "# npu: 2 samples at 2 operating points, error unknown: no more samples" in ended.out
    (fit,) = json.loads(parapipe("fit", "power", samples, "--json").out)["processors"]
    assert (fit["errors"], fit["left_out_errors"]) == (None, None)


def test_a_fit_of_power_as_json_holds_the_same(parapipe, samples) -> None:
    (fit,) = json.loads(parapipe("fit", "power", samples, "--json").out)["processors"]
    assert fit["processor"] == "npu"
    assert fit["beta_w_per_v"] == pytest.approx(0.25)
    assert fit["left_out_errors"]["largest"] < 1e-4


def test_samples_that_are_wrong_are_told_in_one_line(parapipe, tmp_path) -> None:
    path = tmp_path / "no.csv"
    assert "table of power samples" in parapipe("fit", "power", path).complaint
    path.write_text(HEADER + "npu,1e9,0.8,1,2\n")
    assert "not above idle" in parapipe("fit", "power", path).complaint


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Write a profile of activations that take 10 µs and 1 ns a byte."""
    path = tmp_path / "board" / "mine.csv"
    path.parent.mkdir()
    columns = "type,kernel,strides,attributes,inputs,output,dtype,class,macs,size_bytes,processor,"
    rows = [
        f"Relu,,,,{n},{n},float32,elementwise,0,{8 * n},npu,1e9,{1e-5 + 8e-9 * n:.9f},1,0,timed"
        for n in range(1000, 31000, 1000)
    ]
    path.write_text("\n".join([f"{columns}frequency_hz,time_s,rows,spread,method", *rows]))
    return path


def test_a_fit_of_times_prints_errors_and_rates_and_writes_a_record(parapipe, profile) -> None:
    record = profile.with_suffix(".fit.json")
    ended = parapipe("fit", "times", profile, "--out", record)
    assert ended.code == 0
    assert ended.out.startswith(
        "board/mine: errors of operators, each tenth of the operators left out in turn"
    )
    assert "1.00" in ended.out  # GB/s
    document = json.loads(parapipe("fit", "times", profile, "--json").out)
    assert document == json.loads(record.read_text())
    assert document["errors"][0]["median"] < 1e-4


def test_a_record_that_cannot_be_written_is_told(parapipe, profile) -> None:
    ended = parapipe("fit", "times", profile, "--out", profile.parent / "no" / "fit.json")
    assert "cannot be written" in ended.complaint
