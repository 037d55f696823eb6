"""The decoder of the benchmark of prefill and decode has the sizes that it says, and runs."""

from math import prod

import numpy as np
import onnx
import onnxruntime
import pytest

import parapipe
from benchmarks.prefill_decode import LLAMA_2_7B, Decoder, Sizes, mapped, table, used

SMALL = Sizes(layers=2, width=64, heads=4, key_heads=2, inner=96, vocabulary=50)


def written(sizes, folder):
    path = folder / "decoder.onnx"
    onnx.save(Decoder(sizes).model(), path)
    return path


def test_it_has_as_many_weights_as_tinyllama(tmp_path):
    graph = parapipe.load_model(written(Sizes(), tmp_path), dims={"tokens": 1, "past": 8})
    weights = [each for name, each in graph.constants.items() if not name.endswith("shape")]
    assert sum(prod(each.shape) for each in weights if each.dtype == "float32") == 1_100_048_384


def test_it_has_as_many_weights_as_llama_2_of_which_those_of_products_have_4_bits(tmp_path):
    graph = parapipe.load_model(written(LLAMA_2_7B, tmp_path), dims={"tokens": 1, "past": 8})
    constants = [each for each in graph.constants.values() if each.dtype == "float32"]
    few = sum(prod(each.shape) for each in constants if each.stored == "int4")
    rest = sum(prod(each.shape) for each in constants) - few
    words, norms = 32000 * 4096, 65 * 4096
    assert (few, rest) == (6_738_415_616 - words - norms, words + norms)


def test_a_prompt_and_a_step_behind_it_run(tmp_path):
    session = onnxruntime.InferenceSession(
        written(SMALL, tmp_path), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs() if each.name != "input_ids"]
    empty = np.zeros((1, SMALL.key_heads, 0, SMALL.head), np.float32)
    logits, *kept = session.run(
        None, {"input_ids": np.ones((1, 5), np.int64), **dict.fromkeys(names, empty)}
    )
    assert logits.shape == (1, 5, SMALL.vocabulary)
    logits, *kept = session.run(
        None, {"input_ids": np.ones((1, 1), np.int64), **dict(zip(names, kept, strict=True))}
    )
    assert logits.shape == (1, 1, SMALL.vocabulary)
    assert {each.shape for each in kept} == {(1, SMALL.key_heads, 6, SMALL.head)}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_table_has_what_is_apart_and_both_baselines(tmp_path):
    platform = tmp_path / "rk3588.yaml"
    parapipe.new_platform(chip="rk3588").write(platform)
    one = Sizes(layers=1, width=64, heads=4, key_heads=2, inner=96, vocabulary=50)
    document = mapped(written(one, tmp_path), platform, "rk3588", 16, 60.0)
    rows = [*table("rk3588", 16, document)]
    assert [row.split(" | ")[2] for row in rows] == ["apart", "one placement", "one processor"]
    assert {row.count("|") for row in rows} == {11}
    assert rows[0].endswith(" 1.00 |")
    assert used("big+npu0[1-4]") == "big+npu0"
