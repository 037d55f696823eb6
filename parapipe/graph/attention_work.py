"""What the forms of attention multiply and move, keys and values of earlier tokens included.

Both products are counted for each query and all keys that its window has, masked ones included:
scores, and values weighted by them. Of a cache, only slots that are filled are read. Where a cache
is as long before as after, past and present share a buffer: only new keys and values are written.

Sources: the pages "Attention" of ONNX and "Contrib Operators" of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from parapipe.graph.operands import Count, Operands, Rule, Shape

IN_PLACE = "new keys and values are written into the cache that past and present share"
_TOKENS, _BY_HEAD, _PACKED = 3, 4, 5  # axes of [batch, tokens, width], by head, and side by side


@dataclass(frozen=True, slots=True)
class _Cache:
    """Keys or values of earlier tokens.

    Parameters
    ----------
    shape
        As it is before; empty if there is none.
    slots
        Tokens that it has room for.
    filled
        Those that are there before.
    in_place
        Whether results of its shape are the same buffer.
    """

    shape: Shape = ()
    slots: int = 0
    filled: int = 0
    in_place: bool = False

    def written_bytes(self, operands: Operands, new: int) -> int:
        """Return the bytes of all results, if `new` tokens are added."""
        return sum(
            -(-result.size_bytes * min(new, self.slots) // self.slots)
            if number and self.in_place and result.shape == self.shape
            else result.size_bytes
            for number, result in enumerate(operands.outputs)
        )


def _all_filled(what: str) -> str:
    return f"all slots of the cache count as filled, for {what} is known in a run only"


def attention(operands: Operands) -> Count:
    """ONNX Attention: Q, K, V as `[batch, heads, tokens, size]` or `[batch, tokens, all heads]`.

    Past keys and values are copied in front of the new ones if those are results too. Without
    them, `nonpad_kv_seqlen` says how many slots of a cache are filled, for each frame.
    """
    q, k, v = (operands.shape(position) for position in range(3))
    batch, axis = q[0], 1 if len(q) == _TOKENS else 2
    new, past = k[axis], operands.shape(4)
    slots = past[2] if len(past) == _BY_HEAD else 0
    total, length = new + slots, q[axis]
    lengths = operands.integers("nonpad_kv_seqlen") or (total,)
    keys = [_keys_of_a_query(operands, min(filled, total)) for filled in lengths]
    reach = [
        min(filled, total, each + length - 1) for filled, each in zip(lengths, keys, strict=True)
    ]
    met = -(-batch * sum(keys) // len(keys))
    if len(q) == _TOKENS:
        macs = length * met * (q[2] + q[2] // k[2] * v[2])
    else:
        macs = q[1] * length * met * (q[3] + v[3])
    rows, whole = sum(min(each, new) for each in reach), len(reach) * new
    before = slots if len(operands.outputs) > 1 else max(*reach, new) - new
    read = dict.fromkeys((4, 5), (before, slots)) if slots else {}
    read |= dict.fromkeys((1, 2), (rows, whole))
    is_open = operands.input(6) is not None and not operands.integers("nonpad_kv_seqlen")
    return Count(
        macs,
        {at: operands.read_bytes(at, part, of) for at, (part, of) in read.items()},
        assumption=_all_filled("nonpad_kv_seqlen") if is_open else "",
    )


def _keys_of_a_query(operands: Operands, filled: int) -> int:
    left, right = (operands.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if operands.integer("is_causal", 0):
        right = 0
    return filled if min(left, right) < 0 else min(filled, left + 1 + right)


def packed_attention(operands: Operands) -> Count:
    """com.microsoft Attention: one product makes Q, K and V from `[batch, tokens, width]`."""
    batch, length = operands.shape(0)[:2]
    past = operands.shape(4)
    slots = past[3] if len(past) == _PACKED else 0
    shared = slots > 0 and operands.integer("past_present_share_buffer", 0) != 0
    cache, unknown = _shared_cache(operands, past, slots, length, shared=shared)
    read = {4: operands.read_bytes(4, cache.filled, slots)} if slots else {}
    return Count(
        _packed_macs(operands, batch, length, length + cache.filled),
        read,
        cache.written_bytes(operands, length),
        unknown,
    )


def quantised_attention(operands: Operands) -> Count:
    """com.microsoft QAttention: the same with weights in integers, and no shared buffer."""
    batch, length = operands.shape(0)[:2]
    past = operands.shape(8)
    total = length + (past[3] if len(past) == _PACKED else 0)
    return Count(_packed_macs(operands, batch, length, total))


def _packed_macs(operands: Operands, batch: int, length: int, total: int) -> int:
    weights, width = operands.shape(1), operands.output()[-1]
    query = weights[-1] - width
    return batch * length * (prod(weights) + total * (query // 2 + width))


def _shared_cache(
    operands: Operands, past: Shape, slots: int, new: int, *, shared: bool
) -> tuple[_Cache, str]:
    """Return a cache of which `past_sequence_length` says what is filled, and what is assumed."""
    if not shared:
        return _Cache(past, slots, slots), ""
    filled = operands.integer("past_sequence_length", -1)
    if filled < 0:
        most = max(slots - new, 0)
        return _Cache(past, slots, most, in_place=True), _all_filled("past_sequence_length")
    return _Cache(past, slots, min(filled, slots), in_place=True), ""


def multi_head_attention(operands: Operands) -> Count:
    """com.microsoft MultiHeadAttention, whose queries, keys and values come in several forms.

    Each as `[batch, tokens, width]`, keys and values as `[batch, heads, tokens, size]`, both side
    by side as `[batch, tokens, heads, 2, size]`, or all three as `[batch, tokens, heads, 3, size]`.
    """
    query = operands.shape(0)
    batch, length = query[:2]
    width = query[2] * query[4] if len(query) == _PACKED else query[2]
    new, of_values = _keys_and_width(operands, width)
    past = operands.shape(6)
    slots = past[2] if len(past) == _BY_HEAD else 0
    shared = slots > 0 and operands.input(8) is not None
    cache, unknown = _shared_cache(operands, past, slots, new, shared=shared)
    total = new + cache.filled
    read = {at: operands.read_bytes(at, cache.filled, slots) for at in (6, 7) if slots}
    return Count(
        batch * length * total * (width + of_values),
        read,
        cache.written_bytes(operands, new),
        unknown,
    )


def _keys_and_width(operands: Operands, width: int) -> tuple[int, int]:
    """Return the number of keys that come with the query, and the width of all values."""
    query, key, value = (operands.shape(position) for position in range(3))
    match len(key), len(value):
        case (3, 3):
            return key[1], value[2]
        case (4, 4):
            return key[2], value[1] * value[3]
        case (5, 0):
            return key[1], width
        case (0, 0) if len(query) == _PACKED:
            return query[1], width
    raise ValueError("keys and values are of another form")


def group_query_attention(operands: Operands) -> Count:
    """com.microsoft GroupQueryAttention: several heads of queries for one of keys and values.

    A token sees `local_window_size` keys at most, its own included. Of the tables of cosines and
    sines, the rows of the new tokens are read.
    """
    batch, length, width = operands.shape(0)
    heads, shared_heads = operands.integer("num_heads", 0), operands.integer("kv_num_heads", 0)
    packed = not operands.shape(1)
    size = width // (heads + 2 * shared_heads) if packed else width // heads
    past = operands.shape(3)
    slots = past[2] if len(past) == _BY_HEAD else 0
    in_place = slots > 0 and any(result.shape == past for result in operands.outputs[1:])
    stated = operands.integer("total_sequence_length", 0)
    total = stated or (slots if in_place else slots + length)
    if in_place:
        total = min(total, slots)
    window = operands.integer("local_window_size", -1)
    keys = min(total, window) if window > 0 else total
    filled = max(total - length, 0)
    read_slots = max(min(total, keys + length - 1) - length, 0) if in_place else filled
    read = {at: operands.read_bytes(at, read_slots, slots) for at in (3, 4) if slots}
    read |= _table_rows(operands, (7, 8), batch * length)
    cache = _Cache(past, slots, filled, in_place)
    return Count(
        2 * batch * length * keys * heads * size,
        read,
        cache.written_bytes(operands, length),
        "; ".join(
            [_all_filled("total_sequence_length")] * (slots > 0 and not stated)
            + [IN_PLACE] * in_place
        ),
    )


def _table_rows(operands: Operands, tables: tuple[int, ...], rows: int) -> dict[int, int]:
    """Return the bytes of so many rows of each table, `[rows, width]`, that is there."""
    return {
        at: operands.read_bytes(at, rows, operands.shape(at)[0])
        for at in tables
        if operands.shape(at)
    }


def rotary_embedding(operands: Operands) -> Count:
    """ONNX RotaryEmbedding: a row of each table for each position, or all without positions."""
    if operands.input(3) is None:
        return Count(0)
    return Count(0, _table_rows(operands, (1, 2), prod(operands.shape(3))))


def rotary_embedding_of_runtime(operands: Operands) -> Count:
    """com.microsoft RotaryEmbedding: the same; a single position is that of the first token."""
    data, positions = operands.shape(0), prod(operands.shape(1))
    tokens = data[1] if len(data) == _TOKENS else data[2]
    return Count(0, _table_rows(operands, (2, 3), tokens if positions == 1 else positions))


_DELTA_RULES = ("delta", "gated_delta")


def linear_attention(operands: Operands) -> Count:
    """LinearAttention, token by token: the state, `[size of a key, size of a value]` for each head.

    Each token is added to the state and each query multiplied with it; what a delta rule corrects
    by is one more product. Decays and update rates count nothing. Of a `state_window`, the last
    state is read and all are written. Implementations by chunks multiply more.
    """
    query, value = operands.shape(0), operands.shape(2)
    batch, length, width = query
    heads, states = operands.integer("q_num_heads", 0), operands.integer("kv_num_heads", 0)
    key_size, value_size = width // heads, value[2] // states
    products = max(heads, states) + states
    if operands.text("update_rule", "gated_delta") in _DELTA_RULES:
        products += states
    kept = operands.integer("state_window", 0)
    return Count(
        batch * length * products * key_size * value_size,
        {3: operands.read_bytes(3, 1, max(kept, 1))},
    )


RULES: Mapping[tuple[str, str], Rule] = {
    ("", "Attention"): attention,
    ("", "RotaryEmbedding"): rotary_embedding,
    ("", "LinearAttention"): linear_attention,
    ("com.microsoft", "Attention"): packed_attention,
    ("com.microsoft", "QAttention"): quantised_attention,
    ("com.microsoft", "MultiHeadAttention"): multi_head_attention,
    ("com.microsoft", "GroupQueryAttention"): group_query_attention,
    ("com.microsoft", "RotaryEmbedding"): rotary_embedding_of_runtime,
    ("com.microsoft", "LinearAttention"): linear_attention,
}
"""By domain and type."""
