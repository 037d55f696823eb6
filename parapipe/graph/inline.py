"""Model-local functions, replaced by the operators they stand for."""

from __future__ import annotations

import onnx
import onnx.inliner

from parapipe.errors import ModelError


def inlined(model: onnx.ModelProto, model_name: str) -> onnx.ModelProto:
    """Return a model without functions of its own; the same one if it has none.

    Raises
    ------
    ModelError
        If ONNX cannot inline them.
    """
    if not model.functions:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"'{model_name}' has functions that ONNX cannot inline ({reason}): export it without"
        ) from None
