"""Frames, channels and order, with a stub in the library's place, under sanitizers."""

import json
import signal
import subprocess

import numpy as np
import pytest

from tests.cases.folders import (
    FRAMES,
    Network,
    diamond,
    halves,
    interleaved,
    random_joins,
    random_network,
)
from tests.cases.nightly import nightly_from
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


@pytest.mark.parametrize("seed", nightly_from(8, range(30)))
def test_any_network_on_any_processors_gives_what_it_should(stub, tmp_path, seed):
    folder = random_network(seed).write(tmp_path, depth=1 + seed % 3)
    report, made, wanted = stub.outputs(folder, "--frames", 20, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-5)
    assert report["agrees"]


@pytest.mark.parametrize("seed", nightly_from(8, range(30)))
def test_processors_that_take_turns_on_several_frames_give_what_they_should(stub, tmp_path, seed):
    folder = interleaved(random_network(seed), seed).write(tmp_path, depth=1 + seed % 3)
    report, made, wanted = stub.outputs(folder, "--frames", 20, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-5)
    assert report["agrees"]
    assert report["in_order"]
    assert report["frames"] == 20


@pytest.mark.parametrize("seed", nightly_from(10, range(40)))
def test_any_joins_and_cuts_give_what_they_should(stub, tmp_path, seed):
    network = random_joins(seed)
    network = interleaved(network, seed) if seed % 2 else network
    folder = network.write(tmp_path, depth=1 + seed % 3)
    report, made, wanted = stub.outputs(folder, "--frames", 20, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-5)
    assert report["agrees"]
    assert report["in_order"]


PART_BYTES = (3 * 16 * 4, 2 * 16 * 4)


@pytest.mark.parametrize(
    ("network", "views", "copied_bytes"),
    [
        (halves(), 3, 0),
        (halves(processors=("one", "one")), 3, 0),
        # Two images: a part of the channels is no piece of memory.
        (halves(batch=2, processors=("one", "one")), 0, 4 * sum(PART_BYTES)),
        # Rows of all channels likewise.
        (halves(axis=2, processors=("one", "one")), 0, 2 * sum(PART_BYTES)),
        # Two processors would write into the padding of the whole: one gets a copy.
        (halves(readers="MaxPool"), 3, sum(PART_BYTES)),
        (halves(readers="MaxPool", processors=("one", "one")), 3, 0),
    ],
)
def test_parts_of_the_channels_of_one_image_lie_in_the_whole(
    stub, tmp_path, network, views, copied_bytes
):
    folder = network.write(tmp_path)
    report, made, wanted = stub.outputs(folder, "--frames", 20, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    assert report["agrees"]
    assert report["joins_and_cuts"] == 3
    assert report["views"] == views
    assert report["copied_bytes"] == copied_bytes


def turns_of_two():
    """One processor; in a round, it does the second half of a frame, then the first of the next."""
    return Network(
        shapes={name: [1, 2, 3, 4] for name in ("x", "first", "second")},
        operators=[("first", "Relu", ["x"]), ("second", "Add", ["first", "x"])],
        places={"first": "one", "second": "one"},
        stages=[["one"]],
        outputs=["second", "first"],
        orders={"one": ["second", "first"]},
        lags={"first": 3, "second": 5},
    )


def test_what_a_processor_reads_rounds_later_is_kept_for_as_many_frames(stub, tmp_path):
    folder = turns_of_two().write(tmp_path)
    report, made, wanted = stub.outputs(folder, "--frames", 9, "--check", folder / "expected.bin")
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    assert report["agrees"]
    assert report["most_frames_in_flight"] == 2


def test_an_interrupt_lets_all_frames_end_that_processors_take_turns_on(stub, tmp_path):
    folder = turns_of_two().write(tmp_path)
    report = interrupted(stub, folder)
    assert report["in_order"]
    assert report["most_frames_in_flight"] <= 2


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
    report = interrupted(stub, diamond().write(tmp_path))
    assert report["in_order"]


def interrupted(stub, folder):
    """What is reported of a run that is interrupted as it begins."""
    words = [*stub.command, str(folder), "--json", "--frames", "100000000", "--warmup", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr.readline() == "running 0 + 100000000 frames\n"
        run.send_signal(signal.SIGINT)
        said, complained = run.communicate(timeout=120)
    assert run.returncode == 130
    assert complained == ""
    report = json.loads(said)
    assert report["interrupted"]
    return report
