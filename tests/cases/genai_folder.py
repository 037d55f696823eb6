"""A folder of ONNX Runtime GenAI with a small decoder, as its model builder writes one."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import parapipe

WORDS, WIDTH, HEADS, KEY_HEADS, SIZE, LAYERS, MOST = 64, 64, 4, 2, 16, 3, 128
END = WORDS - 1
FILE = "model.onnx"


def _weights(rng, *shape):
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def write_genai_folder(folder):
    """Write it; return the path of the decoder.

    Lengths are open; caches grow by GroupQueryAttention, which turns queries and keys itself.
    """
    rng, nodes, stored = np.random.default_rng(7), [], {}

    def weights(name, *shape):
        stored[name] = _weights(rng, *shape)
        return name

    def add(kind, reads, *made, **said):
        domain = "com.microsoft" if kind == "GroupQueryAttention" else ""
        nodes.append(helper.make_node(kind, reads, made, made[0], domain=domain, **said))
        return made[0]

    angles = np.outer(np.arange(MOST), 10_000 ** (-np.arange(0, SIZE, 2) / SIZE))
    stored |= {
        "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32),
        "one": np.array([1], np.int64), "at": np.array(1, np.int64),
    }  # fmt: skip
    counted = add("ReduceSum", ["attention_mask", "one"], "counted", keepdims=0)
    before = add("Cast", [add("Sub", [counted, "one"], "less")], "seqlens", to=TensorProto.INT32)
    length = add("Gather", [add("Shape", ["attention_mask"], "shape"), "at"], "length64")
    total = add("Cast", [length], "total", to=TensorProto.INT32)
    x = add("Gather", [weights("table", WORDS, WIDTH), "input_ids"], "words")
    kind, cache = TensorProto.FLOAT, ("batch_size", KEY_HEADS, "past_sequence_length", SIZE)
    grown = ("batch_size", KEY_HEADS, "total_sequence_length", SIZE)
    lengths = {"input_ids": "sequence_length", "attention_mask": "total_sequence_length"}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("batch_size", length))
        for name, length in lengths.items()
    ]
    outputs = [
        helper.make_tensor_value_info("logits", kind, ("batch_size", "sequence_length", WORDS))
    ]
    for layer in range(LAYERS):
        sizes = {"q": HEADS, "k": KEY_HEADS, "v": KEY_HEADS}
        q, k, v = (
            add("MatMul", [x, weights(f"{layer}/{what}/w", WIDTH, count * SIZE)], f"{layer}/{what}")
            for what, count in sizes.items()
        )
        past = [f"past_key_values.{layer}.{what}" for what in ("key", "value")]
        present = [f"present.{layer}.{what}" for what in ("key", "value")]
        inputs += [helper.make_tensor_value_info(each, kind, cache) for each in past]
        outputs += [helper.make_tensor_value_info(each, kind, grown) for each in present]
        read = add(
            "GroupQueryAttention", [q, k, v, *past, before, total, "cos", "sin"],
            f"{layer}/attention", *present, num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1,
        )  # fmt: skip
        read = add("MatMul", [read, weights(f"{layer}/o/w", WIDTH, WIDTH)], f"{layer}/o")
        x = add("Add", [x, read], f"{layer}/add")
        wide = add("MatMul", [x, weights(f"{layer}/up/w", WIDTH, 2 * WIDTH)], f"{layer}/up")
        gate = add("MatMul", [x, weights(f"{layer}/gate/w", WIDTH, 2 * WIDTH)], f"{layer}/gate")
        y = add("Mul", [wide, add("Sigmoid", [gate], f"{layer}/open")], f"{layer}/gated")
        y = add("MatMul", [y, weights(f"{layer}/down/w", 2 * WIDTH, WIDTH)], f"{layer}/down")
        x = add("Add", [x, y], f"{layer}/out")
    add("MatMul", [x, weights("head/w", WIDTH, WORDS)], "logits")
    graph = helper.make_graph(
        nodes, "decoder", inputs, outputs,
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / FILE)
    (folder / "genai_config.json").write_text(json.dumps(_config()), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    return folder / FILE


def _config():
    caches = {f"past_{what}_names": f"past_key_values.%d.{what}" for what in ("key", "value")}
    grown = {f"present_{what}_names": f"present.%d.{what}" for what in ("key", "value")}
    return {
        "model": {
            "type": "llama", "context_length": MOST, "vocab_size": WORDS,
            "bos_token_id": 0, "eos_token_id": END, "pad_token_id": 0,
            "decoder": {
                "filename": FILE, "session_options": {"provider_options": []},
                "head_size": SIZE, "hidden_size": WIDTH, "num_attention_heads": HEADS,
                "num_hidden_layers": LAYERS, "num_key_value_heads": KEY_HEADS,
                "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **caches},
                "outputs": {"logits": "logits", **grown},
            },
        },
        "search": {
            "do_sample": False, "max_length": MOST, "min_length": 0, "num_beams": 1,
            "num_return_sequences": 1, "past_present_share_buffer": False, "top_k": 1,
            "temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0, "length_penalty": 1.0,
            "no_repeat_ngram_size": 0, "diversity_penalty": 0.0, "early_stopping": True,
        },
    }  # fmt: skip


def write_plans(folder):
    """Map the decoder for a prompt of 32 tokens and for one token; return both plans."""
    chip = folder / "rk3588.yaml"
    parapipe.new_platform(chip="rk3588").write(chip)
    plans = []
    for length, past in ((32, 0), (1, 32)):
        dims = {
            "batch_size": 1, "sequence_length": length, "past_sequence_length": past,
            "total_sequence_length": length + past,
        }  # fmt: skip
        front = parapipe.map(
            folder / FILE, chip, dims=dims, mapper="heft_cpop", interleave="none",
            objectives="latency-throughput", cache=False, note=lambda _: None,
        )  # fmt: skip
        plans.append(front.best("period" if past == 0 else "latency").plan())
    return plans
