"""How much of the real file in the onnx package finds its measurement, as shipped and padded."""

from pathlib import Path

import onnx
import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import shipped_profiles
from parapipe.cost.signature import signature_of
from parapipe.graph.onnx_import import import_model
from parapipe.graph.work import operator_class
from parapipe.platform.load import load_platform

SHIPPED = Path(onnx.__file__).parent / "backend/test/data/light/light_inception_v1.onnx"


def padded_copy(folder):
    """Write a copy whose maps are those of the published network: 56, 28, 14 and 7."""
    model = onnx.load(SHIPPED)
    for node in model.graph.node:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "MaxPool" and list(attributes["strides"].ints) == [2, 2]:
            attributes["pads"].ints[:] = [0, 0, 1, 1]
        if node.op_type == "AveragePool":
            attributes["pads"].ints[:] = [0, 0, 0, 0]
    onnx.save(model, folder / "padded.onnx")
    return folder / "padded.onnx"


def measured(path, processor):
    """Return how many operators there are, and how many of them were measured."""
    graph = import_model(path, granularity="onnx")
    (profile,) = shipped_profiles("amlogic-a311d")
    found = [profile.lookup(signature_of(op, graph), processor) for op in graph.operators]
    return len(found), sum(measurement is not None for measurement in found)


@pytest.mark.parametrize("processor", ["big", "little", "gpu"])
def test_as_shipped_six_operators_of_141_have_a_measurement(processor):
    assert measured(SHIPPED, processor) == (141, 6)


@pytest.mark.parametrize("processor", ["big", "little"])
def test_with_padded_pools_nine_in_ten_have_one(tmp_path, processor):
    operators, found = measured(padded_copy(tmp_path), processor)
    assert operators == 141
    assert found >= 0.9 * operators


def test_the_profile_states_the_work_that_the_graph_counts(tmp_path):
    graph = import_model(padded_copy(tmp_path), granularity="onnx")
    (profile,) = shipped_profiles("amlogic-a311d")
    for operator in graph.operators:
        found = profile.lookup(signature_of(operator, graph), "little")
        work = operator.work
        assert found.macs == work.macs
        assert found.size_bytes == work.read_bytes + work.written_bytes
        assert found.operator_class == operator_class(operator, graph)


def test_as_shipped_the_rest_is_fitted_and_the_coverage_says_so():
    costs = build_cost_table(import_model(SHIPPED), load_platform("amlogic-a311d"))
    for name, covered in costs.coverage().processors.items():
        known = 4 if name == "big" else 6  # two of the six are scaled there
        assert covered.measured == pytest.approx(known / 141)
        assert covered.fitted == pytest.approx(1 - known / 141)
