"""Quantised operators are measured with their own integers, by ONNX Runtime's integer kernels."""

import os

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import parapipe
from parapipe.cost.profile import read_profile
from parapipe.export.constants import Constants
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.skim import skim
from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from parapipe.profiling.identical_figures import HandOver
from parapipe.profiling.single_models import distinct_units, opsets_of, single_model
from tests.cases.quantised_models import SCALES, WEIGHTS, small_qdq
from tests.cases.session_runs import session
from tests.cases.split_models import written

RATES = {"float32": 2e10, "int8": 4e10, "uint8": 4e10, "int32": 3e9}


@pytest.fixture
def model(tmp_path):
    return written(small_qdq(), tmp_path)


@pytest.fixture
def platform(tmp_path):
    """This machine's cores as two processors."""
    clusters = clusters_here(split=2)[:2]
    count = len(clusters)
    pairs = {
        (p, q): HandOver(1e-5, 1e12, 0.1) for p in range(count) for q in range(count) if p != q
    }
    measured = MachineFigures((Figures(RATES, 1e-6, 8e9, 2e-5),) * count, pairs, {})
    path = tmp_path / "here.yaml"
    path.write_text(platform_text("here", clusters, measured))
    return path


def optimised_types(proto, folder):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node]


def test_each_operator_has_its_own_scales_zero_points_and_integers(model, tmp_path):
    graph, proto = parapipe.load_model(model), skim(model)
    resolved = resolve_proto(proto, "small")[1]
    kinds = []
    with Constants(graph, model) as constants:
        for unit in distinct_units(graph):
            single = single_model(unit, graph, resolved, opsets_of(proto), constants.read)
            assert single.random == ()
            for held in single.proto.graph.initializer:
                wanted = (SCALES | WEIGHTS)[held.name]
                np.testing.assert_array_equal(numpy_helper.to_array(held), wanted)
            kinds += optimised_types(single.proto, tmp_path)
    assert kinds.count("QLinearConv") == 2
    assert kinds.count("QLinearAdd") == 1
    assert "Conv" not in kinds


@pytest.mark.usefixtures("short_rounds")
def test_a_quantised_model_is_profiled_mapped_run_and_equal_to_one_session(
    model, platform, tmp_path
):
    report = parapipe.profile(model, platform)
    assert report.notes == ()
    assert "own" in {m.weights for m in read_profile(report.path).measurements}
    front = parapipe.map(model, platform, cache=False, jobs=1, note=lambda _note: None)
    assert front.to_json()["coverage"]["measured"]["operators"] == 1.0
    frames = np.random.default_rng(1).random((4, 1, 3, 8, 8), np.float32)
    np.savez(tmp_path / "in.npz", x=frames)
    whole = session(model)
    kinds = {each.kind: each for each in front.configurations}
    assert {"sequential", "pipe-only"} <= set(kinds) or len(os.sched_getaffinity(0)) == 1
    for each in kinds.values():
        kept = tmp_path / "out.npz"
        parapipe.run_plan(each.plan(), input=tmp_path / "in.npz", keep=kept, saturate=True)
        with np.load(kept) as results:
            for number, frame in enumerate(frames):
                names = ["y", "seen"]
                for name, wanted in zip(names, whole.run(names, {"x": frame}), strict=True):
                    np.testing.assert_array_equal(results[name][number], wanted)
