"""Plans compiled by Rockchip's compiler itself, simulated from end to end.

Runs where PARAPIPE_COMPILER_RKNN names a Python that has it; `make test-rknn` makes that.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import parapipe
from tests.cases.third_party_models import with_random_weights
from tests.cli.test_readme import check_console

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_RKNN" not in os.environ,
    reason="Rockchip's compiler is not installed: make test-rknn",
)
PAGE = Path(__file__).parents[2] / "docs" / "rknn.md"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "rk3588.yaml"
    path.write_text(parapipe.new_platform(chip="rk3588").text, encoding="utf-8")
    return path


def mapped(model, board, precision="float16"):
    return parapipe.map(
        str(model),
        board,
        precision=precision,
        mapper="heft",
        exclude=["gpu"],
        max_stages=3,
        compiler="rknn",
        draws=0,
        note=lambda _: None,
    )


def model_of(name, folder):
    return with_random_weights(name, folder) if name in ("deit", "detr") else f"zoo:{name}"


def checked(front, key, folder, model, **given):
    return front[key].plan().export("rknn", folder, model=str(model), check=True, **given)


def test_the_commands_of_the_page_print_what_stands_there(tmp_path):
    check_console(PAGE.read_text(encoding="utf-8"), tmp_path)
    figures = json.loads((tmp_path / "to-board" / "plan.json").read_text())
    assert {each["provider"] for each in figures["processors"]} >= {"rknnlite"}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("squeezenet", "balanced"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                ("googlenet", "balanced"),
                ("deit", "balanced"),
                ("resnet-50", "balanced"),
                ("detr", "balanced"),
                ("deit", "hybrid-T"),
                ("googlenet", "hybrid-T"),
                ("resnet-50", "hybrid-T"),
                ("detr", "hybrid-L"),
            )
        ),
    ],
)
def test_outputs_in_float16_are_those_of_the_float_model(name, key, board, tmp_path):
    model = model_of(name, tmp_path)
    made = checked(mapped(model, board), key, tmp_path / "out", model)
    outputs = [each["cosine"] for each in made.accuracy if each["is_output"]]
    assert outputs
    assert min(outputs) >= 0.99
    assert any(path.suffix == ".rknn" for path in made.files)


@pytest.mark.nightly
def test_int8_with_samples_is_told_and_near(board, tmp_path):
    model = "zoo:mobilenet-v2"
    samples = np.random.default_rng(0).random((8, 1, 3, 224, 224), np.float32)
    np.savez(tmp_path / "samples.npz", input=samples)
    front = mapped(model, board, "int8")
    calibration = tmp_path / "samples.npz"
    made = checked(front, "hybrid-T", tmp_path / "out", model, calibration=calibration)
    outputs = [each["cosine"] for each in made.accuracy if each["is_output"]]
    assert 0.9 <= min(outputs) < 0.99999
