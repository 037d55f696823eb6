"""What Qualcomm's compiler says of nodes that it leaves to the CPU.

`logs` holds what it said of the model `left_to_the_cpu`; other lines are left out.
"""

from pathlib import Path

from parapipe.compilers.qnn.reasons import read_reasons

LOGS = Path(__file__).with_name("logs")
ERF = "Operators of type `Erf` are not supported by QNN EP."


def reasons(name):
    return read_reasons((LOGS / f"qnn_{name}.txt").read_text(encoding="utf-8"))


def test_a_node_has_the_compilers_words() -> None:
    assert reasons("float16") == {"erf": ERF}


def test_nodes_that_are_refused_together_share_the_reason() -> None:
    told = reasons("int8")
    assert told["erf"] == told["b_DequantizeLinear"] == told["y_QuantizeLinear"] == ERF
    assert told["x_QuantizeLinear"] == (
        "QNN EP is configured to not take Q nodes that consume a graph input."
    )


def test_nodes_that_the_npu_runs_have_no_reason() -> None:
    assert {"conv", "lrn", "conv_token_1"}.isdisjoint({**reasons("float16"), **reasons("int8")})


def test_a_log_without_refusals_has_none() -> None:
    assert read_reasons("") == {}
    assert read_reasons("Validation PASSED for 1 nodes in OrtNodeUnit (Conv) :\n") == {}
