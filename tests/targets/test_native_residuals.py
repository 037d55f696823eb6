"""A Conv and the Add behind it are one step for back ends that compute both at one go."""

import numpy as np
import pytest

from parapipe.graph.onnx_import import import_model
from parapipe.targets.native.folder import write_library_folder
from tests.cases.armcl_plans import BIG, BOARD, LITTLE, placed, plan_for
from tests.cases.residual_cases import CHANNELS, block, conv, network, residual

ADD = ("Add", ("a", "x"), "y", {})


def steps(model, folder, backend="onednn", places=None):
    """The steps of an exported model as (type, inputs, what it includes)."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    plan = plan_for(path)
    if places is not None:
        plan = placed(import_model(path), BOARD, [(0, at) for at in places])
    return write_library_folder(plan, path, folder, backend=backend).operators


def shown(found):
    return [(each.id, each.type, each.inputs, each.includes) for each in found]


@pytest.mark.parametrize("backend", ["onednn", "plain"])
def test_the_sum_is_in_the_convolution(tmp_path, backend):
    one, y = steps(network(*block("x", "y")), tmp_path, backend)
    assert (one.id, one.inputs, one.activation.type) == ("yr", ("x", "ya_w"), "Relu")
    assert (y.id, y.type, y.inputs) == ("y", "Conv", ("yr", "yb_w", "", "x"))
    assert (y.activation.type, y.source, y.includes) == ("Relu", None, ("yb",))


def test_arm_compute_library_adds_by_itself(tmp_path):
    found = steps(network(*block("x", "y")), tmp_path, "neon")
    assert [each.type for each in found] == ["Conv", "Conv", "Add"]


def test_the_later_of_two_convolutions_adds_the_earlier_one(tmp_path):
    nodes = (conv("x", "a"), conv("x", "b"), ("Add", ("b", "a"), "y", {}))
    assert shown(steps(network(*nodes), tmp_path)) == [
        ("a", "Conv", ("x", "a_w"), None),
        ("y", "Conv", ("x", "b_w", "", "a"), ("b",)),
    ]


def test_what_is_made_between_the_two_may_be_added(tmp_path):
    pool = ("MaxPool", ("x",), "p", {"kernel_shape": [3, 3], "pads": [1] * 4})
    found = steps(network(conv("x", "a"), pool, ("Add", ("a", "p"), "y", {})), tmp_path)
    assert shown(found)[1:] == [("y", "Conv", ("x", "a_w", "", "p"), ("a",))]


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ((conv("x", "a"), ADD), ("y", "a")),
        ((conv("x", "a"), ("Add", ("a", "x"), "s", {}), ("Mul", ("a", "s"), "y", {})), ("y",)),
        ((conv("x", "a"), ("Add", ("a", "a"), "y", {})), ("y",)),
        ((conv("x", "a"), ("Add", ("a", "c"), "y", {})), ("y",)),
        (
            (
                conv("x", "a"),
                ("GlobalAveragePool", ("x",), "g", {}),
                ("Add", ("a", "g"), "y", {}),
            ),
            ("y",),
        ),
        ((conv("x", "a"), ("Relu", ("a",), "r", {}), ("Add", ("r", "x"), "y", {})), ("y",)),
        ((conv("x", "a"), ("Sub", ("a", "x"), "y", {})), ("y",)),
    ],
    ids=["output", "read twice", "doubled", "constant", "broadcast", "activation", "difference"],
)
def test_these_stay_apart(tmp_path, nodes, outputs):
    constant = {"c": np.ones((1, CHANNELS, 1, 1), np.float32)}
    used = constant if any("c" in inputs for _, inputs, _, _ in nodes) else None
    found = steps(network(*nodes, outputs=outputs, constants=used), tmp_path)
    assert all(each.includes is None for each in found)


@pytest.mark.parametrize(
    ("places", "merged"),
    [
        ((BIG, BIG, BIG), ["b"]),
        ((LITTLE, BIG, BIG), []),  # who makes a convolution does not wait for the other one
        ((BIG, LITTLE, BIG), []),
        ((BIG, BIG, LITTLE), []),
    ],
)
def test_nothing_waits_longer_for_another_processor(tmp_path, places, merged):
    nodes = (conv("x", "a"), conv("x", "b"), ("Add", ("a", "b"), "y", {}))
    found = steps(network(*nodes), tmp_path, places=places)
    assert [name for each in found if each.includes for name in each.includes] == merged


def test_a_convolution_is_not_kept_back_by_what_waits_for_another_processor(tmp_path):
    nodes = (conv("x", "a"), ("Sigmoid", ("x",), "far", {}), ("Tanh", ("far",), "b", {}))
    model = network(*nodes, ("Add", ("a", "b"), "y", {}))
    for number, (far, wanted) in enumerate([(BIG, ("a",)), (LITTLE, None)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert steps(model, folder, places=(BIG, far, BIG, BIG))[-1].includes == wanted


def test_operators_in_one_step_have_no_row_of_a_profile(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(residual().SerializeToString())
    plan = plan_for(path)
    document = write_library_folder(plan, path, tmp_path, backend="onednn")
    assert sorted(document.profile) == ["main", "oner", "twor"]
