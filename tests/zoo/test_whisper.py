"""Whisper of the zoo: published size, work by hand, a decoder that listens to its encoder."""

import re
from math import prod

import numpy as np
import onnxruntime

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.states import with_states
from parapipe.zoo.emitter import without_weights
from parapipe.zoo.registry import build
from parapipe.zoo.whisper import whisper_decoder, whisper_encoder

LAYERS, WIDTH, WORDS, SOUNDS, PAST = 4, 384, 51865, 1500, 223
# `WhisperForConditionalGeneration` of the package transformers has 37,760,640 in these sizes (the
# paper, table 1: 39 million), of which 1500 · 384 are the sines that this encoder computes.
COUNTED_WEIGHTS = 37_760_640 - 1500 * 384
LINEAR = WIDTH * WIDTH


def graph_of(name):
    model = build(name, weightless=True)
    return import_proto(model, source=ModelSource(name, ""), granularity="onnx")


def macs_of(name):
    return sum(each.work.macs for each in graph_of(name).operators)


def weights_of(name):
    with without_weights() as makers:
        tensors = build(name).graph.initializer
    return {each.name: prod(each.dims) for each in tensors if each.name in makers}


def test_both_together_have_each_weight_of_whisper_tiny_once():
    encoder, decoder = map(weights_of, ("whisper-encoder", "whisper-decoder"))
    assert not encoder.keys() & decoder.keys()
    assert sum(encoder.values()) + sum(decoder.values()) == COUNTED_WEIGHTS


def test_the_encoder_multiplies_what_its_layers_do_by_hand():
    convolutions = 3000 * 80 * 3 * WIDTH + SOUNDS * WIDTH * 3 * WIDTH
    layer = SOUNDS * 12 * LINEAR + 2 * SOUNDS * SOUNDS * WIDTH
    ends = LAYERS * SOUNDS * 2 * LINEAR
    assert macs_of("whisper-encoder") == convolutions + LAYERS * layer + ends


def test_a_step_of_the_decoder_multiplies_each_weight_once_and_attends_to_both_caches():
    layer = 4 * LINEAR + 2 * LINEAR + 8 * LINEAR + 2 * WIDTH * (PAST + 1 + SOUNDS)
    assert macs_of("whisper-decoder") == LAYERS * layer + WIDTH * WORDS


def test_only_the_decoder_s_own_caches_are_states():
    states = with_states(graph_of("whisper-decoder"), {}, 1).states
    caches = [each for each in states if each.kind == "state"]
    assert len(caches) == 2 * LAYERS
    assert all(re.fullmatch(r"present\.\d\.decoder\.(key|value)", each.output) for each in caches)


def run(model, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def test_steps_go_on_from_each_other_and_depend_on_the_sound():
    rng = np.random.default_rng(5)
    sound = {"input_features": rng.standard_normal((1, 80, 16)).astype(np.float32)}
    heard = {
        name.replace("present", "past_key_values"): each
        for name, each in run(whisper_encoder(frames=16), sound).items()
    }
    assert {each.shape for each in heard.values()} == {(1, 6, 8, 64)}
    empty = {
        name.replace("encoder", "decoder"): np.zeros((1, 6, 0, 64), np.float32) for name in heard
    }
    first, second = (whisper_decoder(past=past, sounds=8, vocabulary=50) for past in (0, 1))
    token = np.array([[7]])
    begun = run(first, {"input_ids": token, **heard, **empty})
    fed = {
        name.replace("present", "past_key_values"): each
        for name, each in begun.items()
        if name != "logits"
    }
    after = run(second, {"input_ids": token, **heard, **fed})
    deaf = run(second, {"input_ids": token, **{n: 0 * each for n, each in heard.items()}, **fed})
    kept = after["present.3.decoder.key"]
    assert kept.shape == (1, 6, 2, 64)
    np.testing.assert_array_equal(kept[:, :, :1], begun["present.3.decoder.key"])
    assert np.abs(after["logits"] - begun["logits"]).max() > 0.1
    assert np.abs(after["logits"] - deaf["logits"]).max() > 0.1
