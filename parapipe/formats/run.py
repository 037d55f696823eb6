"""A run beside what was predicted: what `parapipe run --json` and `simulate --json` print.

Published as JSON Schema. A resource is a processor, or a link that transfers share.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parapipe.formats.record import Row

SCHEMA: Literal["parapipe/run/2"] = "parapipe/run/2"


class LatencyRow(Row):
    """Seconds of a frame from its admission to the end of its last task."""

    predicted_s: float
    """The sum of the stages, for frames admitted once per period."""
    least_s: float
    """Least of the frames counted."""
    mean_s: float
    """Mean."""
    median_s: float
    """Median."""
    p95_s: float
    """No more than 5 % of the frames take longer."""
    most_s: float
    """Longest."""
    holds_queueing: bool
    """Whether frames were admitted as fast as they were taken, so that it holds the time for which
    they queued."""


class PeriodRow(Row):
    """Seconds from frame to frame."""

    predicted_s: float
    """The longest stage."""
    sustained_s: float
    """What the plan says can be sustained, operator by operator."""
    limit_s: float
    """The same for the units and the queues of this run: exactly what waits in a circle, or the
    busiest resource, allow if every task takes what is predicted."""
    limited_by: tuple[str, ...]
    """The resources of that circle; one if it is just the work of that resource."""
    observed_limit_s: float
    """As `limit_s`, if every task takes what was observed on average."""
    observed_limited_by: tuple[str, ...]
    """The resources of that circle."""
    observed_s: float | None
    """Mean of the frames counted; of a simulation that recurs, the exact one. Null for a single
    frame."""


class ResourceRow(Row):
    """A processor, or a link that transfers share. Seconds are means per frame."""

    name: str
    """Its name."""
    kind: Literal["processor", "link"]
    """Which of the two."""
    predicted_s: float
    """Work for a frame, as predicted."""
    observed_s: float
    """Work for a frame, as observed."""
    predicted_utilisation: float
    """Predicted work over the limit of the period."""
    observed_utilisation: float | None
    """Observed work over the observed period."""
    for_input_s: float
    """Idle, waiting for a tensor to be made or a frame to arrive."""
    for_room_s: float
    """Idle, waiting for a slot in a full queue."""
    handover_s: float
    """Idle though its next task had all it needed: transfers, and what the executor takes."""


class OwnRow(Row):
    """What a task took by itself, frame by frame.

    On a processor of one core these are the seconds for which its thread had the core, so that
    other programs count nothing; on others those from start to end.
    """

    time_s: float
    """Median of the frames counted."""
    spread: float
    """(Longest - shortest frame) / time."""
    noisy: bool
    """Whether the middle half of the frames spreads over more than 5 % of the time."""


class TaskRow(Row):
    """An operator, a segment, or a transfer that occupies a resource; means per frame."""

    resource: str
    """Name of the processor or link that does it."""
    name: str
    """Its name in the trace."""
    operators: tuple[str, ...]
    """Ids of the operators that it runs; none for a transfer."""
    predicted_operators_s: tuple[float, ...]
    """As predicted, of each of these."""
    predicted_s: float
    """As predicted."""
    observed_s: float
    """As observed."""
    for_input_s: float
    """Its resource waited for what it reads."""
    for_room_s: float
    """Its resource waited for room for what it makes."""
    handover_s: float
    """Its resource was idle for other reasons."""
    own: OwnRow | None
    """What it took by itself, on its own processor; null in a simulation."""
    elsewhere: float = 0.0
    """Share of the frames for which another processor did it, as a strategy decided."""


class MachineRow(Row):
    """The machine that ran a plan."""

    cores: dict[str, tuple[int, ...]]
    """Numbers of the cores that each processor of the plan ran on; none where it has none."""
    other_programs: float | None
    """Share of all cores' time that other programs took during the run; null where the system does
    not tell."""


class SteadyRow(Row):
    """A simulation that has come to repeat itself."""

    period_s: float
    """Seconds between frames, for ever."""
    frames: int
    """After so many frames all starts recur."""
    since: int
    """Number of the first frame of which that is true, from 0."""


class SimulationRow(Row):
    """How a plan was simulated."""

    unit: Literal["operator", "segment"]
    """What a processor runs at one go."""
    queue: int | None
    """Slots of every channel; null for those of the plan."""
    jitter: float
    """Standard deviation of times, as a share of them."""
    seed: int
    """Of the jitter, and of the frames that are disturbed."""
    contention: float | None
    """Lengthening of a task, as a share of its time, while others together move as many bytes as
    the memory can; null where processors don't slow each other down."""
    steady: SteadyRow | None
    """Null with chance, contention or paced frames, and where frames were too few to show it."""
    disturbed: dict[str, float] | None = None
    """By a processor's name, the share of frames, drawn at random, in which its work takes twice as
    long; null if none are."""


class ProviderRow(Row):
    """What ran a processor's segments."""

    processor: str
    """Its name."""
    provider: str
    """ONNX Runtime's execution provider."""
    options: dict[str, str]
    """What it was given."""
    nodes: dict[str, int] | None
    """How many nodes each provider took; the CPU's kernels run what others leave. Null where ONNX
    Runtime is older than 1.24 and does not tell."""
    substitute: str | None
    """Why it stands in for the one that the platform names; null if it does not."""


class ModelRunRow(Row):
    """What one of several models got."""

    name: str
    """What the names of its operators begin with."""
    frames: int
    """Frames of it that count."""
    predicted_s: float
    """Its latency, as predicted."""
    median_s: float
    """As observed, from when a frame comes by the plan, or from its first start if that is earlier:
    all frames of a period are admitted at its beginning."""
    p99_s: float
    """99 of 100 frames took at most this."""
    most_s: float
    """The longest."""
    planned_fps: float
    """Frames a second that the plan gives."""
    observed_fps: float | None
    """Frames a second that came out; null of too few frames."""


class RunDocument(Row):
    """A run of a plan, real or simulated, beside what was predicted."""

    schema_: Literal["parapipe/run/2"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that made it."""
    how: Literal["run", "simulation"]
    """Whether frames were executed or simulated."""
    model: str
    """The plan's model."""
    model_sha256: str
    """Digest of its file."""
    platform: str
    """The platform that the plan was made for."""
    stages: tuple[tuple[str, ...], ...]
    """Names of the processors of each stage."""
    frames: int
    """Frames that went through."""
    warm_up: int
    """The first so many, which count in no figure but these two."""
    saturated: bool
    """Whether frames were admitted as fast as they were taken, not one at a time."""
    pace_s: float | None
    """Seconds from one frame's admission to the next one's; null if saturated."""
    models: tuple[ModelRunRow, ...] | None = None
    """Of a plan of several models, what each got; a frame of the plan then holds frames of all."""
    latency: LatencyRow
    """From admission to end."""
    period: PeriodRow
    """From frame to frame; throughput is its reciprocal."""
    resources: tuple[ResourceRow, ...]
    """Processors as the plan lists them, then links."""
    tasks: tuple[TaskRow, ...]
    """Resource after resource, each in its order."""
    machine: MachineRow | None
    """Of a run, what it ran on; null for a simulation."""
    simulation: SimulationRow | None = None
    """Of a simulation, how it was made."""
    peak_tensor_bytes: int | None = None
    """Of a run, the most bytes of tensors between segments at one time: from the start of the
    segment that makes one to the end of the last that reads it, graph inputs from the first start
    of their frame on; results that are made are the caller's. What segments hold within is not
    among them."""
    providers: tuple[ProviderRow, ...] | None = None
    """Of a run, what ran each processor."""
    split: tuple[str, ...] = ()
    """Rules by which the model's operators are split, as `parapipe split` takes them; empty if none
    are. Tasks name the operators of the split model."""
    strategy: str = "plan"
    """What decided who did what: a strategy by its name, or as MODULE:CLASS."""
