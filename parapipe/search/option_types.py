"""Types of what a mapping run may be told: bounds, and words for what a value must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty

Granularity = Literal["fused", "onnx"]
Splitting = Literal["none", "auto"]
Interleaving = Literal["none", "auto"]
MapperName = Annotated[str, Must("the name of a mapper")]
ShareToOne = Annotated[float, Must("a number from 0 to 1", ge=0, le=1)]
FromTwo = Annotated[int, Must("a whole number of at least 2", ge=2)]
Quantile = Annotated[float, Must("a number above 0 and below 1", gt=0, lt=1)]
CacheFolder = Annotated[bool | NotEmpty | Path, Must("True, False or the path of a folder")]
Objectives = Literal[
    "latency-throughput-energy",
    "latency-throughput",
    "latency-throughput-energy-memory",
    "latency-throughput-memory",
]
Bytes = Annotated[float, Must("a positive finite number of bytes, as in 64e6 for 64 MB,", gt=0)]
MaxMemory = (
    Bytes
    | Annotated[
        Mapping[str, Bytes], Must("positive numbers of bytes by memory, as in {'dram': 64e6}")
    ]
)
_CountsRule = Must("whole numbers of at least 1 by processor, as in {'npu': 8}")
MaxSegments = Count | Annotated[Mapping[str, Count], _CountsRule]
MOST_DRAWS = 100_000  # more say no more, and take the memory
DrawCount = Annotated[int, Must(f"a whole number from 0 to {MOST_DRAWS}", ge=0, le=MOST_DRAWS)]
FilePath = Annotated[NotEmpty | Path, Must("the path of a file")]
Profiles = Annotated[Sequence[NotEmpty | Path], Must("a list of paths of CSV files")]
Searches = Annotated[Sequence[NotEmpty], Must("a list of names of searches")]
Names = Annotated[Sequence[NotEmpty], Must("a list of names of processors")]
Pins = Annotated[
    Mapping[str, NotEmpty],
    Must("names of processors by operator or pattern, as in {'conv*': 'npu'}"),
]
Dims = Annotated[
    Mapping[str, FromZero], Must("whole numbers of at least 0 by name, as in {'batch': 1}")
]
_Shape = Annotated[tuple[FromZero, ...], Must("whole numbers of at least 0", lax=True)]
Shapes = Annotated[
    Mapping[str, _Shape | tuple[str, _Shape]],
    Must(
        "whole numbers of at least 0 by input, as in {'data': (1, 3, 224, 224)}, or with a "
        "data type, as in {'result': ('float32', (1, 64))}"
    ),
]
_StatesRule = Must("names of outputs by input, as in {'past_0': 'present_0'}")
States = Annotated[Mapping[str, NotEmpty], _StatesRule]
Rules = Annotated[NotEmpty | Path, Must("the path of a YAML file")]
ByModel = Annotated[
    Mapping[str, Annotated[float, Must("a positive finite number", gt=0)]],
    Must("positive numbers by model, as in {'detect': 30}"),
]
Rates = Annotated[float, Must("a positive finite number of frames per second", gt=0)] | ByModel
