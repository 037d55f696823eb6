"""Bytes and products of operators of language models, worked out by hand."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.cases.small_models import graph_of, imported, value

FLOAT, HALF, BYTE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8
LONG, INT = TensorProto.INT64, TensorProto.INT32
MS = "com.microsoft"


def tensor(*shape, kind=FLOAT):
    return (kind, shape)


def number(content, kind=INT):
    """A constant: a number, or a list of them."""
    return (kind, content, "constant")


def weights(*shape, kind=FLOAT):
    return (kind, shape, "weights")


def elsewhere(name, kind, shape):
    """Weights in another file, which nobody reads."""
    stored = TensorProto(name=name, data_type=kind, dims=shape)
    stored.data_location = TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="weights.bin")
    return stored


def network(operator, inputs, outputs, *, domain=MS, **attributes):
    """A network of one operator; each input a shape, a constant, or None where it is left out."""
    names, graph_inputs, constants = [], [], []
    for position, each in enumerate(inputs):
        names.append(f"i{position}" if each else "")
        if each is None:
            continue
        kind, content, *rest = each
        if not rest:
            graph_inputs.append(value(names[-1], content, kind))
        elif rest == ["constant"]:
            listed = content if isinstance(content, list) else [content]
            extents = [len(listed)] if isinstance(content, list) else []
            constants.append(helper.make_tensor(names[-1], kind, extents, listed))
        else:
            constants.append(elsewhere(names[-1], kind, content))
    node = helper.make_node(operator, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g", graph_inputs, [value(name, None) for name in outputs if name], constants
    )
    opsets = [helper.make_opsetid("", 27 if not domain else 21), helper.make_opsetid(MS, 1)]
    return imported(helper.make_model(graph, opset_imports=opsets, ir_version=11))


# Two heads of queries for one of keys and values, each 8 wide, one new token.
QUERY, KEY = tensor(1, 1, 16), tensor(1, 1, 8)
CACHE = tensor(1, 1, 2048, 8)
SLOT = 8 * 4  # bytes of a key
GROUPED = {"num_heads": 2, "kv_num_heads": 1}
LENGTHS = 4 + 4  # bytes of seqlens_k and total_sequence_length
PRESENT = ("y", "k", "v")
TABLE = tensor(4096, 4)


def grouped(query, key, past, total, *tables, outputs=PRESENT, **attributes):
    inputs = [query, key, key, past, past, tensor(1, kind=INT), total, *tables]
    return ("GroupQueryAttention", inputs, outputs, GROUPED | attributes)


FILLED = number(513)
PROMPT, PROMPT_KEY = tensor(1, 4, 16), tensor(1, 4, 8)
CASES = {
    # 512 slots of two caches are read and one written; each of two heads meets 513 keys.
    "a cache of 2,048 slots, 512 of them filled": (
        grouped(QUERY, KEY, CACHE, FILLED),
        (2 * 2 * 513 * 8, 64 + 2 * SLOT + 2 * 512 * SLOT + LENGTHS, 64 + 2 * SLOT),
    ),
    "a cache that grows by a token is copied": (
        grouped(QUERY, KEY, tensor(1, 1, 512, 8), FILLED),
        (2 * 2 * 513 * 8, 64 + 2 * SLOT + 2 * 512 * SLOT + LENGTHS, 64 + 2 * 513 * SLOT),
    ),
    "a window of 100 tokens: itself, and 99 slots": (
        grouped(QUERY, KEY, CACHE, FILLED, local_window_size=100),
        (2 * 2 * 100 * 8, 64 + 2 * SLOT + 2 * 99 * SLOT + LENGTHS, 64 + 2 * SLOT),
    ),
    "four tokens with a window of 100 see 103": (
        grouped(PROMPT, PROMPT_KEY, CACHE, FILLED, local_window_size=100),
        (2 * 2 * 4 * 100 * 8, 256 + 8 * SLOT + 2 * 99 * SLOT + LENGTHS, 256 + 8 * SLOT),
    ),
    "rotation reads a row of each table": (
        grouped(QUERY, KEY, CACHE, FILLED, TABLE, TABLE, do_rotary=1),
        (2 * 2 * 513 * 8, 64 + 2 * SLOT + 2 * 512 * SLOT + LENGTHS + 16 + 16, 64 + 2 * SLOT),
    ),
    "queries, keys and values side by side": (
        ("GroupQueryAttention", [tensor(1, 1, 32), None, None, CACHE, CACHE,
                                 tensor(1, kind=INT), FILLED], PRESENT, GROUPED),
        (2 * 2 * 513 * 8, 128 + 2 * 512 * SLOT + LENGTHS, 64 + 2 * SLOT),
    ),
    "a prompt without a cache": (
        grouped(PROMPT, PROMPT_KEY, None, number(4)),
        (2 * 2 * 4 * 4 * 8, 256 + 8 * SLOT + LENGTHS, 256 + 8 * SLOT),
    ),
    # 3 positions of 16 numbers each, from two tables.
    "RotaryEmbedding": (
        ("RotaryEmbedding", [tensor(1, 3, 64), tensor(1, 3, kind=LONG), TABLE, TABLE], ["y"], {}),
        (0, 768 + 24 + 2 * 3 * 16, 768),
    ),
    "RotaryEmbedding from a first position on": (
        ("RotaryEmbedding", [tensor(1, 2, 3, 8), tensor(1, kind=LONG), TABLE, TABLE], ["y"], {}),
        (0, 192 + 8 + 2 * 3 * 16, 192),
    ),
    "RotaryEmbedding of ONNX": (
        ("RotaryEmbedding", [tensor(1, 2, 3, 8), TABLE, TABLE, tensor(1, 3, kind=LONG)], ["y"],
         {"domain": ""}),
        (0, 192 + 24 + 2 * 3 * 16, 192),
    ),
    # The update and where it goes; it alone is written.
    "TensorScatter": (
        ("TensorScatter", [tensor(1, 2, 2048, 8), tensor(1, 2, 1, 8), tensor(1, kind=LONG)], ["y"],
         {"domain": "", "axis": 2}),
        (0, 64 + 8, 64),
    ),
    # 3 of 1000 rows of 32 bytes, with two scales and a byte of two zero points each.
    "GatherBlockQuantized": (
        ("GatherBlockQuantized", [weights(1000, 32, kind=BYTE), tensor(1, 3, kind=LONG),
                                  weights(1000, 2), weights(1000, 1, kind=BYTE)], ["y"],
         {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}),
        (0, 3 * (32 + 8 + 1) + 24, 3 * 64 * 4),
    ),
    # One token and 2 of 8 experts, whose matrices are 16 x 8 and 8 x 16, with biases.
    "MoE": (
        ("MoE", [tensor(1, 8), tensor(1, 8), weights(8, 16, 8), weights(8, 16), weights(8, 8, 16),
                 weights(8, 8)], ["y"], {"k": 2}),
        (2 * (128 + 128), 32 + 32 + 2 * 4 * (128 + 16 + 128 + 8), 32),
    ),
    # Of 8 experts, two tokens are expected to read 8 * (1 - 0.75 ** 2) = 3.5.
    "MoE of two tokens": (
        ("MoE", [tensor(1, 2, 8), tensor(2, 8), weights(8, 16, 8), None, weights(8, 8, 16)], ["y"],
         {"k": 2}),
        (2 * 2 * (128 + 128), 64 + 64 + 7 * 4 * (128 + 128) // 2, 64),
    ),
    # Two numbers in a byte, and a scale of two bytes for each row.
    "QMoE": (
        ("QMoE", [tensor(1, 8), tensor(1, 8), weights(8, 16, 4, kind=BYTE), weights(8, 16), None,
                  weights(8, 8, 8, kind=BYTE), weights(8, 8)], ["y"],
         {"k": 2, "expert_weight_bits": 4}),
        (2 * (128 + 128), 32 + 32 + 2 * (64 + 64 + 64 + 32), 32),
    ),
    "QMoE of eight bits": (
        ("QMoE", [tensor(1, 8), tensor(1, 8), weights(8, 16, 8, kind=BYTE), weights(8, 16), None,
                  weights(8, 8, 16, kind=BYTE), weights(8, 8)], ["y"],
         {"k": 2, "expert_weight_bits": 8}),
        (2 * (128 + 128), 32 + 32 + 2 * (128 + 64 + 128 + 32), 32),
    ),
    # 7 keys of two heads, 4 wide, by head.
    "MultiHeadAttention with keys by head": (
        ("MultiHeadAttention", [tensor(2, 5, 8), tensor(2, 2, 7, 4), tensor(2, 2, 7, 4)], ["y"],
         {"num_heads": 2}),
        (2 * 5 * 7 * (8 + 8), 4 * (80 + 112 + 112), 4 * 80),
    ),
    "MultiHeadAttention with all three side by side": (
        ("MultiHeadAttention", [tensor(2, 5, 2, 3, 4)], ["y"], {"num_heads": 2}),
        (2 * 5 * 5 * (8 + 8), 4 * 240, 4 * 80),
    ),
    "MultiHeadAttention hands on 6 + 1 keys and values": (
        ("MultiHeadAttention", [tensor(1, 1, 8)] * 3 + [None] * 3 + [tensor(1, 2, 6, 4)] * 2,
         PRESENT, {"num_heads": 2}),
        (7 * (8 + 8), 4 * (3 * 8 + 2 * 48), 4 * (8 + 2 * 56)),
    ),
    "MultiHeadAttention with a shared cache of 64 slots, 6 of them filled": (
        ("MultiHeadAttention", [tensor(1, 1, 8)] * 3 + [None] * 3 + [tensor(1, 2, 64, 4)] * 2
         + [number([6])], PRESENT, {"num_heads": 2}),
        (7 * (8 + 8), 4 * (3 * 8 + 2 * 48 + 1), 4 * (8 + 2 * 8)),
    ),
    # One product by 8 x 24; the cache holds keys and values of 6 tokens.
    "Attention of ONNX Runtime hands on 6 + 1 keys and values": (
        ("Attention", [tensor(1, 1, 8), weights(8, 24), weights(24), None, tensor(2, 1, 2, 6, 4)],
         ["y", "p"], {"num_heads": 2}),
        (192 + 7 * 16, 4 * (8 + 192 + 24 + 96), 4 * (8 + 112)),
    ),
    "Attention of ONNX Runtime with a shared cache of 64 slots, 6 of them filled": (
        ("Attention", [tensor(1, 1, 8), weights(8, 24), weights(24), None, tensor(2, 1, 2, 64, 4),
                       None, number([6])],
         ["y", "p"], {"num_heads": 2, "past_present_share_buffer": 1}),
        (192 + 7 * 16, 4 * (8 + 192 + 24 + 96 + 1), 4 * (8 + 16)),
    ),
    # Four heads of queries for two of keys, 8 wide; 100 of 2,048 slots are filled.
    "Attention with nonpad_kv_seqlen": (
        ("Attention", [tensor(1, 4, 1, 8)] + [tensor(1, 2, 2048, 8)] * 2 + [None] * 3
         + [number([100], LONG)], ["y"], {"domain": ""}),
        (4 * 100 * (8 + 8), 128 + 2 * 2 * 100 * 32 + 8, 128),
    ),
    "Attention hands on 6 + 1 keys and values": (
        ("Attention", [tensor(1, 4, 1, 8)] + [tensor(1, 2, 1, 8)] * 2 + [None]
         + [tensor(1, 2, 6, 8)] * 2, PRESENT, {"domain": ""}),
        (4 * 7 * 16, 4 * (32 + 2 * 16 + 2 * 96), 4 * (32 + 2 * 112)),
    ),
    # A query sees itself and three keys before it; the last of 16 are met by 5 queries.
    "Attention with a window": (
        ("Attention", [tensor(1, 4, 5, 8)] + [tensor(1, 2, 16, 8)] * 2, ["y"],
         {"domain": "", "is_causal": 1, "left_window_size": 3}),
        (4 * 5 * 4 * 16, 640 + 2 * 2 * 8 * 32, 640),
    ),
    # A has 2 x 5 x 3 once its first axis stands behind the second one.
    "FusedMatMul with transBatchA": (
        ("FusedMatMul", [tensor(5, 2, 3), tensor(2, 3, 7)], ["y"], {"transBatchA": 1}),
        (2 * 5 * 7 * 3, 4 * (30 + 42), 4 * 70),
    ),
    "FusedMatMul with transBatchB and transB": (
        ("FusedMatMul", [tensor(2, 5, 7), tensor(3, 2, 7)], ["y"], {"transBatchB": 1, "transB": 1}),
        (2 * 5 * 3 * 7, 4 * (70 + 42), 4 * 30),
    ),
    # Two states of 4 x 6: what a token adds, what it corrects by, what four queries read.
    "LinearAttention": (
        ("LinearAttention", [tensor(1, 3, 16), tensor(1, 3, 8), tensor(1, 3, 12),
                             tensor(1, 2, 4, 6), tensor(1, 3, 2), tensor(1, 3, 2)], ["y", "s"],
         {"q_num_heads": 4, "kv_num_heads": 2}),
        (3 * 24 * (2 + 2 + 4), 4 * (48 + 24 + 36 + 48 + 6 + 6), 4 * (72 + 48)),
    ),
    "LinearAttention of ONNX, without a correction": (
        ("LinearAttention", [tensor(1, 3, 16), tensor(1, 3, 8), tensor(1, 3, 12)], ["y", "s"],
         {"domain": "", "q_num_heads": 4, "kv_num_heads": 2, "update_rule": "linear"}),
        (3 * 24 * (2 + 4), 4 * (48 + 24 + 36), 4 * (72 + 48)),
    ),
    "QuantizeLinear of ONNX Runtime": (
        ("QuantizeLinear", [tensor(2, 8), number(1.0, FLOAT)], ["y"], {}),
        (0, 64 + 4, 16),
    ),
    "DequantizeLinear of ONNX Runtime": (
        ("DequantizeLinear", [tensor(2, 8, kind=TensorProto.UINT16), number(1.0, FLOAT)], ["y"],
         {}),
        (0, 32 + 4, 64),
    ),
    # Of 64 x 32 weights of four bits: 1,024 bytes, and 64 scales.
    "MatMulNBits": (
        ("MatMulNBits", [tensor(3, 64), weights(32, 2, 16, kind=BYTE), weights(64)], ["y"],
         {"K": 64, "N": 32, "bits": 4, "block_size": 32}),
        (3 * 64 * 32, 4 * 192 + 1024 + 4 * 64, 4 * 96),
    ),
    "weights in float8": (
        ("DequantizeLinear", [tensor(8, 16, kind=TensorProto.FLOAT8E4M3FN), number(1.0, FLOAT)],
         ["y"], {"domain": ""}),
        (0, 128 + 4, 4 * 128),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_products_and_bytes_by_hand(case):
    (operator, inputs, outputs, attributes), expected = CASES[case]
    found = network(operator, inputs, outputs, **attributes).operators[0].work
    assert (found.macs, found.read_bytes, found.written_bytes) == expected
    assert found.modelled


IN_PLACE = "new keys and values are written into the cache that past and present share"


@pytest.mark.parametrize(
    ("case", "note"),
    [
        ("a cache of 2,048 slots, 512 of them filled",
         f"GroupQueryAttention (1 operator): {IN_PLACE}"),
        ("TensorScatter", f"TensorScatter (1 operator): {IN_PLACE}"),
        ("MoE of two tokens",
         ("MoE (1 operator): tokens choose 2 of 8 experts each, evenly and independently of each "
          "other, so that 3.5 are expected to be read")),
        ("a prompt without a cache", None),
    ],
)  # fmt: skip
def test_what_a_count_rests_on_is_a_note(case, note):
    operator, inputs, outputs, attributes = CASES[case][0]
    assert network(operator, inputs, outputs, **attributes).notes == ((note,) if note else ())


def test_a_cache_of_which_nobody_knows_what_is_filled_counts_as_full():
    operator, inputs, outputs, attributes = grouped(
        QUERY, KEY, CACHE, tensor(1, kind=INT), sliding_window_cache=1
    )
    graph = network(operator, inputs, outputs, **attributes)
    assert graph.tensors["k"].shape == (1, 1, 2048, 8)
    assert graph.operators[0].work.macs == 2 * 2 * 2048 * 8
    assert graph.notes[0].startswith(
        "GroupQueryAttention (1 operator): all slots of the cache count as filled, for "
        "total_sequence_length is known in a run only"
    )


def stored_table(*, domain="", block_size=0, zero_points=False):
    """A network that multiplies x with 64 x 32 weights of four bits, dequantised before."""
    blocks = (64 // block_size, 32) if block_size else ()
    kinds = {
        "w": (TensorProto.INT4, [64, 32]),
        "s": (FLOAT, blocks),
        "z": (TensorProto.INT4, blocks),
    }
    read = ["w", "s", "z"][: 3 if zero_points else 2]
    attributes = {"block_size": block_size, "axis": 0} if block_size else {}
    nodes = [
        helper.make_node("DequantizeLinear", read, ["d"], domain=domain, **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    constants = [elsewhere(name, *kinds[name]) for name in read]
    graph = helper.make_graph(nodes, "g", [value("x", [3, 64])], [value("y", None)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return imported(helper.make_model(graph, opset_imports=opsets, ir_version=10))


@pytest.mark.parametrize(
    ("form", "beside"),
    [
        ({}, 0),
        ({"domain": MS}, 0),
        # Two blocks in each of 32 columns: a scale of four bytes, and half a byte.
        ({"block_size": 32}, 64 * 4),
        ({"block_size": 32, "zero_points": True}, 64 * 4 + 32),
    ],
)
def test_weights_of_four_bits_count_with_the_scales_of_their_blocks(form, beside):
    graph = stored_table(**form)
    (product,) = graph.operators
    assert graph.constants["d"].size_bytes == 64 * 32 // 2 + beside
    assert product.work.read_bytes == 4 * 3 * 64 + 64 * 32 // 2 + beside
    assert graph.constants["d"].part((64, 8)).size_bytes == (64 * 32 // 2 + beside) // 4


def test_rows_of_a_dequantised_table_are_read_as_they_are_stored():
    graph = graph_of(
        "g (int64[2] x) => (float[?] y) { d = DequantizeLinear(w, s) y = Gather(d, x) }",
        w=np.ones((1000, 4), np.int8), s=np.float32(1),
    )  # fmt: skip
    # 2 of 1000 rows of a byte for each number, and two indices.
    assert graph.operators[0].work.read_bytes == 2 * 4 + 16
