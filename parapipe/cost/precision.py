"""Data types that processors keep and compute a converted model's activations in, and casts.

A model that is planned in a precision is planned as it would run after conversion. Each processor
works in one type: the first of the precision's chain that it has. An operator that it does not run
in that type takes the next one of the chain, with casts of what it reads and makes. Between
processors that work in different types a tensor travels in the narrower one; the processor that
works in the wider one casts it, since it is sure to compute in floating point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parapipe.graph.data_types import CONVERTIBLE_TYPES
from parapipe.graph.operator_graph import Tensor, size_in_bytes
from parapipe.platform.fields import Expression, file_value, named_value
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor

CHAINS: Mapping[Precision, tuple[str, ...]] = {
    "model": (),
    "float16": CONVERTIBLE_TYPES,
    "int8": ("int8", *CONVERTIBLE_TYPES),
}
"""By precision: data types of operators and tensors, the one that is tried first in front."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A change of a tensor's data type.

    Parameters
    ----------
    source_type, target_type
        From and to which type; to and from int8 it is a quantisation and its reverse.
    processor
        Index of the processor that does it.
    time
        Seconds.
    """

    source_type: str
    target_type: str
    processor: int
    time: Expression

    @property
    def operator(self) -> str:
        """ONNX type of the operator that it is."""
        return cast_operator(self.source_type, self.target_type)


@dataclass(frozen=True, slots=True)
class Move:
    """What it takes to bring a tensor from one processor to another.

    Parameters
    ----------
    data_type, size_bytes
        In which it travels.
    time
        Seconds, the cast included.
    cast
        The change of its type; None if both processors keep it in the same.
    """

    data_type: str
    size_bytes: int
    time: Expression
    cast: Cast | None = None


def types_of(processor: Processor, precision: Precision) -> tuple[str, ...]:
    """Return the types of a precision's chain that a processor has; the first is its own."""
    return tuple(dtype for dtype in CHAINS[precision] if processor.computing_type(dtype))


def working_types(platform: Platform, precision: Precision) -> tuple[str | None, ...]:
    """Return the type that each processor keeps converted tensors in; None for the model's own."""
    chains = (types_of(processor, precision) for processor in platform.processors)
    return tuple(next(iter(chain), None) for chain in chains)


def type_there(dtype: str, working: str | None) -> str:
    """Return the type of a tensor, in the model of `dtype`, on a processor that works in one."""
    return working if working and dtype in CONVERTIBLE_TYPES else dtype


def narrower(one: str, other: str) -> str:
    """Return the type, of two, that comes first in a chain."""
    chain = CHAINS["int8"]
    return min(one, other, key=chain.index) if one != other else one


def cast_operator(source_type: str, target_type: str) -> str:
    """Return the ONNX operator that changes a type to another."""
    if target_type == "int8":
        return "QuantizeLinear"
    return "DequantizeLinear" if source_type == "int8" else "Cast"


def cast_time(processor: Processor, tensor: Tensor, *types: str) -> Expression:
    """Return the seconds to read a tensor in one type and write it in another, launch included."""
    moved = sum(size_in_bytes(tensor.shape, dtype) or 0 for dtype in types)
    bandwidth = file_value("bandwidth", "B/s", processor, "memory", "bandwidth_bytes_per_s")
    launch = file_value("launch", "s", processor, "launch", "overhead_s")
    time = launch + named_value("cast bytes", moved, "B") / bandwidth
    return time * processor.part_slowdown("elementwise") if processor.whole else time


def tensor_move(
    tensor: Tensor, platform: Platform, p: int, q: int, working: Sequence[str | None]
) -> Move:
    """Return what it takes to bring a tensor from processor p to another one, q.

    Parameters
    ----------
    working
        As of `working_types`.
    """
    travels, size_bytes, cast = type_on_the_way(tensor, platform, p, q, working)
    time = platform.link_of[p, q].time(size_bytes)
    if cast is None:
        return Move(travels, size_bytes, time)
    by = platform.names[cast.processor]
    change = f"{cast.operator} from {cast.source_type} to {cast.target_type} on {by}"
    return Move(
        travels, size_bytes, time + named_value("cast", cast.time.value, "s", note=change), cast
    )


def move_times_s(
    tensor: Tensor, platform: Platform, working: Sequence[str | None]
) -> tuple[tuple[float, ...], ...]:
    """Return the seconds of `move` from each processor to each other; 0 on the diagonal."""
    count = range(len(platform.processors))
    return tuple(
        tuple(
            0.0 if p == q else tensor_move(tensor, platform, p, q, working).time.value
            for q in count
        )
        for p in count
    )


def type_on_the_way(
    tensor: Tensor, platform: Platform, p: int, q: int, working: Sequence[str | None]
) -> tuple[str, int, Cast | None]:
    """Return in which type, as how many bytes and with which cast a tensor moves, as `move` does.

    Parameters
    ----------
    working
        As of `working_types`.
    """
    written, read = type_there(tensor.dtype, working[p]), type_there(tensor.dtype, working[q])
    travels = narrower(written, read)
    size_bytes = size_in_bytes(tensor.shape, travels) or 0
    if written == read:
        return travels, size_bytes, None
    by = q if written == travels else p
    cast = Cast(written, read, by, cast_time(platform.processors[by], tensor, written, read))
    return travels, size_bytes, cast
