"""Requests of a language model: the tokens of a plain loop, and the figures that were predicted."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import parapipe
from benchmarks.decoder import DecoderSizes, decoder
from parapipe.documents.shapes_schema import load_shapes
from parapipe.errors import ExecutionError, ParapipeError, PlanError
from tests.cases.genai_folder import write_genai_folder
from tests.cases.recurrent import write_any_shape

SIZES = DecoderSizes(layers=1, width=64, heads=4, key_heads=2, inner=96, vocabulary=60, longest=64)
LAYERS, PROMPT, SLOTS, TOKENS = 1, 8, 20, 12
QUICK = {
    "interleave": "none", "mapper": "heft", "cache": False, "jobs": 1, "note": lambda _: None,
    "exclude": ["gpu", "npu0", "npu1", "npu2"], "resolution": 0.02,
    "max_stages": 2,
}  # fmt: skip
CACHES = [f"past_key_values.{n}.{what}" for n in range(LAYERS) for what in ("key", "value")]


def sets(prompt, slots):
    return {
        "prefill": {"sequence": prompt, "past": 0, "total": prompt},
        "decode": {"sequence": 1, "past": slots, "total": slots + 1},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("requests")


@pytest.fixture(scope="module")
def board(folder):
    parapipe.new_platform(chip="rk3588").write(folder / "rk3588.yaml")
    return folder / "rk3588.yaml"


@pytest.fixture(scope="module")
def model(folder):
    onnx.save(decoder(SIZES), folder / "decoder.onnx")
    return folder / "decoder.onnx"


@pytest.fixture(scope="module")
def fronts(model, board, folder):
    found = parapipe.map_shapes(
        model, board, shape_sets=sets(PROMPT, SLOTS), mix={"prefill": 1, "decode": 11},
        **QUICK,
    )  # fmt: skip
    found.write(folder / "out")
    return found


@pytest.fixture(scope="module")
def out(fronts, folder):
    return folder / "out"


def plain_loop(model, ids, count):
    """Return greedy tokens of the whole model behind a cache that grows, and all logits."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    caches = dict.fromkeys(CACHES, np.zeros((1, 2, 0, 16), np.float32))
    tokens, logits, begin = [], [], 0
    for _ in range(count):
        feed = {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, begin + len(ids)), np.int64),
            "position_ids": np.arange(begin, begin + len(ids))[None],
        }
        made = dict(zip(names, session.run(None, {**feed, **caches}), strict=True))
        caches = {name: made[name.replace("past_key_values", "present")] for name in CACHES}
        begin += len(ids)
        ids = [int(made["logits"][0, -1].argmax())]
        tokens += ids
        logits.append(made["logits"][0, -1])
    return tokens, np.stack(logits)


def written(folder, prompt):
    path = folder / f"prompt{len(prompt)}.npz"
    np.savez(path, input_ids=np.array([prompt]))
    return path


@pytest.mark.parametrize("length", [PROMPT, 5])
def test_tokens_and_logits_are_those_of_a_plain_loop(model, fronts, out, folder, length):
    """Placements with and without moves; a shorter prompt has padding in front."""
    prompt = [(7 * n + 3) % 60 for n in range(length)]
    wanted, logits = plain_loop(model, prompt, TOKENS)
    assert len({*wanted}) > 1
    rows = fronts.document.configurations
    moving = next(row.id for row in rows if row.moves)
    for name in (moving, "one-processor", "balanced"):
        kept = folder / "kept.npz"
        found = run(out, name, input=written(folder, prompt), keep=kept)
        assert [*found.chosen[0]] == wanted
        assert (found.prompt, found.tokens) == (length, TOKENS)
        with np.load(kept) as results:
            assert results["tokens"].tolist() == [wanted]
            made = [results["prefill/logits"][0, 0, -1], *results["decode/logits"][:, 0, 0]]
            np.testing.assert_allclose(np.stack(made), logits, atol=1e-5)


def run(out, name=None, **said):
    """Run a row, all its processors on one core."""
    document = load_shapes(out)
    used = {
        each.name: [0]
        for shape, placement in document.configuration(name or "balanced").placements.items()
        for each in parapipe.load_plan(out / shape / "plans" / f"{placement.id}.json").processors
    }
    return parapipe.run_shapes(out, name, cores=used, **{"warmup": 0, **said})


def test_a_model_without_a_mask_keeps_the_newest_slots(board, folder):
    model = write_any_shape(folder / "any.onnx")
    shapes = {"prefill": {"sequence": 6, "past": 0}, "decode": {"sequence": 1, "past": 6}}
    parapipe.map_shapes(model, board, shape_sets=shapes, **QUICK).write(folder / "any")
    prompt = [5, 1, 20, 33, 8, 39]
    found = run(folder / "any", input=written(folder, prompt), tokens=9)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    caches, ids, wanted = {n: np.zeros((1, 0, 32), np.float32) for n in CACHES}, prompt, []
    for _ in range(9):
        made = session.run(None, {"input_ids": np.array([ids]), **caches})
        made = dict(zip(names, made, strict=True))
        caches = {n: made[n.replace("past_key_values", "present")][:, -6:] for n in CACHES}
        ids = [int(made["logits"][0, -1].argmax())]
        wanted += ids
    assert [*found.chosen[0]] == wanted
    with pytest.raises(ExecutionError, match=r"1 tokens shorter .* no `attention_mask`"):
        run(folder / "any", input=written(folder, prompt[1:]))


def test_empty_slots_that_no_mask_leaves_out_are_refused(board, folder):
    model = write_any_shape(folder / "any.onnx")
    shapes = {"prefill": {"sequence": 6, "past": 0}, "decode": {"sequence": 1, "past": 9}}
    parapipe.map_shapes(model, board, shape_sets=shapes, **QUICK).write(folder / "more")
    with pytest.raises(ExecutionError, match="has 9 slots, of which the tokens before it fill 6"):
        run(folder / "more")


def test_requests_are_measured_beside_what_is_predicted(fronts, out):
    found = run(out, "one-processor", requests=3, tokens=5)
    assert (found.how, found.requests, found.tokens) == ("run", 3, 5)
    assert [(each.steps, each.tokens, each.slots) for each in found.shapes] == [
        (1, PROMPT, 0), (4, 1, SLOTS),
    ]  # fmt: skip
    row = fronts.document.configuration("one-processor")
    prefill, decode = (fronts.fronts[name][each.id] for name, each in row.placements.items())
    assert found.first_token_s.predicted == pytest.approx(prefill.first_token_s)
    steps_s = decode.latency_s + 3 * decode.period_s
    assert found.token_s.predicted == pytest.approx(steps_s / 4)
    for each in (found.first_token_s, found.token_s, found.tokens_per_second, found.request_s):
        assert each.error == pytest.approx(each.predicted / each.observed - 1)


def test_all_steps_of_the_mix_take_what_shapes_json_says(fronts, out):
    for row in fronts.document.configurations:
        found = parapipe.simulate_shapes(out, row.id)
        prefill, decode = row.placements.values()
        outside_s = found.first_token_s.predicted - prefill.latency_s
        assert found.request_s.predicted - outside_s == pytest.approx(row.request_s)
        decode_s = decode.steps_s + sum(each.time_s for each in row.moves)
        assert found.tokens_per_second.predicted == pytest.approx(11 / decode_s)


def test_the_simulated_clock_gives_what_is_predicted(fronts, out):
    """Exactly on single processors; on several, an operator may begin sooner than planned."""
    alone = fronts.document.configuration("one-processor")
    for row in fronts.document.configurations:
        found = parapipe.simulate_shapes(out, row.id, tokens=TOKENS + 3)
        for each in (found.first_token_s, found.token_s, found.request_s):
            least = each.predicted * (1 - 1e-6 if row is alone else 0.99)
            assert least <= each.observed <= each.predicted * (1 + 1e-6)
        assert found.moved_s == pytest.approx(sum(each.time_s for each in row.moves))


def test_jitter_makes_requests_differ_and_a_seed_the_same(out):
    said = {"jitter": 0.3, "requests": 5, "seed": 4}
    one, same = (parapipe.simulate_shapes(out, "one-processor", **said) for _ in range(2))
    assert one == same
    assert one.request_s.error != pytest.approx(0, abs=1e-6)


def test_what_is_asked_wrongly_is_refused(out, folder):
    wrong = {
        "no configuration 'c01'": {"name": "c01"},
        "2 tokens or more": {"tokens": 1},
        "give input_ids alone": {"input": folder / "odd.npz"},
        "whole numbers of shape": {"input": written(folder, range(PROMPT + 1))},
    }
    np.savez(folder / "odd.npz", input_ids=np.zeros((1, 3), np.int64), attention_mask=np.ones(3))
    for words, said in wrong.items():
        with pytest.raises(ParapipeError, match=words):
            run(out, said.pop("name", None), **said)
    with pytest.raises(ExecutionError, match="cores are given for npu"):
        parapipe.run_shapes(out, cores={"npu": [0]})


def test_buckets_and_shapes_without_tokens_have_no_requests(model, board, folder):
    common = {**QUICK, "dims": {"past": 0}}
    any_shape = write_any_shape(folder / "any.onnx")
    lengths = {f"sequence-{n}": {"sequence": n} for n in (4, 8)}
    parapipe.map_shapes(any_shape, board, shape_sets=lengths, **common).write(folder / "buckets")
    with pytest.raises(PlanError, match="buckets of 'sequence'"):
        parapipe.simulate_shapes(folder / "buckets")
    alone = {"prefill": sets(PROMPT, SLOTS)["prefill"]}
    parapipe.map_shapes(model, board, shape_sets=alone, **QUICK).write(folder / "alone")
    with pytest.raises(PlanError, match="a request has a prompt, and then steps of one token"):
        parapipe.run_shapes(folder / "alone")


@pytest.fixture(scope="module")
def grouped(board, folder):
    """A decoder of GroupQueryAttention, whose cache is filled from the first slot on."""
    source = folder / "genai"
    source.mkdir()
    write_genai_folder(source)
    shapes = {
        name: {"sequence_length": new, "past_sequence_length": past,
               "total_sequence_length": new + past}
        for name, new, past in (("prefill", 8, 0), ("decode", 1, 20))
    }  # fmt: skip
    parapipe.map_shapes(
        source / "model.onnx", board, shape_sets=shapes, dims={"batch_size": 1}, **QUICK
    ).write(folder / "grouped")
    return source / "model.onnx", folder / "grouped"


@pytest.mark.parametrize("length", [8, 5])
def test_caches_that_fill_from_the_first_slot_give_the_tokens_of_a_plain_loop(
    grouped, folder, length
):
    model, out = grouped
    prompt = [(11 * n + 2) % 64 for n in range(length)]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    caches = {
        each.name: np.zeros((1, 2, 0, 16), np.float32)
        for each in session.get_inputs()
        if "past" in each.name
    }
    ids, read, wanted = prompt, 0, []
    for _ in range(12):
        read += len(ids)
        feed = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, read), np.int64)}
        made = dict(zip(names, session.run(None, {**feed, **caches}), strict=True))
        caches = {name: made[name.replace("past_key_values", "present")] for name in caches}
        ids = [int(made["logits"][0, -1].argmax())]
        wanted += ids
    assert len({*wanted}) > 2
    for name in ("one-processor", "balanced"):
        found = run(out, name, input=written(folder, prompt), tokens=12)
        assert [*found.chosen[0]] == wanted


def test_they_have_slots_for_all_tokens(grouped):
    run(grouped[1], tokens=13)
    with pytest.raises(ExecutionError, match=r"has 20 slots, .* prompt and answer fill 21"):
        run(grouped[1], tokens=15)
