"""Frames, channels and order, with a stub in the library's place, under sanitizers."""

import json
import signal
import subprocess

import numpy as np
import pytest

from tests.cases.folders import FRAMES, diamond, random_network
from tests.cases.runner import refused


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_frames_go_through_stages_and_branches_in_order(stub, tmp_path, depth):
    folder = diamond().write(tmp_path, depth=depth)
    report, made, wanted = stub.outputs(folder, "--frames", 50, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    assert report["in_order"]
    assert report["agrees"]
    assert report["frames"] == 50
    assert report["transfers"] == 3


def test_memory_is_shared_where_no_other_reader_can_see_its_padding(stub, tmp_path):
    report = stub.measured(diamond().write(tmp_path))
    # `stem` has two readers, and one of them pads it: that one gets a copy.
    assert report["transfers"] - report["shared_transfers"] == 1


def test_more_frames_than_one_are_on_their_way_through_a_pipeline(stub, tmp_path):
    report = stub.measured(diamond().write(tmp_path), "--frames", 200)
    assert report["most_frames_in_flight"] >= 2
    assert report["overlapping_frames"] > 0


@pytest.mark.parametrize("seed", range(30))
def test_any_network_on_any_processors_gives_what_it_should(stub, tmp_path, seed):
    folder = random_network(seed).write(tmp_path, depth=1 + seed % 3)
    report, made, wanted = stub.outputs(folder, "--frames", 20, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-5)
    assert report["agrees"]


def test_a_result_that_differs_is_told_and_ends_with_1(stub, tmp_path):
    folder = diamond().write(tmp_path)
    wanted = np.fromfile(folder / "expected.bin", "<f4")
    wanted[-1] += 1e-3 * np.abs(wanted).max()
    (folder / "expected.bin").write_bytes(wanted.tobytes())
    files = ("--input", folder / "input.bin", "--check", folder / "expected.bin")
    assert "differ" in refused(stub.run(folder, *files))
    assert stub.run(folder, *files, "--tolerance", 0.1).returncode == 0


def test_every_frame_is_compared(stub, tmp_path):
    folder = diamond().write(tmp_path)
    wanted = np.fromfile(folder / "expected.bin", "<f4").reshape(FRAMES, -1)[::-1]
    (folder / "expected.bin").write_bytes(wanted.tobytes())
    files = ("--input", folder / "input.bin", "--check", folder / "expected.bin")
    assert "differ" in refused(stub.run(folder, *files))


def test_frames_may_be_admitted_once_per_period(stub, tmp_path):
    report = stub.measured(diamond().write(tmp_path), "--frames", 6, "--period", 0.02)
    assert report["period_s"] > 0.015  # a bound from below holds on any machine


def test_an_interrupt_ends_the_run_and_tells_what_was_measured(stub, tmp_path):
    folder = diamond().write(tmp_path)
    words = [*stub.command, str(folder), "--json", "--frames", "100000000", "--warmup", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr.readline() == "running 0 + 100000000 frames\n"
        run.send_signal(signal.SIGINT)
        said, complained = run.communicate(timeout=120)
    assert run.returncode == 130
    assert complained == ""
    report = json.loads(said)
    assert report["interrupted"]
    assert report["in_order"]
