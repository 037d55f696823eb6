"""`parapipe compilers`."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cases.stand_in_compiler import LOGS, VARIABLE, StandIn


@pytest.fixture(autouse=True)
def _own_settings(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARAPIPE_CONFIG", str(tmp_path / "settings"))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def tool(tmp_path, monkeypatch) -> StandIn:
    (tmp_path / "tool").mkdir()
    return StandIn(tmp_path / "tool", monkeypatch, "left_to_the_cpu")


def test_compilers_alone_lists_them(parapipe) -> None:
    assert parapipe("compilers") == parapipe("compilers", "list")


def test_one_that_is_not_installed_is_listed_with_the_way_out(parapipe) -> None:
    (row,) = json.loads(parapipe("compilers", "list", "--json").out)["compilers"]
    assert row["targets"] == ["rk3562", "rk3566", "rk3568", "rk3576", "rk3588"]
    assert (row["name"], row["prices"], row["python"], row["version"]) == ("rknn", True, None, None)
    assert "parapipe compilers use rknn --python PATH" in row["problem"]


def test_a_python_that_has_the_compiler_is_kept(parapipe, tool, monkeypatch) -> None:
    python = tool.folder / "python"
    monkeypatch.delenv(VARIABLE)
    assert parapipe("compilers", "use", "rknn", "--python", python).out == (
        f"rknn 0.0 is used from {python}\n"
    )
    (row,) = json.loads(parapipe("compilers", "list", "--json").out)["compilers"]
    assert (row["python"], row["version"], row["problem"]) == (str(python), "0.0", "")


def test_a_python_without_the_compiler_changes_no_settings(parapipe, tool, monkeypatch) -> None:
    python = tool.folder / "python"
    monkeypatch.delenv(VARIABLE)
    assert parapipe("compilers", "use", "rknn", "--python", python).code == 0
    ended = parapipe("compilers", "use", "rknn", "--python", sys.executable)
    assert "has no rknn-toolkit2" in ended.complaint
    (row,) = json.loads(parapipe("compilers", "list", "--json").out)["compilers"]
    assert row["python"] == str(python)


def test_the_variable_goes_before_the_settings(parapipe, tool, tmp_path, monkeypatch) -> None:
    assert parapipe("compilers", "use", "rknn", "--python", tool.folder / "python").code == 0
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other"))
    (row,) = json.loads(parapipe("compilers", "list", "--json").out)["compilers"]
    assert str(tmp_path / "other") in row["problem"]


@pytest.mark.parametrize("words", [("use", "rkn", "--python", "p"), ("check", "rkn")])
def test_a_compiler_that_there_is_not_is_answered_with_those_there_are(parapipe, words) -> None:
    complaint = parapipe("compilers", *words).complaint
    assert "there is no compiler 'rkn': choose from rknn" in complaint


def test_what_is_no_program_is_no_python(parapipe, tmp_path) -> None:
    for path in (tmp_path, tmp_path / "no", LOGS / "gelu.txt"):
        complaint = parapipe("compilers", "use", "rknn", "--python", path).complaint
        assert complaint.endswith(f"{path}: is no program; give the path of a Python interpreter")


@pytest.mark.parametrize("text", ["[", "- rknn", "rknn: 3", "rknn: {python: [1]}", "a: 2026-01-01"])
def test_damaged_settings_are_named(parapipe, tmp_path, text) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "compilers.yaml").write_text(text)
    assert "compilers.yaml: " in parapipe("compilers", "list").complaint


def test_compile_prints_rows_memory_and_what_runs_on_the_cpu(parapipe, tool, tmp_path) -> None:
    out = tmp_path / "out.rknn"
    words = ("compilers", "compile", tool.segment(), "--compiler", "rknn", "--target", "rk3588")
    lines = parapipe(*words, "--out", out).out.splitlines()
    assert any(line.split() == ["Conv", "NPU", "FLOAT16", "2,304", "5", "conv"] for line in lines)
    assert any(line.split() == ["LRN", "CPU", "FLOAT16", "-", "4", "lrn"] for line in lines)
    assert "2,304 cycles in 1 rows; 2 rows are not priced" in lines
    assert "memory of the NPU: 3 kB of weights, 12 kB of activations" in lines
    assert "on the CPU: lrn (LRN): the compiler gives no reason" in lines
    assert lines[-1] == f"wrote {out}"
    assert out.read_bytes() == b"for the device"
    document = json.loads(parapipe(*words, "--json").out)
    assert document["rows"][0]["nodes"] == ["conv"]
    assert [node["node"] for node in document["on_cpu"]] == ["lrn", "erf"]


def test_int8_without_samples_is_noted(parapipe, tool) -> None:
    words = ("compilers", "compile", tool.segment(), "--compiler", "rknn", "--target", "rk3588")
    assert "note: quantized with random samples" in parapipe(*words, "--precision", "int8").out


def test_a_file_that_cannot_be_written_is_named(parapipe, tool, tmp_path) -> None:
    words = ("compilers", "compile", tool.segment(), "--compiler", "rknn", "--target", "rk3588")
    assert "cannot be written" in parapipe(*words, "--out", tmp_path).complaint


@pytest.mark.parametrize("fault", ["hang", "crash", "kill"])
def test_a_fault_is_one_line(parapipe, tool, fault) -> None:
    words = ("compilers", "compile", tool.segment(fault), "--compiler", "rknn", "--target")
    complaint = parapipe(*words, "rk3588", "--compile-time", "1s").complaint
    assert complaint.startswith("parapipe: the compiler 'rknn' ")
    assert tool.none_is_left()


def test_clear_says_how_many_results_there_were(parapipe, tool) -> None:
    words = ("compilers", "compile", tool.segment(), "--compiler", "rknn", "--target", "rk3588")
    assert parapipe(*words).code == 0
    assert parapipe("compilers", "clear").out == "deleted 1 results\n"
    assert json.loads(parapipe("compilers", "clear", "--json").out) == {"deleted": 0}
