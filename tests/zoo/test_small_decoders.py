"""Small decoders of the zoo: published size, work by hand, a step that goes on from a prompt."""

from math import prod

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.states import with_states
from parapipe.zoo.llama import llama, llama_step
from parapipe.zoo.mixture import moe, moe_step
from parapipe.zoo.registry import build

LAYERS, WIDTH, INNER, WORDS, KEYS = 30, 576, 1536, 49152, 3 * 64
# Allal et al., "SmolLM2", 2025: the model's card states 134,515,008 parameters.
PUBLISHED_WEIGHTS = 134_515_008


def graph_of(name):
    return import_proto(
        build(name, weightless=True), source=ModelSource(name, ""), granularity="onnx"
    )


def weights_of(graph):
    learned = [each for name, each in graph.constants.items()
               if name.endswith(("/weight", "/scale", "/table"))]  # fmt: skip
    return sum(prod(each.shape) for each in learned)


def test_thirty_layers_have_the_published_number_of_weights():
    assert weights_of(graph_of(f"llama:{LAYERS}")) == PUBLISHED_WEIGHTS
    assert weights_of(graph_of(f"llama-step:{LAYERS}")) == PUBLISHED_WEIGHTS


def test_a_step_multiplies_each_weight_once_and_attends_to_the_cache():
    graph = graph_of(f"llama-step:{LAYERS}")
    norms = (2 * LAYERS + 1) * WIDTH
    attention = LAYERS * 2 * (512 + 1) * WIDTH
    assert sum(each.work.macs for each in graph.operators) == PUBLISHED_WEIGHTS - norms + attention


def test_a_prompt_does_so_for_each_token_and_attends_to_all():
    graph = graph_of("llama:2")
    layer = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * INNER
    attention = 2 * 128 * 128 * WIDTH
    macs = 2 * (128 * layer + attention) + 128 * WIDTH * WORDS
    assert sum(each.work.macs for each in graph.operators) == macs


def test_the_caches_and_the_token_of_a_step_are_recognised_as_states():
    graph = with_states(graph_of("llama-step:2"), {}, 1)
    assert [each.kind for each in graph.states] == ["token", *["state"] * 4]
    assert graph.states[1].output == "present.0.key"


@pytest.mark.parametrize("name", ["moe:24", "moe-step:24"])
def test_the_mixture_of_24_layers_has_the_published_number_of_weights(name):
    # Counted of `GraniteMoeForCausalLM` (package transformers) in the sizes of Granite 3.0
    # 1B-A400M, whose report says 1.3 billion.
    assert weights_of(graph_of(name)) == 1_334_628_352


def test_a_token_multiplies_8_experts_of_32_and_is_expected_to_read_as_many():
    graph = graph_of("moe-step:1")
    (experts,) = (each for each in graph.operators if each.type == "MoE")
    expert = 3 * 512 * 1024
    assert experts.work.macs == 8 * expert
    attention = 2 * 1024 * 1024 + 2 * 1024 * 512 + 2 * (512 + 1) * 1024
    macs = attention + 1024 * 32 + 8 * expert + 1024 * 49155
    assert sum(each.work.macs for each in graph.operators) == macs


def run(model, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


@pytest.mark.parametrize(
    ("reading", "writing", "layers", "sizes"),
    [(llama, llama_step, 2, {}), (moe, moe_step, 1, {"experts": 9})],
)
def test_a_step_behind_a_cache_has_the_logits_of_the_last_token_of_a_prompt(
    reading, writing, layers, sizes
):
    tokens, words = 9, 50
    prompt = reading(layers, tokens=tokens, vocabulary=words, **sizes)
    step = writing(layers, past=tokens - 1, vocabulary=words, **sizes)
    caches = {
        f"past_key_values.{n}.{what}": f"decoder/{n}/{what}/{end}"
        for n in range(layers)
        for what, end in (("key", "turned"), ("value", "heads"))
    }
    prompt.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in caches.values()
    )
    ids = np.random.default_rng(3).integers(0, words, (1, tokens))
    whole = run(prompt, {"input_ids": ids})
    feed = {name: whole[made][:, :, :-1] for name, made in caches.items()}
    after = run(step, {"input_ids": ids[:, -1:], **feed})
    np.testing.assert_allclose(after["logits"][0, 0], whole["logits"][0, -1], atol=1e-4)
    np.testing.assert_allclose(after["present.0.value"], whole["decoder/0/value/heads"], atol=1e-5)
    assert np.abs(whole["logits"]).max() > 0.1
