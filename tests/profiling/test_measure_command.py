"""`python3 measure.py` on a board: a full disk and signals are told in one line."""

import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parapipe.cli.command_line import run
from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from tests.cases.small_network import saved

FIGURES = Figures({"float32": 2e10, "int32": 3e9}, 1e-6, 8e9, 2e-5)


@pytest.fixture
def bundle(tmp_path) -> Path:
    """The folder of a small model, whose measurement takes two rounds."""
    platform = tmp_path / "here.yaml"
    measured = MachineFigures((FIGURES,), {}, {})
    platform.write_text(platform_text("here", clusters_here()[:1], measured))
    folder = tmp_path / "bundle"
    words = ["profile", str(saved(tmp_path)), "--platform", str(platform), "--bundle", str(folder)]
    assert run(words) == 0
    module = folder / "parapipe_profiling" / "measure.py"
    text = re.sub(r"(?m)^(ROUNDS|MOST_ROUNDS) = \d+", r"\1 = 2", module.read_text())
    module.write_text(re.sub(r"(?m)^CHUNK = \d+", "CHUNK = 1", text))
    return folder


def started(bundle: Path, **options) -> subprocess.Popen[str]:
    """Start the measurement; the packages are those of these tests."""
    return subprocess.Popen(
        [sys.executable, bundle / "measure.py"], stderr=subprocess.PIPE, text=True, **options
    )


def left(bundle: Path) -> set[str]:
    return {path.name for path in bundle.iterdir()} - {"parapipe_profiling", "operators"}


def test_a_full_disk_is_told_in_one_line_and_leaves_what_was_measured(bundle) -> None:
    names = left(bundle)
    process = started(
        bundle, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    )
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    place = re.escape(str(bundle / "results.csv"))
    last = told.splitlines()[-1]
    assert re.match(rf"measure\.py: {place}: cannot be read or written \(File too large\)", last)
    assert "Traceback" not in told
    assert left(bundle) - names == {"results.csv"}  # of the first operator, which fits
    again = started(bundle)
    assert " 0 operators did not run" in again.communicate(timeout=60)[1]


def test_standard_error_on_a_full_disk_ends_it_without_a_traceback(bundle) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, bundle / "measure.py"], stderr=full, check=False, timeout=60
        )
    assert done.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_work_is_answered_in_one_line_and_the_next_time_goes_on(bundle, number):
    process = started(bundle)
    assert process.stderr is not None
    told = ""
    while "measured 1 of" not in told:
        told += process.stderr.read(1)
    process.send_signal(number)
    told += process.stderr.read()
    assert process.wait(60) == 128 + number
    assert told.splitlines()[-1] == (
        f"measure.py: ended by {number.name}; start it again, and it goes on"
    )
    assert "Traceback" not in told
    assert not (bundle / "results.part").exists()
    again = started(bundle)
    assert " 0 operators did not run" in again.communicate(timeout=60)[1]
    assert again.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_packages_are_imported_is_answered_in_one_line(bundle, number) -> None:
    hurry = f"import os; os.kill(os.getpid(), {int(number)})\n"
    (bundle / "numpy.py").write_text(hurry)
    process = started(bundle)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (128 + number, f"measure.py: ended by {number.name}\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}'])
def test_a_damaged_list_of_what_to_measure_is_told(bundle, text) -> None:
    (bundle / "tasks.json").write_text(text)
    process = started(bundle)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert told.strip() == (
        "measure.py: tasks.json is not parapipe/profile-tasks/1; make the folder again"
    )
