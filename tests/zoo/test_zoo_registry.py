"""Zoo models by name."""

import subprocess
import sys

import onnx
import pytest

from parapipe.errors import ModelError, OutputError
from parapipe.zoo import registry

EVERY = registry.examples()


def test_names_are_sorted_and_hold_googlenet():
    assert "googlenet" in registry.names()
    assert list(registry.names()) == sorted(registry.names())


def test_listing_the_names_imports_no_onnx():
    script = "import sys, parapipe.zoo.registry as r; r.names(); print('onnx' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("names", "weightless"),
    [(registry.examples(), True), (("googlenet", "squeezenet"), False)],
    ids=["weightless", "with weights"],
)
def test_the_same_names_give_the_same_bytes_in_another_process(names, weightless):
    script = (
        "import hashlib, parapipe.zoo.registry as r\n"
        f"for name in {names!r}:\n"
        f"    model = r.build(name, weightless={weightless})\n"
        "    print(name, hashlib.sha256(r.serialize(model)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().splitlines()) == len(names)


@pytest.mark.parametrize("name", EVERY)
def test_every_model_is_valid(name):
    onnx.checker.check_model(registry.build(name, weightless=True), full_check=True)


def test_an_unknown_name_lists_the_known_ones_and_suggests_the_nearest():
    with pytest.raises(
        ModelError, match=r"no zoo model 'gogglenet': .*googlenet.*did you mean 'goo"
    ):
        registry.build("gogglenet")
    with pytest.raises(ModelError, match="googlenet") as caught:
        registry.build("nope")
    assert "did you mean" not in str(caught.value)


def test_a_model_of_any_depth_is_listed_with_a_word_for_the_number_that_an_example_gives():
    assert "gpt:LAYERS" in registry.names()
    assert "gpt:12" in EVERY
    assert len(registry.names()) == len(EVERY)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("gpt", "its number of layers is missing"),
        ("gpt:", "its number of layers is missing"),
        ("gpt:0", "'0' is no number of layers"),
        ("gpt:x", "'x' is no number of layers"),
        ("gpt:-1", "'-1' is no number of layers"),
        ("gpt:10000", "'10000' is no number of layers"),
        ("gpt:²", "'²' is no number of layers"),
        ("gpt:LAYERS", "'LAYERS' is no number of layers"),
    ],
)
def test_a_number_of_layers_that_is_none_is_told_from_an_unknown_name(name, mistake):
    with pytest.raises(ModelError) as caught:
        registry.build(name)
    wanted = f"zoo model '{name}': {mistake}; give one from 1 to 9999, as in 'gpt:12'"
    assert str(caught.value) == wanted


def test_a_model_of_fixed_depth_takes_no_number():
    with pytest.raises(ModelError, match=r"no zoo model 'googlenet:2'.*did you mean 'googlenet'"):
        registry.build("googlenet:2")


def test_a_written_model_is_the_built_one_and_nothing_is_left_beside_it(tmp_path):
    registry.write("googlenet", tmp_path / "net.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    content = (tmp_path / "net.onnx").read_bytes()
    assert content == registry.serialize(registry.build("googlenet"))
    registry.write("googlenet", tmp_path / "light.onnx", weightless=True)
    assert (tmp_path / "light.onnx").stat().st_size < len(content) / 500


def test_a_folder_that_is_not_there_is_an_output_error(tmp_path):
    with pytest.raises(OutputError):
        registry.write("googlenet", tmp_path / "none" / "net.onnx")
