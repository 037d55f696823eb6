"""Everything that the runner on ARM Compute Library is tried on, as exported folders.

`python -m tests.cases.armcl_cases DIR` writes each case as a folder, with frames and what ONNX
Runtime makes of them; and a small inception network in all kinds of configurations.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from parapipe.targets.native.folder import write_library_folder
from tests.cases import armcl_element_cases, armcl_shape_cases, armcl_window_cases
from tests.cases.armcl_plans import ARRANGEMENTS, frame_of, plan_for
from tests.cases.armcl_reference import session_of


def cases():
    """All cases of single operators, each with a name of its own."""
    found = [
        *armcl_window_cases.cases(),
        *armcl_element_cases.cases(),
        *armcl_shape_cases.cases(),
    ]
    assert len({case.name for case in found}) == len(found)
    return found


def inception():
    """A small inception network: a stem, two blocks with four branches, a classifier."""
    weights, nodes = {}, []
    rng = np.random.default_rng(7)

    def conv(name, source, channels, out, kernel, *, stride=1):
        scale = np.sqrt(2 / (channels * kernel * kernel))
        weights[f"{name}_w"] = (rng.normal(0, scale, (out, channels, kernel, kernel))).astype(
            np.float32
        )
        weights[f"{name}_b"] = rng.normal(0, 0.1, out).astype(np.float32)
        nodes.append(
            helper.make_node(
                "Conv",
                [source, f"{name}_w", f"{name}_b"],
                [f"{name}_c"],
                pads=[kernel // 2] * 4,
                strides=[stride] * 2,
                name=f"{name}_conv",
            )
        )
        nodes.append(helper.make_node("Relu", [f"{name}_c"], [name], name=f"{name}_relu"))
        return name

    def block(name, source, channels):
        one = conv(f"{name}_1", source, channels, 8, 1)
        three = conv(f"{name}_3", conv(f"{name}_3r", source, channels, 6, 1), 6, 12, 3)
        five = conv(f"{name}_5", conv(f"{name}_5r", source, channels, 4, 1), 4, 6, 5)
        nodes.append(
            helper.make_node(
                "MaxPool",
                [source],
                [f"{name}_p"],
                kernel_shape=[3, 3],
                pads=[1] * 4,
                strides=[1, 1],
                name=f"{name}_pool",
            )
        )
        pool = conv(f"{name}_pp", f"{name}_p", channels, 6, 1)
        nodes.append(
            helper.make_node(
                "Concat", [one, three, five, pool], [name], axis=1, name=f"{name}_join"
            )
        )
        return name

    stem = conv("stem", "x", 3, 16, 3, stride=2)
    nodes.append(helper.make_node("LRN", [stem], ["norm"], size=5, alpha=0.1, name="norm_node"))
    first = block("a", "norm", 16)
    nodes.append(
        helper.make_node(
            "MaxPool",
            [first],
            ["down"],
            kernel_shape=[3, 3],
            strides=[2, 2],
            ceil_mode=1,
            name="down_pool",
        )
    )
    second = block("b", "down", 32)
    nodes.append(helper.make_node("GlobalAveragePool", [second], ["pooled"], name="gap"))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"))
    weights["fc_w"] = rng.normal(0, 0.2, (10, 32)).astype(np.float32)
    weights["fc_b"] = rng.normal(0, 0.1, 10).astype(np.float32)
    nodes.append(
        helper.make_node("Gemm", ["flat", "fc_w", "fc_b"], ["fc"], transB=1, name="fc_node")
    )
    nodes.append(helper.make_node("Softmax", ["fc"], ["y"], axis=1, name="softmax"))
    graph = helper.make_graph(
        nodes,
        "inception",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 32, 32))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 10))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def separable():
    """Convolutions of every kind of group, one behind the other, a pool and a sum between."""
    rng = np.random.default_rng(8)
    weights, nodes = {}, []

    def conv(source, out, channels, kernel, *, group=1):
        shape = (out, channels // group, kernel, kernel)
        name = f"c{len(nodes)}"
        weights[f"{name}_w"] = rng.normal(0, shape[1] ** -0.5 / kernel, shape).astype(np.float32)
        weights[f"{name}_b"] = rng.normal(0, 0.1, out).astype(np.float32)
        inputs = [source, f"{name}_w", f"{name}_b"]
        pads = [kernel // 2] * 4
        nodes.append(
            helper.make_node("Conv", inputs, [f"{name}_c"], pads=pads, group=group, name=name)
        )
        nodes.append(helper.make_node("Relu", [f"{name}_c"], [name], name=f"{name}_relu"))
        return name

    stem = conv("x", 10, 3, 3)
    deep = conv(stem, 10, 10, 3, group=10)
    wide = conv(deep, 12, 10, 1)
    paired = conv(wide, 12, 12, 3, group=2)
    nodes.append(helper.make_node("Add", [paired, wide], ["sum"], name="add"))
    window = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    nodes.append(helper.make_node("MaxPool", ["sum"], ["down"], name="pool", **window))
    last = conv("down", 7, 12, 3)
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"], name="gap"))
    graph = helper.make_graph(
        nodes,
        "separable",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 15, 17))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 7, 1, 1))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def write_case(model, folder, *, frames=1, plan_of=plan_for, backend=None, **options):
    """Export a model into a new folder, with frames and what ONNX Runtime makes of them.

    `plan_of` makes a plan of the ONNX file, given the options; `backend` runs all processors.
    """
    folder = Path(folder)
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    plan = plan_of(path, **options)
    if backend is not None:  # which has CPUs only
        on_cpus = [each.model_copy(update={"kind": "cpu"}) for each in plan.processors]
        plan = plan.model_copy(update={"processors": tuple(on_cpus)})
    write_library_folder(plan, path, folder, backend=backend)
    session = session_of(str(path))
    with (folder / "input.bin").open("wb") as fed, (folder / "expected.bin").open("wb") as made:
        for seed in range(frames):
            frame = frame_of(model, seed)
            for name in plan.inputs:
                fed.write(np.ascontiguousarray(frame[name], "<f4").tobytes())
            for value in session.run(list(plan.outputs), {n: frame[n] for n in plan.inputs}):
                made.write(np.ascontiguousarray(value, "<f4").tobytes())
    path.unlink()
    return plan


def main(folder):
    """Write all cases, and the inception network in all kinds of configurations."""
    for case in cases():
        write_case(case.model(), folder / case.name)
    for arrangement in ARRANGEMENTS:
        write_case(
            inception(), folder / f"inception-{arrangement}", frames=3, arrangement=arrangement
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
