"""Runs step through models with states, with the results of a plain loop in ONNX Runtime."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

import parapipe
from parapipe.errors import ExecutionError
from parapipe.runtime.document import State, Tensor
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import frames_in
from parapipe.runtime.states import next_input
from tests.cases.recurrent import WIDTH, write_decoder, write_recurrent

STEPS = 7
OPTIONS = {
    "jobs": 1, "draws": 0, "cache": False, "note": lambda _: None, "interleave": "none",
    "objectives": "latency-throughput", "mapper": "heft_cpop", "exclude": ["gpu"],
}  # fmt: skip


def plain_loop(path, frames, pairs, *, sequences=1, chosen=()):
    """Return the outputs of each step, states and tokens fed back by hand."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    fed = [{} for _ in range(sequences)]
    results = []
    for n, frame in enumerate(frames):
        outputs = dict(zip(names, session.run(None, {**frame, **fed[n % sequences]}), strict=True))
        handed = {}
        for read, made in pairs.items():
            size = [slice(-count, None) for count in frame[read].shape]
            handed[read] = outputs[made][tuple(size)]
        for read, made in dict(chosen).items():
            handed[read] = outputs[made].argmax(-1).astype(frame[read].dtype)
        fed[n % sequences] = handed
        results.append(outputs)
    return results


def run_and_compare(path, frames, pairs, tmp_path, *, which, sequences=1, chosen=()):
    front = parapipe.map(path, "amlogic-a311d", sequences=sequences, **OPTIONS)
    configuration = next(each for each in front if which(each))
    file, kept = tmp_path / "frames.npz", tmp_path / "results.npz"
    np.savez(file, **{name: np.stack([each[name] for each in frames]) for name in frames[0]})
    cores = {each.name: [0] for each in configuration.plan().processors}
    parapipe.run_plan(
        configuration.plan(), frames=STEPS, input=file, keep=kept, warmup=2, saturate=True,
        cores=cores, unit="operator",
    )  # fmt: skip
    expected = plain_loop(path, frames, pairs, sequences=sequences, chosen=chosen)
    with np.load(kept) as results:
        for name in expected[0]:
            wanted = np.stack([each[name] for each in expected])
            np.testing.assert_allclose(results[name].reshape(wanted.shape), wanted, atol=1e-5)
    return expected


def is_pipeline(configuration):
    return len(configuration.stages) > 1


def is_alone(configuration):
    return configuration.kind == "sequential"


@pytest.mark.parametrize(
    ("which", "sequences"), [(is_pipeline, 1), (is_pipeline, 3), (is_alone, 2)]
)
def test_a_recurrent_model_gives_what_a_plain_loop_gives(tmp_path, which, sequences):
    path = write_recurrent(tmp_path / "model.onnx")
    rng = np.random.default_rng(5)
    names = ["x", "layer0.h0", "layer1.h0"]
    frames = [
        {name: rng.standard_normal((1, WIDTH)).astype(np.float32) for name in names}
        for _ in range(STEPS)
    ]
    pairs = {f"layer{n}.h0": f"layer{n}.hn" for n in range(2)}
    expected = run_and_compare(path, frames, pairs, tmp_path, which=which, sequences=sequences)
    again = plain_loop(path, frames, {})
    assert not np.allclose(expected[-1]["y"], again[-1]["y"], atol=1e-3)  # states matter


@pytest.mark.parametrize("grows", [True, False])
def test_a_decoder_writes_the_tokens_of_a_greedy_loop(tmp_path, grows):
    path = write_decoder(tmp_path / "decoder.onnx", grows=grows)
    rng = np.random.default_rng(7)
    cache = [f"past_key_values.{n}.{what}" for n in range(2) for what in ("key", "value")]
    start = {name: rng.standard_normal((1, 2, 8, 16)).astype(np.float32) for name in cache}
    frames = [{"input_ids": np.array([[3]]), **start} for _ in range(STEPS)]
    pairs = {name: name.replace("past_key_values", "present") for name in cache}
    expected = run_and_compare(
        path, frames, pairs, tmp_path, which=is_pipeline, chosen={"input_ids": "logits"}
    )
    assert len({int(each["logits"].argmax()) for each in expected}) > 1


def test_states_that_a_file_of_frames_leaves_out_are_zeros_before_the_first_step(tmp_path):
    path = write_recurrent(tmp_path / "model.onnx")
    x = np.random.default_rng(1).standard_normal((STEPS, 1, WIDTH)).astype(np.float32)
    zeros = {f"layer{n}.h0": np.zeros((1, WIDTH), np.float32) for n in range(2)}
    plan = parapipe.map(path, "amlogic-a311d", **OPTIONS)["sequential"].plan()
    file, kept = tmp_path / "frames.npz", tmp_path / "results.npz"
    np.savez(file, x=x)
    parapipe.run_plan(plan, frames=STEPS, input=file, keep=kept, cores={"big": [0]}, saturate=True)
    frames = [{"x": each, **zeros} for each in x]
    expected = plain_loop(path, frames, {f"layer{n}.h0": f"layer{n}.hn" for n in range(2)})
    with np.load(kept) as results:
        wanted = np.stack([each["y"] for each in expected])
        np.testing.assert_allclose(results["y"].reshape(wanted.shape), wanted, atol=1e-5)


def test_a_file_without_inputs_is_told_what_it_holds_and_that_states_may_be_left_out(tmp_path):
    tensors = {name: Tensor("float32", (1, 2), 8) for name in ("x", "mask", "h")}
    folder = SimpleNamespace(
        inputs=("x", "mask", "h"), tensors=tensors, states=(State("h", "hn", "state"),)
    )
    np.savez(tmp_path / "x.npz", x=np.ones((1, 2), np.float32))
    with pytest.raises(RunError) as caught:
        frames_in(tmp_path / "x.npz", folder)
    assert str(caught.value) == (
        f"{tmp_path / 'x.npz'}: holds arrays ['x'], and the model's inputs are ['mask', 'x'] "
        "beside states, which may be left out ('h', ...): name them so in numpy.savez"
    )


def test_strategies_and_arenas_do_not_hand_states_on(tmp_path):
    path = write_recurrent(tmp_path / "model.onnx")
    plan = parapipe.map(path, "amlogic-a311d", **OPTIONS)["sequential"].plan()
    cores = {each.name: [0] for each in plan.processors}
    with pytest.raises(ExecutionError, match="states, and the strategy 'ready-pool'"):
        parapipe.run_plan(plan, frames=2, strategy="ready-pool", cores=cores)
    with pytest.raises(ExecutionError, match="in no arena"):
        parapipe.run_plan(plan, frames=2, arena=True, cores=cores)


def test_what_has_grown_loses_its_oldest_entries_and_tokens_are_the_largest():
    wanted = Tensor("float32", (1, 3), 12)
    grown = np.array([[1, 2, 3, 4, 5]], np.float32)
    assert next_input(State("a", "b", "state"), grown, wanted).tolist() == [[3, 4, 5]]
    logits = np.zeros((1, 2, 9), np.float32)
    logits[0, 0, 4] = logits[0, 1, 7] = 1
    token = next_input(State("a", "b", "token"), logits, Tensor("int64", (1, 1), 8))
    assert token.tolist() == [[7]]
    assert token.dtype == np.int64
