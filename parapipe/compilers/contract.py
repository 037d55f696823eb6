"""What a compiler of an NPU is given, and what it returns.

A compiler is a tool of somebody else in a Python environment that the user has made: parapipe runs
it in a process of its own, with a folder and a time limit, see `compilers/process.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from parapipe.errors import ParapipeError

Precision = Literal["float16", "int8"]
"""Types of the arithmetic on an NPU; int8 with weights and activations quantized by the tool."""

Match = Literal["name", "suffix", "group", "unmatched"]
"""How the nodes of a row were identified: by the node's exact name; by its name but for a suffix of
the tool; as members of the group that the tool fused; or not at all."""

FailureCause = Literal["missing", "refused", "crashed", "killed", "timeout", "disk"]
"""Why there is no artefact: the tool is not installed where the user said; it says that it cannot
compile the segment; it ended with an error of its own; it was killed; its time ran out; there is no
room for its files."""


@dataclass(frozen=True, slots=True)
class CompileJob:
    """A segment to compile.

    Parameters
    ----------
    model
        ONNX file of the segment, with fixed shapes, of at most 2 GB with its weights, which may
        stand in files beside it.
    target
        The chip, as the compiler calls it: "rk3588".
    precision
        Type of the arithmetic. A segment that holds its own scales (QDQ) keeps these.
    calibration
        A file `.npz`, or a folder of them, see `read_samples` in `compilers/samples.py`; needed for
        int8 with meaningful outputs. Without, int8 is calibrated with random samples, and the
        result says so.
    time_limit_s
        Seconds until the tool is ended.
    """

    model: Path
    target: str
    precision: Precision = "float16"
    calibration: Path | None = None
    time_limit_s: float = 600.0


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """A line of what the compiler says it made.

    Parameters
    ----------
    operator
        The tool's own type, such as `ConvAdd`.
    target
        Where it runs, in the tool's words: "NPU", "CPU".
    dtype
        The tool's name of the type that it computes in.
    nodes
        Names of the ONNX nodes that it stands for; several if they were fused. A node without a
        name of its own goes by that of its first output.
    matched
        How the nodes were identified.
    cycles
        Cycles of the NPU's clock; None if the compiler does not price it, which does not mean that
        it costs nothing.
    traffic_bytes
        Bytes read and written; None if the compiler does not say.
    part_of
        If it stands for no node: the node that it helps to compute, as a change of layout does, and
        that belongs to another row; empty if that is not known. Its cycles count for that node.
    """

    operator: str
    target: str
    dtype: str
    nodes: tuple[str, ...]
    matched: Match
    cycles: int | None
    traffic_bytes: int | None = None
    part_of: str = ""

    @property
    def on_npu(self) -> bool:
        """Whether it runs on the NPU."""
        return self.target != "CPU"


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """A node that the compiler does not take, or leaves to the CPU.

    Parameters
    ----------
    node, operator_type
        Name and ONNX type.
    reason
        The tool's own words; empty if it gives none.
    """

    node: str
    operator_type: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """What a compiler made of a segment.

    Parameters
    ----------
    artefact
        The file that runs on the device; it stays in the cache, so copy it.
    sha256
        Its hexadecimal digest.
    tool, version
        What compiled it.
    rows
        In the order of the tool.
    on_cpu
        Nodes that run on the CPU inside the artefact.
    weight_bytes, internal_bytes
        Memory for constants and for activations on the device; None if the tool does not say.
    log
        What the tool printed.
    notes
        What should be known of it, a sentence each.
    """

    artefact: Path
    sha256: str
    tool: str
    version: str
    rows: tuple[CompiledRow, ...]
    on_cpu: tuple[RefusedNode, ...] = ()
    weight_bytes: int | None = None
    internal_bytes: int | None = None
    log: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass
class CompileError(ParapipeError):
    """A segment that did not compile: costs only that segment.

    Parameters
    ----------
    message
        One sentence: what, why in the tool's words, and what to do.
    cause
        One of `FailureCause`.
    refused
        Nodes that the tool named, if any.
    """

    message: str
    cause: FailureCause
    refused: tuple[RefusedNode, ...] = field(default=())

    def __post_init__(self) -> None:
        super().__init__(self.message)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a compiler is installed.

    Parameters
    ----------
    python
        The Python interpreter that has it.
    variables
        Variables of the environment beside those of this process.
    """

    python: Path
    variables: Mapping[str, str] = field(default_factory=dict)


class Compiler(Protocol):
    """A compiler of a vendor; one module each, see `compilers/registry.py`."""

    @property
    def name(self) -> str:
        """Its name in the registry, in platform files and commands: "rknn"."""

    @property
    def title(self) -> str:
        """What it is, in a line, with the vendor's name."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Chips that it compiles for, as it calls them."""

    @property
    def prices(self) -> bool:
        """Whether it tells cycles."""

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the tool's version, asked in an empty folder.

        Raises
        ------
        CompileError
            Of cause "missing" or "crashed" if it is not there.
        """

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment in a folder of its own, which is empty and belongs to the job.

        Raises
        ------
        CompileError
            If there is no artefact.
        """

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run the compiled segment in the tool's simulator; return a `.npz` of its outputs by name.

        Outputs have the shapes and types that ONNX states, behind a leading axis of frames.

        Parameters
        ----------
        inputs
            A `.npz` with the inputs by name, each with a leading axis that counts frames.
        folder
            Empty, and of this job.

        Raises
        ------
        CompileError
            If it cannot be simulated.
        """
