"""Pooling."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from parapipe.export.armcl.steps import Rule, Shape, Steps, integer, integers, require
from parapipe.export.armcl.windows import Window, planar, window
from parapipe.plan.armcl_plan import Attribute
from parapipe.plan.schema import Operator


def _pool(kind: str) -> Callable[[Operator, Steps], None]:
    def lower(operator: Operator, into: Steps) -> None:
        window_ = window(operator, into, integers(operator, "kernel_shape", ()))
        require(max(window_.dilations) == 1, "its window is dilated")
        called, attributes = kind, dict[str, Attribute]()
        if window_.kernel == window_.shape[2:] and not any(window_.pads):
            called = f"Global{kind}"
        else:
            attributes = _attributes(kind, operator, window_)
        output = operator.outputs[0]
        into.add(called, (window_.source,), window_.written, output=output, **attributes)

    return lower


def _attributes(kind: str, operator: Operator, window_: Window) -> dict[str, Attribute]:
    """Return attributes without `ceil_mode`: a window that starts inside may reach beyond the end.

    What it finds there counts as padding; so an average that counts padding would be another one.
    """
    reach = tuple(
        (out - 1) * s + k - size - begin
        for out, s, k, size, begin in zip(
            window_.written[2:],
            window_.strides,
            window_.kernel,
            window_.shape[2:],
            window_.begins,
            strict=True,
        )
    )
    ends = tuple(max(end, beyond) for end, beyond in zip(window_.ends, reach, strict=True))
    counted = integer(operator, "count_include_pad", 0) if kind == "AveragePool" else 0
    require(
        not counted or ends == window_.ends,
        "its average counts padding, and its last window reaches beyond it (ceil_mode)",
    )
    kernel = window_.kernel
    require(_within(window_.pads, kernel), "its padding is as large as its window")
    require(_within(ends, kernel), "its last window lies in the padding only (ceil_mode)")
    attributes: dict[str, Attribute] = {
        "kernel_shape": kernel,
        "strides": window_.strides,
        "pads": (*window_.begins, *ends),
        "ceil_mode": 0,
    }
    if kind == "AveragePool":
        attributes["count_include_pad"] = counted if any(window_.pads) else 0
    return attributes


def _within(pads: Shape, kernel: Shape) -> bool:
    return all(pad < extent for pad, extent in zip(pads, kernel * 2, strict=False))


def _global_pool(kind: str) -> Callable[[Operator, Steps], None]:
    def lower(operator: Operator, into: Steps) -> None:
        shape = into.shape(operator.inputs[0])
        require(len(shape) in (3, 4), f"it has {len(shape)} dimensions, and the library's has 4")
        source = into.reshape(operator.inputs[0], planar(shape))
        pool_image(operator, into, kind, source, planar(shape))

    return lower


def pool_image(operator: Operator, into: Steps, kind: str, source: str, shape: Shape) -> None:
    """Pool a whole image; the output has the operator's shape."""
    into.add(kind, (source,), (*shape[:2], 1, 1), output=operator.outputs[0])


RULES: Mapping[str, Rule] = {
    "MaxPool": Rule(
        _pool("MaxPool"),
        "MaxPool, or GlobalMaxPool where the window is the image; over a line: Reshape around it",
        "no dilation; the indices are not used; padding smaller than the window",
    ),
    "AveragePool": Rule(
        _pool("AveragePool"),
        "AveragePool, or GlobalAveragePool where the window is the image; over a line: Reshape "
        "around it",
        "no dilation; padding smaller than the window; not both `ceil_mode` and "
        "`count_include_pad` where the last window reaches beyond the padding",
    ),
    **{
        kind: Rule(_global_pool(kind), f"{kind}; over a line: Reshape around it")
        for kind in ("GlobalAveragePool", "GlobalMaxPool")
    },
}
