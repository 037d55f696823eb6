"""What is exported for ARM Compute Library computes what the model does, the library aside."""

import numpy as np
import pytest

from parapipe.targets.native.build import RULES
from parapipe.targets.native.folder import write_library_folder
from tests.cases import armcl_reference
from tests.cases.armcl_cases import cases, inception
from tests.cases.armcl_plans import ARRANGEMENTS, frame_of, plan_for

CASES = cases()


def exported(model, folder, **kinds):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    plan = plan_for(path, **kinds)
    return path, plan, write_library_folder(plan, path, folder)


def check(model, folder, **kinds):
    """Outputs differ by no more than 1e-5 of their scale from ONNX Runtime's."""
    path, plan, document = exported(model, folder, **kinds)
    frame = frame_of(model)
    fed = {name: frame[name] for name in plan.inputs}
    wanted = armcl_reference.session_of(str(path)).run(list(plan.outputs), fed)
    found = armcl_reference.run(folder, fed)
    for name, values in zip(plan.outputs, wanted, strict=True):
        scale = np.abs(values).max()
        assert np.abs(found[name].reshape(values.shape) - values).max() <= 1e-5 * scale
    return document


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_exported_operator_computes_what_the_model_does(case, tmp_path):
    check(case.model(), tmp_path)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_an_inception_network_is_exported_in_every_kind_of_configuration(arrangement, tmp_path):
    document = check(inception(), tmp_path, arrangement=arrangement)
    stages = [{each.name for each in stage.processors} for stage in document.stages]
    kinds = {
        "sequential": [{"big"}],
        "pipe-only": [{"little"}, {"big"}],
        "para-only": [{"big", "little"}],
        "hybrid": [{"middle"}, {"big", "little"}],
        "gpu-alone": [{"gpu"}],
        "pipe-gpu": [{"gpu"}, {"big"}],
        "para-gpu": [{"big", "little", "gpu"}],
        "hybrid-gpu": [{"little"}, {"big", "gpu"}],
    }
    assert stages == kinds[arrangement]


def test_activations_that_are_operators_of_their_own_stay_so(tmp_path):
    document = check(inception(), tmp_path, granularity="onnx")
    assert sum(operator.type == "Relu" for operator in document.operators) == 13
    assert all(operator.activation is None for operator in document.operators)


def test_there_is_a_case_for_every_operator_that_can_be_exported():
    shown = {node[0] for case in CASES for node in case.nodes}
    assert RULES.keys() <= shown
    assert len(CASES) >= 90
