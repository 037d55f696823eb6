"""What binds the tokens of a language model, in words: bandwidth, arithmetic, or the rest."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan

NEAR = 0.9  # share of the bandwidth from which on the memory is what binds
MOST = 0.5  # share of a step from which on products with weights are what it is about


def token_texts(
    front: FrontDocument, row: ConfigurationRow, plan: Plan, graph: OperatorGraph, costs: CostTable
) -> Iterator[str]:
    """Say what the memory allows of tokens, what of that is reached, and what binds."""
    tokens = front.tokens
    if tokens is None or row.tokens_per_second is None:
        return
    if row.energy_per_token_j is not None:
        yield f"A token takes {plain(row.energy_per_token_j * 1e3)} mJ of the processors used."
    read = (
        f"A step reads {_megabytes(tokens.weights_bytes)} of weights and "
        f"{_megabytes(tokens.cache_bytes)} of cache for {tokens.per_step} "
        f"token{'' if tokens.per_step == 1 else 's'}"
    )
    bound, bandwidth = tokens.bound_per_second, costs.bandwidth_bytes_per_s
    share, rate = _of_products(plan, graph)
    products = (
        f"products with weights take {plain(100 * share, 2)} % of the operators' time and read "
        f"{_gigabytes(rate)} of weights a second"
    )
    if bound is None or bandwidth is None:
        yield (
            f"{read}. What the memory allows is not known: the platform states no bandwidth, or "
            f"only a lower bound. {products[0].upper()}{products[1:]}."
        )
        return
    reached = row.tokens_per_second / bound
    if reached >= NEAR:
        binds = "the bandwidth of the memory binds"
    elif share < MOST:
        binds = f"the other operators and hand-overs bind; {products}"
    elif rate < NEAR * bandwidth:
        binds = (
            f"arithmetic binds, not the bandwidth: {products}, where the memory gives "
            f"{_gigabytes(bandwidth)}"
        )
    else:
        binds = f"the bandwidth binds the one part, and the rest adds to it: {products}"
    four = tokens.int4_bound_per_second
    int4 = f" With weights of 4 bits it would allow {plain(four, 3)}." if four else ""
    yield (
        f"{read}: the memory allows at most {plain(bound, 3)} tokens/s. Here it is "
        f"{plain(row.tokens_per_second, 3)}, {plain(100 * reached, 2)} % of that: {binds}.{int4}"
    )


def _of_products(plan: Plan, graph: OperatorGraph) -> tuple[float, float]:
    """Return the share of the operators' time that products with weights take.

    And the bytes that they read of these a second; 0 where there are none.
    """
    operators = {each.id: each for each in graph.operators}
    times_s = {name: at.end_s - at.start_s for name, at in mapping_view(plan).placements.items()}
    weights_bytes = {
        name: size_bytes
        for name in times_s
        if name in operators and (size_bytes := _weights_bytes(operators[name], graph))
    }
    products_s, every_s = sum(times_s[name] for name in weights_bytes), sum(times_s.values())
    if not products_s:
        return 0.0, 0.0
    return products_s / every_s, sum(weights_bytes.values()) / products_s


def _weights_bytes(operator: Operator, graph: OperatorGraph) -> int:
    """Return the bytes of weights that an operator multiplies with; 0 if it multiplies none."""
    if not operator.work.macs:
        return 0
    names = {name for each in (operator, *operator.parts) for name in each.inputs}
    return sum(
        min(graph.constants[name].size_bytes, operator.work.read_bytes)
        for name in names
        if name in graph.constants
    )


def _megabytes(size_bytes: float) -> str:
    return f"{plain(size_bytes / 1e6, 3)} MB"


def _gigabytes(size_bytes: float) -> str:
    return f"{plain(size_bytes / 1e9, 3)} GB"
