"""Digests of a model and of its external data."""

import tracemalloc
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import parapipe
from parapipe.errors import ModelError
from parapipe.graph.model_source import model_source, with_external_digests
from parapipe.graph.onnx_import import import_model
from tests.cases.small_models import sha256, value


def external_model(folder, *locations, dims=(4, 2), length=None):
    """Write a model whose MatMuls read one external tensor each."""
    weights = []
    nodes = []
    for number, location in enumerate(locations):
        tensor = TensorProto(name=f"w{number}", data_type=1, dims=dims)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        if length is not None:
            tensor.external_data.add(key="offset", value="0")
            tensor.external_data.add(key="length", value=str(length))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", ["x", tensor.name], [f"y{number}"]))
    outputs = [value(f"y{number}", None) for number in range(len(locations))]
    graph = helper.make_graph(nodes, "g", [value("x", [1, dims[0]])], outputs, weights)
    path = folder / "model.onnx"
    model = helper.make_model(graph)
    path.write_bytes(model.SerializeToString())
    return path, model


def test_the_model_and_each_external_file_are_hashed_once(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").write_bytes(bytes(32))
    (tmp_path / "b.bin").write_bytes(bytes(33))
    path, model = external_model(tmp_path, "data/a.bin", "b.bin", "data/a.bin")
    source = model_source(path, model)
    assert source.name == str(path)
    assert source.sha256 == sha256(path.read_bytes())
    assert source.external == {"data/a.bin": sha256(bytes(32)), "b.bin": sha256(bytes(33))}


def test_weights_may_be_hashed_later(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, model = external_model(tmp_path, "a.bin")
    source = model_source(path, model, weights=False)
    assert source.external == {"a.bin": ""}
    assert with_external_digests(source) == model_source(path, model)


def test_a_mapped_model_has_the_digests_of_all_its_files(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, _ = external_model(tmp_path, "a.bin")
    front = parapipe.map(path, "amlogic-a311d", cache=False, note=lambda _: None)
    for configuration in front:
        plan = configuration.plan()
        assert plan.model.sha256 == sha256(path.read_bytes())
        assert plan.model.external == {"a.bin": sha256(bytes(32))}


def test_a_front_is_not_lost_if_weights_vanish_during_the_search(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, _ = external_model(tmp_path, "a.bin")
    notes = []

    def vanish(_):
        (tmp_path / "a.bin").unlink(missing_ok=True)

    front = parapipe.map(path, "amlogic-a311d", cache=False, progress=vanish, note=notes.append)
    assert front[0].plan().model.external == {}
    [told] = [note for note in notes if "digests" in note]
    assert f"'{tmp_path / 'a.bin'}' cannot be read" in told


def test_weights_that_cannot_be_opened_are_refused_before_they_are_hashed(tmp_path, monkeypatch):
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, model = external_model(tmp_path, "a.bin")
    opened = Path.open

    def refused(self, *given, **named):
        if self.name == "a.bin":
            raise PermissionError(13, "Permission denied")
        return opened(self, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ModelError, match=r"a\.bin' cannot be read \(Permission denied\)"):
        model_source(path, model, weights=False)


def test_all_missing_external_files_are_named(tmp_path):
    path, model = external_model(tmp_path, "a.bin", "b.bin")
    with pytest.raises(ModelError, match=r"'a\.bin' is missing.*'b\.bin' is missing"):
        model_source(path, model)


def test_an_external_file_shorter_than_its_tensor_is_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(31))
    path, model = external_model(tmp_path, "a.bin", length=32)
    with pytest.raises(
        ModelError, match=r"truncated external data \('a\.bin' has 31 bytes of 32\)"
    ):
        model_source(path, model)
    (tmp_path / "a.bin").write_bytes(bytes(32))
    assert model_source(path, model).external


@pytest.mark.parametrize("location", ["../secret.bin", "data/../../secret.bin", "link.bin"])
def test_a_location_that_leaves_the_folder_is_refused(tmp_path, location):
    folder = tmp_path / "model"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(b"secret")
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path, model = external_model(folder, location)
    with pytest.raises(ModelError, match="lies outside the model's folder"):
        model_source(path, model)


def test_an_absolute_location_is_refused_even_inside_the_folder(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"abc")
    path, model = external_model(tmp_path, str(tmp_path / "a.bin"))
    with pytest.raises(ModelError, match="lies outside"):
        model_source(path, model)


def test_a_location_may_go_up_and_down_inside_the_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, model = external_model(tmp_path, "data/../a.bin")
    assert list(model_source(path, model).external) == ["data/../a.bin"]


def test_an_external_file_must_hold_the_shape_where_no_length_is_stated(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(31))
    path, model = external_model(tmp_path, "a.bin")
    with pytest.raises(ModelError, match=r"\('a\.bin' has 31 bytes of 32\)"):
        model_source(path, model)


@pytest.mark.parametrize("length", [31, 33, 2**40])
def test_a_length_that_is_not_that_of_the_shape_is_refused_before_anything_is_read(
    tmp_path, length
):
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate(2**40)
    path, model = external_model(tmp_path, "a.bin", length=length)
    with pytest.raises(ModelError, match=f"'w0' states {length} bytes, and its shape needs 32"):
        model_source(path, model)


def test_external_data_are_never_loaded(tmp_path):
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(2**27)
    path, _ = external_model(tmp_path, "w.bin", dims=(1024, 2**15), length=2**27)
    import_model(path)  # imports what it needs
    tracemalloc.start()
    try:
        graph = import_model(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    assert graph.constants["w0"].external
    assert graph.constants["w0"].size_bytes == 2**27
    assert graph.operators[0].work.macs == 2**25


def test_without_digests_no_byte_of_three_gigabytes_is_read(tmp_path):
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(3 * 2**30)
    path, model = external_model(tmp_path, "w.bin", dims=(2**15, 24 * 2**10), length=3 * 2**30)
    before = Path("/proc/self/io").read_text(encoding="ascii")
    assert model_source(path, model, digests=False).external == {}
    after = Path("/proc/self/io").read_text(encoding="ascii")
    read = [int(text.partition("rchar: ")[2].split()[0]) for text in (before, after)]
    assert read[1] - read[0] < 2**16
    assert import_model(path, digests=False).constants["w0"].size_bytes == 3 * 2**30


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("a" * 3000, "cannot be found"),
        ("loop.bin", "cannot be found|is missing|lies outside"),
        ("folder", "is missing"),
        ("", "names no file"),
        ("/dev/zero", "lies outside"),
    ],
)
def test_an_odd_location_is_one_clear_error(tmp_path, location, complaint):
    (tmp_path / "loop.bin").symlink_to(tmp_path / "loop.bin")
    (tmp_path / "folder").mkdir()
    path, model = external_model(tmp_path, location)
    with pytest.raises(ModelError, match=complaint):
        model_source(path, model)


@pytest.mark.parametrize("number", ["-1", "9" * 5000, "x", "²", "1.5"])
def test_an_offset_that_is_no_number_is_refused(tmp_path, number):
    (tmp_path / "a.bin").write_bytes(bytes(32))
    path, model = external_model(tmp_path, "a.bin", length=32)
    model.graph.initializer[0].external_data[1].value = number
    with pytest.raises(ModelError, match="a tensor's offset is"):
        model_source(path, model)
