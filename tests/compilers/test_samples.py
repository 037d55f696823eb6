"""Samples for integers: files of arrays by the names of inputs."""

from __future__ import annotations

import numpy as np
import pytest

from parapipe.compilers import samples
from parapipe.compilers.samples import random_samples, read_samples, sample_files, write_arrays
from parapipe.errors import ArgumentError
from tests.cases.compiler_models import IMAGE, INT64, compared, left_to_the_cpu, model, two_inputs

FRAME = np.arange(2048, dtype=np.float32).reshape(IMAGE)


def read(path, network=None):
    return read_samples(path, network or left_to_the_cpu(), "m.onnx")


def test_a_file_with_the_inputs_shape_is_one_sample(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", x=FRAME)
    (sample,) = read(tmp_path / "a.npz")
    assert np.array_equal(sample["x"], FRAME)


def test_one_more_leading_axis_counts_samples(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", x=np.stack([FRAME, FRAME + 1, FRAME + 2]))
    assert [float(each["x"].min()) for each in read(tmp_path / "a.npz")] == [0, 1, 2]


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path) -> None:
    for number in (2, 0, 1):
        np.savez(tmp_path / f"{number}.npz", x=FRAME + number)
    (tmp_path / "other.txt").touch()
    assert [float(each["x"].min()) for each in read(tmp_path)] == [0, 1, 2]


def test_doubles_become_the_inputs_type(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", x=FRAME.astype(np.float64))
    assert read(tmp_path / "a.npz")[0]["x"].dtype == np.float32


@pytest.mark.parametrize("most", [2, 3])
def test_more_samples_than_the_limit_are_left_out(tmp_path, monkeypatch, most) -> None:
    monkeypatch.setattr(samples, "MOST_SAMPLES", most)
    np.savez(tmp_path / "a.npz", x=np.stack([FRAME] * 3))
    assert len(read(tmp_path / "a.npz")) == most


def test_all_inputs_are_needed_and_other_arrays_are_left_out(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", first=FRAME, second=FRAME, third=FRAME)
    (sample,) = read(tmp_path / "a.npz", two_inputs())
    assert [*sample] == ["first", "second"]


WRONG = {
    "has no array 'second', an input of m.onnx; it has first": {"first": FRAME},
    r"the array 'first' is float32 \[1, 8, 16\]": {"first": FRAME[..., 0], "second": FRAME},
    "the array 'second' is complex64": {"first": FRAME, "second": FRAME.astype(np.complex64)},
    "different numbers of samples": {"first": FRAME, "second": np.stack([FRAME, FRAME])},
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_fit_is_named(tmp_path, words) -> None:
    np.savez(tmp_path / "a.npz", **WRONG[words])
    with pytest.raises(ArgumentError, match=words):
        read(tmp_path / "a.npz", two_inputs())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing of NumPy"])
def test_what_is_no_file_of_arrays_is_named(tmp_path, content) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match=r"a\.npz: cannot be read as `\.npz`"):
        read(tmp_path / "a.npz")


def test_a_single_array_is_no_file_of_arrays(tmp_path) -> None:
    np.save(tmp_path / "a.npy", FRAME)
    with pytest.raises(ArgumentError, match="cannot be read as"):
        read(tmp_path / "a.npy")


def test_pickled_objects_are_not_loaded(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    with pytest.raises(ArgumentError, match="cannot be read as"):
        read(tmp_path / "a.npz")


def test_a_place_without_samples_is_named(tmp_path) -> None:
    with pytest.raises(ArgumentError, match="holds no file"):
        sample_files(tmp_path)
    with pytest.raises(ArgumentError, match="is not there"):
        sample_files(tmp_path / "no.npz")
    assert sample_files(None) == []


def test_random_samples_are_the_same_each_time_and_zero_for_integers() -> None:
    first, again = random_samples(left_to_the_cpu()), random_samples(left_to_the_cpu())
    assert np.array_equal(first[0]["x"], again[0]["x"])
    assert not np.array_equal(first[0]["x"], first[1]["x"])
    network = model([], [("ids", INT64, (1, 4))], [("ids", INT64, (1, 4))])
    assert random_samples(network)[0]["ids"].tolist() == [[0, 0, 0, 0]]


def test_arrays_of_any_names_are_written(tmp_path) -> None:
    names = [each.name for each in (*compared().graph.input, *compared().graph.output)]
    assert "file" in names
    write_arrays(tmp_path / "a.npz", dict.fromkeys(names, FRAME))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert file.files == names
        assert all(np.array_equal(file[name], FRAME) for name in names)
