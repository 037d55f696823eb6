"""Kinds of layers and operators, by the words that runtimes use for their types."""

from __future__ import annotations

import re

_ELEMENTWISE = (
    r"relu|clip|sigmoid|silu|swish|tanh|gelu|mish|elu|softplus|erf|exp|log|sqrt|pow|abs|add|mul|"
    r"sub|div|sum|max|min|neg|eltwise|elem|binary|unary|activation|pwn|pointwise|where|equal|"
    r"greater|less|floor|ceil"
)
_KINDS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("convert", r"^convert|^cast$|quantize|^identity|dropout|^noop"),
        ("transposed convolution", r"deconv|transpose_?conv|conv\w*transpose"),
        ("convolution", r"conv"),
        ("product", r"gemm|matmul|fully|inner_?product|^linear|^mvm"),
        ("attention", r"attention|^sdp"),
        ("softmax", r"softmax"),
        ("pool", r"pool|mean|^reduce"),
        ("lrn", r"^lrn|local_?response"),
        ("norm", r"norm|^mvn|^scale$"),
        ("view", r"reshape|flatten|squeeze|expanddims|expand_dims"),
        ("concat", r"concat"),
        ("resize", r"resi[zs]e|upsampl|interp"),
        ("transpose", r"transpose|permute|shuffle"),
        ("part", r"slice|crop|split|gather|unpack"),
        ("pad", r"^pad|^padding|^mirror"),
        (
            "elementwise",
            _ELEMENTWISE,
        ),
    )
)
JOINS_OTHERS = frozenset({"convert", "norm", "concat", "transpose", "part", "pad", "elementwise"})
"""Kinds that runtimes run together with what is before or behind, without saying so."""

PASSING = frozenset({"convert", "view", "pad"})
"""Kinds of layers that runtimes insert before others."""


def kind_of(word: str) -> str:
    """Return the kind of a type in any runtime's words; the word itself if it is of none."""
    plain = re.sub(r"\W", "_", word.strip()).lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(plain)), plain)
