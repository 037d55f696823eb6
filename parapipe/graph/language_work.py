"""What operators of language models multiply and move: rows of tables and caches, and experts.

Of a table or a cache that few rows are taken from, only those are read. Which experts run follows
from the tokens: the number that is expected counts, which is an assumption.

Sources: the pages "TensorScatter" of ONNX and "Contrib Operators" of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod

from parapipe.graph import attention_work
from parapipe.graph.operands import Count, Operands, Rule


def scattered_tensor(operands: Operands) -> Count:
    """TensorScatter: the update is written into a cache that past and present share."""
    update = operands.read_bytes(1, 1, 1)
    return Count(0, {0: 0}, update, assumption=attention_work.IN_PLACE)


def gathered_blocks(operands: Operands) -> Count:
    """GatherBlockQuantized: of weights, scales and zero points, the rows that are looked up.

    Parts of all three that one scale stands for along the whole axis are read once.
    """
    data = operands.shape(0)
    axis = operands.integer("gather_axis", 0) % len(data)
    rows = prod(operands.shape(1))
    return Count(
        0,
        {
            at: operands.read_bytes(at, rows, extents[axis])
            for at in (0, 2, 3)
            if len(extents := operands.shape(at)) == len(data)
        },
    )


_ROUTER_WEIGHTS = 14  # of QMoE, [tokens, experts]


def mixture_of_experts(operands: Operands, *, matrices: tuple[int, ...]) -> Count:
    """MoE and QMoE: `k` experts for each token.

    Tokens choose among the experts evenly and independently of each other: of E, with k for each
    of n tokens, E · (1 − (1 − k / E)ⁿ) are expected to be read, each once.

    Parameters
    ----------
    matrices
        Positions of the weights, `[experts, out, in]`.
    """
    tokens, experts = operands.shape(1)
    chosen = min(operands.integer("k", 1), experts)
    share = 1 - (1 - chosen / experts) ** tokens
    read = {
        at: round(each.size_bytes * share)
        for at, each in enumerate(operands.inputs)
        if each and at > 1 and at != _ROUTER_WEIGHTS and each.shape[:1] == (experts,)
    }
    return Count(
        tokens * chosen * sum(_weights_of_expert(operands, at) for at in matrices),
        read,
        assumption=f"tokens choose {chosen} of {experts} experts each, evenly and independently of "
        f"each other, so that {experts * share:.4g} are expected to be read",
    )


def _weights_of_expert(operands: Operands, position: int) -> int:
    """Return the elements of a matrix of one expert, of which bytes may hold several."""
    matrices = operands.input(position)
    if matrices is None:
        return 0
    if matrices.dtype != "uint8":
        return prod(matrices.shape[1:])
    own = f"fc{1 + _QUANTISED.index(position)}_expert_weight_bits"
    bits = operands.integer(own, operands.integer("expert_weight_bits", 4))
    return 8 * prod(matrices.shape[1:]) // bits


_QUANTISED = (2, 5, 8)

RULES: Mapping[tuple[str, str], Rule] = {
    **attention_work.RULES,
    ("", "TensorScatter"): scattered_tensor,
    ("com.microsoft", "GatherBlockQuantized"): gathered_blocks,
    ("com.microsoft", "MoE"): partial(mixture_of_experts, matrices=(2, 4, 6)),
    ("com.microsoft", "QMoE"): partial(mixture_of_experts, matrices=_QUANTISED),
}
"""By domain and type."""
