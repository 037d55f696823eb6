"""What ARM Compute Library has no function for is refused: all at once, before a file is made."""

import numpy as np
import pytest

from parapipe.errors import ExportError, OutputError
from parapipe.plan.schema import Plan
from parapipe.targets.native.folder import export
from tests.cases.armcl_case import Case, floats, ints, one
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import plan_for
from tests.cases.quantised_models import small_qdq

SHAPE = (1, 4, 8, 10)
REFUSED = {
    "Erf": (one("c", "Erf"), "the library has no such function"),
    "matmul": (
        one("c", "MatMul", (3, 4), inputs={"x2": (4, 5)}),
        "it multiplies two activations, and the library wants one of them constant",
    ),
    "matrices": (
        one("c", "MatMul", (2, 3, 4), constants={"w": floats(2, 4, 5)}),
        "its constant holds several matrices",
    ),
    "gemm-rows": (
        one("c", "Gemm", (3, 4), constants={"w": floats(4, 5), "b": floats(3, 1)}),
        "its third input differs from row to row",
    ),
    "conv-3d": (
        one("c", "Conv", (1, 2, 4, 4, 4), constants={"w": floats(2, 2, 3, 3, 3)}),
        "it has 5 dimensions, and the library has 4",
    ),
    "conv-weights": (
        one("c", "Conv", inputs={"w": (4, 4, 3, 3)}),
        "its weights are not constant",
    ),
    "conv-transpose": (
        one(
            "c",
            "ConvTranspose",
            constants={"w": floats(4, 2, 2, 2)},
            strides=[3, 3],
            output_padding=[2, 2],
        ),
        "its output is padded beyond what the kernel reaches",
    ),
    "pool-dilated": (
        one("c", "MaxPool", kernel_shape=[2, 2], dilations=[2, 2]),
        "its window is dilated",
    ),
    "pool-indices": (
        Case("c", [("MaxPool", ("x",), ("y", "i"), {"kernel_shape": [2, 2]})], outputs=("y", "i")),
        "it is of type int64, and only float32 is exported",
    ),
    "pool-beyond": (
        one("c", "MaxPool", (1, 4, 9, 10), kernel_shape=[3, 1], strides=[2, 2], ceil_mode=1),
        "its last window lies in the padding only (ceil_mode)",
    ),
    "pool-padding": (
        one("c", "MaxPool", kernel_shape=[2, 2], pads=[2, 0, 0, 0]),
        "its padding is as large as its window",
    ),
    "pool-counting": (
        one(
            "c",
            "AveragePool",
            SHAPE,
            kernel_shape=[3, 3],
            strides=[2, 2],
            ceil_mode=1,
            count_include_pad=1,
        ),
        "its average counts padding, and its last window reaches beyond it (ceil_mode)",
    ),
    "resize-nearest": (
        Case(
            "c",
            [("Resize", ("x", "", "", "s"), ("y",), {"mode": "nearest"})],
            SHAPE,
            {"s": ints(1, 4, 5, 7)},
        ),
        "it picks other elements than",
    ),
    "resize-cubic": (
        Case(
            "c",
            [("Resize", ("x", "", "s"), ("y",), {"mode": "cubic"})],
            SHAPE,
            {"s": np.float32([1, 1, 2, 2])},
        ),
        "its mode is 'cubic'",
    ),
    "slice": (
        one("c", "Slice", constants={"s": ints(5), "e": ints(1), "a": ints(2), "t": ints(-1)}),
        "it runs backwards",
    ),
    "gather": (
        one("c", "Gather", constants={"i": ints(0, 3, 1)}, axis=1),
        "its indices do not rise in equal steps",
    ),
    "pad": (
        one("c", "Pad", constants={"p": ints(0, 0, 1, 1, 0, 0, 1, 1)}, mode="edge"),
        "its mode is 'edge'",
    ),
    "pad without an end": (
        one("c", "Pad", constants={"p": ints(0, 0, 1, 1, 0, 0, 1, 1), "v": np.float32(-np.inf)}),
        "it pads with -inf, and the runner with finite numbers",
    ),
    "power": (
        one("c", "Pow", constants={"e": np.float32(2.5)}),
        "its exponent is none of 0.5, 1, 2 and 3",
    ),
    "gelu": (one("c", "Gelu", opset=20), "it needs the error function"),
    "lrn": (one("c", "LRN", size=4), "its size is even"),
    "concat": (
        one("c", "Concat", constants={"c": floats(1, 4, 9, 11)}, axis=1),
        "one of its inputs is constant",
    ),
    "cast": (one("c", "Cast", to=10), "the library has no such function"),
    "broadcast-5d": (
        one("c", "Add", (1, 2, 3, 4, 5), constants={"c": floats(2, 1, 1, 1)}),
        "it broadcasts tensors of more than 4 dimensions",
    ),
}


def planned(model, folder, **kinds):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return plan_for(path, **kinds), path


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_is_refused_with_the_reason(name, tmp_path):
    case, reason = REFUSED[name]
    plan, path = planned(case.model(), tmp_path)
    with pytest.raises(ExportError) as error:
        export(plan, path, tmp_path / "out")
    assert reason in str(error.value)
    assert list(error.value.operators) == [plan.operators[0].id]
    assert not (tmp_path / "out").exists()


def test_all_that_stands_in_the_way_is_named_at_once(tmp_path):
    case = one("c", "Erf")
    case.nodes += [("Relu", ("y",), ("z",), {}), ("Sign", ("z",), ("r",), {})]
    plan, path = planned(case.model(), tmp_path)
    with pytest.raises(ExportError) as error:
        export(plan, path, tmp_path / "out")
    assert str(error.value).endswith(
        "model.onnx: 2 operators cannot be exported: 'y' (Erf): the library has no such function; "
        "'r' (Sign): the library has no such function; change the model there, or export to "
        "onnxruntime"
    )
    assert error.value.operators == ("y", "r")


def test_a_part_of_a_fused_operator_is_named(tmp_path):
    case = one("c", "Gemm", (3, 4), constants={"w": floats(4, 5), "b": floats(3, 1)})
    case.nodes.append(("Relu", ("y",), ("z",), {}))
    plan, path = planned(case.model(), tmp_path)
    with pytest.raises(ExportError, match=r"'y' \(Gemm\): Gemm in it: its third input differs"):
        export(plan, path, tmp_path / "out")


def changed(plan, **fields):
    return Plan.model_validate_json(plan.to_bytes()).model_copy(update=fields)


def test_processors_that_the_library_does_not_run_on_are_named(tmp_path):
    plan, path = planned(inception(), tmp_path)
    npu = plan.processors[0].model_copy(update={"kind": "npu"})
    with pytest.raises(
        ExportError, match=r"runs on CPUs and GPUs, and the plan uses 'big' \(npu\)"
    ):
        export(changed(plan, processors=(npu,)), path, tmp_path / "out")


def test_a_folder_must_be_named(tmp_path):
    plan, path = planned(inception(), tmp_path)
    with pytest.raises(ExportError, match="the target native makes a folder: name it"):
        export(plan, path, None)


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    plan, path = planned(inception(), tmp_path)
    with pytest.raises(OutputError, match=r"holds 'model.onnx', which no export has written"):
        export(plan, path, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]


def test_operators_on_integers_are_refused_with_their_type(tmp_path):
    plan, path = planned(small_qdq(), tmp_path)
    with pytest.raises(
        ExportError, match=r"'c' \(Conv\): it computes in uint8, and only float32 is exported"
    ):
        export(plan, path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
