"""What a processor's compiler says of the operators of a model: where each of them runs."""

from __future__ import annotations

from typing import Literal

from parapipe.files.record import Row


class FallbackRow(Row):
    """An operator that does not run on the processor whose compiler was asked."""

    operator: str
    """Its name."""
    type: str
    """ONNX type."""
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of its outputs: what is supported may depend on them."""
    where: Literal["cpu", "refused"]
    """Whether the compiler leaves it to the CPU, or refuses it."""
    reason: str
    """The compiler's own words; empty if it gives none."""
    runs_on: str | None
    """The CPU that takes it the least time; null if none runs it."""
    time_s: float | None
    """Seconds that it takes there; null if there is none."""

    def sentence(self, processor: str) -> str:
        """Say it for people, with what can be done."""
        does = "is left to the CPU" if self.where == "cpu" else "does not compile"
        reason = self.reason or "the compiler gives no reason"
        remedy = "no CPU runs it: change the model"
        if self.runs_on is not None and self.time_s is not None:
            takes = f"{self.time_s * 1e3:.3g} ms on {self.runs_on}"
            remedy = f"{takes}: --pin {self.operator}={self.runs_on}"
        return f"{self.type} '{self.operator}' {does} on {processor}: {reason}; {remedy}"


class CompiledSupportRow(Row):
    """What a compiler says of a model's fused operators, for a processor or several equal ones."""

    processors: tuple[str, ...]
    """Their names."""
    compiler: str
    """Name of the compiler."""
    version: str
    """Its version; empty if nothing compiles."""
    target: str
    """The chip, as the compiler calls it."""
    precision: Literal["float16", "int8"]
    """Type of the arithmetic."""
    operators: int
    """Operators of the model."""
    on_processor: int
    """Those that run wholly on the processor."""
    fallbacks: tuple[FallbackRow, ...]
    """The others."""
