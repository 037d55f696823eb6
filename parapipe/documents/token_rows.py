"""Tokens: what a front states of language models beside frames, and what the memory allows."""

from __future__ import annotations

from math import prod

from parapipe.cost.cost_table import CostTable
from parapipe.documents.state_rows import StateRow
from parapipe.files.record import PositiveFigure, Row
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.states import TOKEN_INPUTS, is_cache

INT4_BITS = 4.5  # of a weight in blocks of 32 with a scale of two bytes each


class TokensRow(Row):
    """The tokens of a language model, and what the memory's bandwidth allows of them."""

    input: str
    """Graph input that holds them."""
    per_step: int
    """Tokens that a step reads: 1 while text is written, as many as the prompt has before."""
    weights_bytes: int
    """Bytes of the weights that a step reads, as they are stored: each once, of tables that are
    looked up what is read."""
    cache_bytes: int
    """Bytes of the states that a step reads."""
    bound_per_second: PositiveFigure | None = None
    """Tokens a second if the memory did nothing but read these; left out if its bandwidth is not
    known. No configuration has more, caches of processors left aside."""
    int4_bound_per_second: PositiveFigure | None = None
    """The same with weights of 4 bits, in blocks of 32 with a scale of 16 bits each."""


def tokens_of(graph: OperatorGraph, costs: CostTable) -> TokensRow | None:
    """Return the tokens of a graph; None if it has no cache, or reads none by a known name."""
    name = next((each for each in TOKEN_INPUTS if each in graph.inputs), None)
    if name is None or not any(is_cache(each.input) for each in graph.states):
        return None
    per_step = prod(graph.tensors[name].shape)
    weights_bytes, weights = _weights(graph)
    cache_bytes = sum(
        each.size_bytes for each in StateRow.of_graph(graph) or () if each.kind == "state"
    )
    rate = costs.bandwidth_bytes_per_s
    int4_bytes = min(weights_bytes, weights * INT4_BITS / 8)
    return TokensRow(
        input=name,
        per_step=per_step,
        weights_bytes=weights_bytes,
        cache_bytes=cache_bytes,
        bound_per_second=_bound(rate, weights_bytes + cache_bytes, per_step),
        int4_bound_per_second=_bound(rate, int4_bytes + cache_bytes, per_step),
    )


def _bound(rate: float | None, size_bytes: float, per_step: int) -> float | None:
    return per_step * rate / size_bytes if rate and size_bytes and per_step else None


def _weights(graph: OperatorGraph) -> tuple[int, int]:
    """Return the bytes of the weights that a step reads, and how many weights they are."""
    sizes: dict[str, tuple[int, int]] = {}
    for operator in graph.operators:
        for name in (name for each in (operator, *operator.parts) for name in each.inputs):
            if constant := graph.constants.get(name):
                read_bytes = min(constant.size_bytes, operator.work.read_bytes)
                share = read_bytes / constant.size_bytes if constant.size_bytes else 0
                each = read_bytes, int(share * prod(constant.shape))
                sizes[name] = max(each, sizes.get(name, (0, 0)))
    return sum(size for size, _ in sizes.values()), sum(count for _, count in sizes.values())


def token_figures(
    tokens: TokensRow | None, *, latency_with_io_s: float, period_s: float, energy_j: float
) -> dict[str, float | None]:
    """Return what a configuration row states of tokens: nothing if the model has none."""
    if tokens is None or not tokens.per_step:
        return dict.fromkeys(
            ("token_s", "tokens_per_second", "energy_per_token_j", "first_token_s")
        )
    count = tokens.per_step
    return {
        "token_s": period_s / count,
        "tokens_per_second": count / period_s,
        "energy_per_token_j": energy_j / count,
        "first_token_s": latency_with_io_s if count > 1 else None,
    }
