"""A cluster of four cores that can be divided, for graphs built by hand."""

from __future__ import annotations

from tests.cases.hand_built import GraphBuilder, platform, processor


def divisions(*into, share=0.6, hand_over_s=5e-5):
    return {
        "into": [list(sizes) for sizes in into],
        "parallel_share": {"default": share},
        "hand_over": {"latency_s": hand_over_s},
        "source": "guess",
    }


def divided(*into, others=("gpu",), **changes):
    """Return a platform with a cluster `big` of the cores 4 to 7; undivided if `into` is empty."""
    kinds = {key: changes.pop(key) for key in ("share", "hand_over_s") if key in changes}
    own = {"divisions": divisions(*into, **kinds)} if into else {}
    rest = (processor(name, kind="gpu", cores=[]) for name in others)
    return platform(processor("big", cores=[4, 5, 6, 7], **own, **changes), *rest)


def convolutions(*channels):
    """Return a chain of convolutions with so many channels each."""
    builder, last = GraphBuilder(x=(1, 8, 10, 10)), "x"
    for count in channels:
        last = builder.conv(last, count)
    return builder.graph()
