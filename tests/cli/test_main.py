"""What a user sees when a command cannot do what was asked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import parapipe
from parapipe.cli.command_line import COMMANDS, LazyGroup, run
from parapipe.errors import ModelError, PlatformError, VerificationError


def ending(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, error: BaseException):
    """Run a command that raises the error; return exit code, lines out and lines on stderr."""

    @click.command()
    def command() -> None:
        raise error

    monkeypatch.delenv("PARAPIPE_DEBUG", raising=False)
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    code = run(["map"])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.strip().splitlines()


def test_a_known_error_is_one_line_and_exit_code_1(monkeypatch, capsys) -> None:
    error = ModelError("a.onnx: is empty; export the model again")
    assert ending(monkeypatch, capsys, error) == (
        1,
        [],
        ["parapipe: a.onnx: is empty; export the model again"],
    )


def test_a_message_with_line_breaks_is_still_one_line(monkeypatch, capsys) -> None:
    _, _, lines = ending(monkeypatch, capsys, ModelError("a.onnx:\n  is\tempty"))
    assert lines == ["parapipe: a.onnx: is empty"]


def test_a_message_that_repeats_what_is_damaged_is_cut_off(monkeypatch, capsys) -> None:
    (line,) = ending(monkeypatch, capsys, ModelError("x" * 100_000))[2]
    assert len(line) < 2100


def test_of_many_mistakes_the_first_twenty_are_told(monkeypatch, capsys) -> None:
    mistakes = [f"p.yaml:{line}: {'x' * 9999}" for line in range(50)]
    error = PlatformError("p.yaml: 50 mistakes", mistakes)
    *_, lines = ending(monkeypatch, capsys, error)
    assert lines[20].strip().startswith("p.yaml:19: ")
    assert lines[21].strip() == "and 30 more"
    assert len(lines) == 22
    assert max(map(len, lines)) < 420


@pytest.mark.parametrize("kind", [PlatformError, VerificationError])
def test_every_mistake_has_a_line_of_its_own(monkeypatch, capsys, kind) -> None:
    error = kind("p.yaml: 2 mistakes", ["p.yaml:1: name: is missing", "p.yaml:2: cores: negative"])
    code, out, lines = ending(monkeypatch, capsys, error)
    assert (code, out) == (1, [])
    assert lines == [
        "parapipe: p.yaml: 2 mistakes",
        "  p.yaml:1: name: is missing",
        "  p.yaml:2: cores: negative",
    ]


def test_an_unexpected_error_asks_to_be_reported_without_a_traceback(monkeypatch, capsys) -> None:
    code, out, lines = ending(monkeypatch, capsys, ZeroDivisionError("division by zero"))
    assert (code, out) == (1, [])
    assert len(lines) == 1
    assert "ZeroDivisionError: division by zero" in lines[0]
    assert "report" in lines[0]


def test_running_out_of_memory_is_said_in_one_line(monkeypatch, capsys) -> None:
    code, _, lines = ending(monkeypatch, capsys, MemoryError())
    assert code == 1
    assert len(lines) == 1
    assert "memory" in lines[0]


def test_control_c_is_one_line_and_exit_code_130(monkeypatch, capsys) -> None:
    assert ending(monkeypatch, capsys, KeyboardInterrupt()) == (130, [], ["parapipe: interrupted"])


@pytest.mark.parametrize("error", [ModelError("a.onnx: is empty"), ZeroDivisionError("boom")])
def test_debugging_shows_the_traceback(monkeypatch, capsys, error) -> None:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    monkeypatch.setenv("PARAPIPE_DEBUG", "1")
    with pytest.raises(type(error)):
        run(["map"])


WRONG_USAGES = [
    ["no-such-command"],
    ["map"],
    ["map", "zoo:googlenet"],
    ["map", "zoo:googlenet", "--platform"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--time-limit", "soon"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--time-limit", "-1"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--time-limit", "nan"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--jobs", "0"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--resolution", "1"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--resolution", "-0.01"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--energy-resolution", "-0.01"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--energy-resolution", "1.01"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--energy-resolution", "nan"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--dim", "batch"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--dim", "batch=-1"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--dim", "batch=1e3"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--shape", "data=1x?x2"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--mapper", "hefft"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--cache", "a", "--no-cache"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--dvfs-points", "5"],
    ["map", "m", "--platform", "p", "--energy-resolution=0", "--objectives=latency-throughput"],
    ["evaluate", "zoo:googlenet", "--platform", "amlogic-a311d"],
    ["evaluate", "m", "--platform", "p", "--order", "GB", "--assignment", "a.yaml"],
    ["profile", "--platform", "amlogic-a311d"],
    ["inspect", "zoo:googlenet", "--dot", "a", "--svg", "./a"],
    ["inspect", "zoo:googlenet", "--dot", "-", "--svg", "-"],
    ["inspect", "zoo:googlenet", "--dot", "-", "--json"],
    ["inspect", "zoo:googlenet", "--dim", "batch=1", "--dim", "batch=2"],
    ["inspect", "zoo:googlenet", "--shape", "data=:1x2"],
    ["inspect", "zoo:googlenet", "--shape", "data=1x2", "--shape", "data=float32:1x2"],
    ["map", "zoo:googlenet", "--platform", "amlogic-a311d", "--granularity", "coarse"],
    ["inspect"],
    ["inspect", "zoo:googlenet", "--no-such-option"],
    ["platforms", "show"],
    ["zoo", "build"],
    ["verify"],
]


@pytest.mark.parametrize("arguments", WRONG_USAGES, ids=" ".join)
def test_a_usage_error_has_exit_code_2_and_says_where_help_is(capsys, arguments) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"Try 'parapipe.* (-h|--help)' for help", err)
    assert "Error: " in err


def test_usage_errors_are_told_before_a_heavy_package_is_imported() -> None:
    script = (
        f"import sys; from parapipe.cli.command_line import run; codes = {{run(each) for each in "
        f"{WRONG_USAGES!r}}}; print(codes, *{{name.partition('.')[0] for name in sys.modules}})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    code, *imported = done.stdout.split()
    assert code == "{2}"
    assert {"onnx", "numpy", "ortools", "pandas", "pydantic", "matplotlib"}.isdisjoint(imported)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command) -> None:
    assert run([command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: parapipe {command}")
    assert err == ""


def test_warnings_of_other_packages_are_not_shown() -> None:
    script = (
        "import warnings, click; from parapipe.cli import command_line, main; "
        "group = command_line.LazyGroup; "
        "group.get_command = lambda *_: click.Command('c', callback=lambda: warnings.warn('odd')); "
        "main.main(['map'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_closed_pipe_is_quiet() -> None:
    # The reader is gone before anything is written, so that the first flush must fail.
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "parapipe.cli.main", "--help"],
            stdout=out, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "parapipe.cli.main", "zoo", "list"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "standard output: cannot be written (No space left on device)" in done.stderr


def test_little_is_imported_before_signals_are_minded() -> None:
    """An interruption until then shows where Python is, in many lines."""
    script = (
        f"import sys; sys.path.insert(0, {str(Path(parapipe.__file__).parents[1])!r}); "
        "before = {*sys.modules}; import parapipe.cli.main; print(*{*sys.modules} - before)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    slow = {"re", "typing", "pathlib", "importlib", "warnings", "threading"}
    assert slow.isdisjoint(done.stdout.split())
