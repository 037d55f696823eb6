"""Plans of a prompt and of a token as a pipeline of ONNX Runtime GenAI."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from math import prod

import numpy as np
import onnx
import onnxruntime
import pytest

import parapipe
from parapipe.errors import ArgumentError, ExportError
from tests.cases.genai_folder import LAYERS, write_genai_folder, write_plans
from tests.cases.recurrent import write_decoder

PROMPT, TOKENS = [3, 17, 22, 9, 41], 12
CACHES = [f"{layer}.{what}" for layer in range(LAYERS) for what in ("key", "value")]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder")
    write_genai_folder(folder)
    return folder


@pytest.fixture(scope="module")
def plans(source):
    return write_plans(source)


@pytest.fixture(scope="module")
def exported(source, plans):
    out = source / "exported"
    parapipe.export_plan(plans[0], "genai", out, token_plan=plans[1])
    return out


@pytest.fixture(scope="module")
def config(exported):
    return json.loads((exported / "genai_config.json").read_text(encoding="utf-8"))


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def stages(config, flag):
    entries = [next(iter(each.items())) for each in config["model"]["decoder"]["pipeline"]]
    return [(name, entry) for name, entry in entries if entry[flag]]


def run_stages(exported, entries, feed):
    """Run models one after the other, which find tensors by their names."""
    store = dict(feed)
    for _, entry in entries:
        made = session(exported / entry["filename"]).run(
            entry["outputs"], {name: store[name] for name in entry["inputs"]}
        )
        store.update(zip(entry["outputs"], made, strict=True))
    return store


def feed_of(ids, caches, length):
    return {
        "input_ids": np.array([ids], np.int64),
        "attention_mask": np.ones((1, length), np.int64),
        **{f"past_key_values.{name}": each for name, each in caches.items()},
    }


def assert_like_the_whole_model(source, exported):
    """Run a prompt and two tokens after it, of lengths that nothing was mapped for."""
    config = json.loads((exported / "genai_config.json").read_text(encoding="utf-8"))
    whole = session(source / "model.onnx")
    names = [each.name for each in whole.get_outputs()]
    caches = dict.fromkeys(CACHES, np.zeros((1, 2, 0, 16), np.float32))
    ids, length = PROMPT, len(PROMPT)
    for flag in ("run_on_prompt", "run_on_token_gen", "run_on_token_gen"):
        feed = feed_of(ids, caches, length)
        found = run_stages(exported, stages(config, flag), feed)
        for name, wanted in zip(names, whole.run(names, feed), strict=True):
            np.testing.assert_allclose(found[name], wanted, atol=1e-5)
        caches = {name: found[f"present.{name}"] for name in CACHES}
        ids, length = [int(found["logits"][0, -1].argmax())], length + 1


def test_a_prompt_and_a_token_of_any_length_have_the_results_of_the_whole_model(source, exported):
    assert_like_the_whole_model(source, exported)


@pytest.mark.usefixtures("plans")
def test_a_row_of_several_shapes_is_exported_by_the_plans_that_it_names(source, tmp_path):
    sets = {
        name: {"sequence_length": new, "past_sequence_length": past,
               "total_sequence_length": new + past}
        for name, new, past in (("prefill", 32, 0), ("decode", 1, 32))
    }  # fmt: skip
    fronts = parapipe.map_shapes(
        source / "model.onnx", source / "rk3588.yaml", shape_sets=sets, dims={"batch_size": 1},
        mix={"prefill": 1, "decode": 50}, mapper="heft", interleave="none", cache=False,
        exclude=["gpu"], note=lambda _: None,
    )  # fmt: skip
    fronts.write(tmp_path / "fronts")
    named = fronts.document.configurations[0].placements
    prompt, token = (tmp_path / f"fronts/{name}/plans/{named[name].id}.json" for name in sets)
    parapipe.export_plan(prompt, "genai", tmp_path / "out", token_plan=token)
    assert_like_the_whole_model(source, tmp_path / "out")


def test_every_operator_is_in_one_model_of_each_plan_on_the_plan_s_processor(
    exported, plans, config
):
    document = json.loads((exported / "plan.json").read_text(encoding="utf-8"))
    for when, plan in zip(("prompt", "token"), plans, strict=True):
        placed = {
            operator: each["processor"]
            for name, each in document["segments"].items()
            for operator in each["operators"]
            if name.startswith(when)
        }
        wanted = {
            each.operator: processor.name
            for stage in plan.stages
            for processor in stage.processors
            for each in processor.operators
        }
        assert placed == wanted
    both = [stages(config, flag) for flag in ("run_on_prompt", "run_on_token_gen")]
    assert [len(each) > 1 for each in both] == [True, True]
    assert not {name for name, _ in both[0]} & {name for name, _ in both[1]}


def test_both_plans_share_one_file_of_weights(source, exported):
    stored = onnx.load(source / "model.onnx").graph.initializer
    large = [4 * prod(each.dims) for each in stored if prod(each.dims) > 256]
    size = (exported / "weights.bin").stat().st_size
    assert sum(large) <= size < sum(large) + 4096 * len(large)


def test_settings_and_tokenizers_stay_as_they_are(source, exported, config):
    before = json.loads((source / "genai_config.json").read_text(encoding="utf-8"))
    assert config["search"] == before["search"]
    assert config["model"]["type"] == "decoder-pipeline"
    assert config["model"]["decoder"]["inputs"] == before["model"]["decoder"]["inputs"]
    assert (exported / "tokenizer_config.json").read_text(encoding="utf-8") == "{}"


def test_one_plan_serves_both_if_there_is_no_other(plans, tmp_path):
    parapipe.export_plan(plans[1], "genai", tmp_path / "out")
    config = json.loads((tmp_path / "out/genai_config.json").read_text(encoding="utf-8"))
    both = [stages(config, flag) for flag in ("run_on_prompt", "run_on_token_gen")]
    assert both[0] == both[1] != []


def test_plans_of_two_models_are_refused(plans, tmp_path):
    model = write_decoder(tmp_path / "other.onnx", layers=1)
    other = parapipe.map(
        model, "amlogic-a311d", mapper="heft", draws=0, interleave="none", note=lambda _: None
    )
    other = other.best("latency").plan()
    with pytest.raises(ExportError, match="the plan of the tokens is of another model"):
        parapipe.export_plan(plans[0], "genai", tmp_path / "out", token_plan=other)
    with pytest.raises(ExportError, match="wants the decoder of a folder of ONNX Runtime GenAI"):
        parapipe.export_plan(other, "genai", tmp_path / "out")


def test_other_targets_take_no_plan_of_tokens(plans, tmp_path):
    with pytest.raises(ArgumentError, match="takes no `token_plan`, which is for genai"):
        parapipe.export_plan(plans[0], "onnxruntime", tmp_path / "out", token_plan=plans[1])


GENERATE = """
import sys, numpy, onnxruntime_genai as genai
model = genai.Model(sys.argv[1])
settings = genai.GeneratorParams(model)
prompt = numpy.array([int(each) for each in sys.argv[3:]], numpy.int32)
settings.set_search_options(max_length=len(prompt) + int(sys.argv[2]), do_sample=False)
generator = genai.Generator(model, settings)
generator.append_tokens(prompt)
while not generator.is_done():
    generator.generate_next_token()
    print(generator.get_next_tokens()[0])
"""


@pytest.mark.skipif(
    find_spec("onnxruntime_genai") is None and "PARAPIPE_GENAI" not in os.environ,
    reason="ONNX Runtime GenAI is not installed: make test-genai",
)
def test_genai_writes_the_tokens_of_a_plain_loop(source, exported):
    done = subprocess.run(
        [sys.executable, "-c", GENERATE, exported, str(TOKENS), *map(str, PROMPT)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    whole, ids, wanted = session(source / "model.onnx"), list(PROMPT), []
    caches = dict.fromkeys(CACHES, np.zeros((1, 2, 0, 16), np.float32))
    while len(wanted) < TOKENS:
        (logits,) = whole.run(["logits"], feed_of(ids, caches, len(ids)))
        wanted.append(int(logits[0, -1].argmax()))
        ids.append(wanted[-1])
    assert [int(line) for line in done.stdout.split()] == wanted
