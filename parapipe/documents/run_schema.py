"""A run beside what was predicted: what `parapipe run --json` and `simulate --json` print.

Published as JSON Schema. A resource is a processor, or a link that transfers share.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parapipe.documents.strays import StrayRow
from parapipe.files.record import Row

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
    p99_s: float | None = None
    """No more than 1 % of them take longer. None in documents of older versions."""
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
    """Mean of the times between results after the warm-up, while frames are still admitted: what
    comes while the pipeline empties does not count. Of a saturated simulation without chance and
    contention, exactly what frames take in the long run, at the pace of the slowest task. Null for
    a single frame."""
    median_s: float | None = None
    """Median of these times; null for a single frame."""
    p95_s: float | None = None
    """No more than 5 % of these times are longer."""
    p99_s: float | None = None
    """No more than 1 % of them are longer."""


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
    """As predicted, of each of these, when nothing runs beside it."""
    predicted_s: float
    """As predicted: beside what runs at the same time, if the plan states when all runs."""
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
    times_s: tuple[float, ...] = ()
    """Of a run by its plan: from start to end, for each of the last frames, 1000 at most. A
    simulation can take them up."""
    handovers_s: tuple[float, ...] = ()
    """What its resource was idle for before it in these frames, though it had all it needed."""


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


class QueueRow(Row):
    """A channel whose slots were chosen."""

    tensor: str
    """What it takes to another processor."""
    source: str = Field(alias="from")
    """The processor that makes it."""
    target: str = Field(alias="to")
    """The processor that reads it."""
    slots: int
    """Frames of it that there is room for."""
    more_bytes: int
    """Bytes of the slots that the plan does not have."""


class SlotsRow(Row):
    """Slots that were chosen so that a simulation keeps what was asked for."""

    p99_latency_s: float | None
    """Seconds that 99 % of the frames were to be done in; null if that was not asked for."""
    p99_period_s: float | None
    """Seconds that 99 % of the results were to follow in; null if that was not asked for."""
    least: bool
    """Whether no others with fewer bytes keep that. If not, no channel by itself can do with fewer
    slots."""
    more_bytes: int
    """Bytes of slots that the plan does not have; below 0 if fewer will do."""
    channels: tuple[QueueRow, ...]
    """Of all channels."""


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
    measured: str | None = None
    """The run whose times were drawn, frame by frame; null if times are those of the plan."""
    contention: float | None
    """Lengthening of a task, as a share of its time, while others together move as many bytes as
    the memory can; null where processors don't slow each other down."""
    steady: SteadyRow | None
    """Null with chance, contention or paced frames, and where frames were too few to show it."""
    disturbed: dict[str, float] | None = None
    """By a processor's name, the share of frames, drawn at random, in which its work takes twice as
    long; null if none are."""
    chosen: SlotsRow | None = None
    """Slots of channels that were chosen for this simulation; null if they are the plan's."""


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


class OutsideRow(Row):
    """Tensors between sessions that lie in no arena, for one reason."""

    why: str
    """The reason."""
    tensors: int
    """How many they are."""
    size_bytes: int
    """Their bytes in a frame."""


class ArenasRow(Row):
    """Arenas of a run, and the tensors between its sessions."""

    size_bytes: dict[str, int]
    """Of each arena, by the name of its memory: of all frames on their way."""
    inside_bytes: int
    """Of all tensors of a frame that lie in arenas, each by itself."""
    outside: tuple[OutsideRow, ...]
    """The others; what sessions hold within is not among them."""
    peak_outside_bytes: int
    """Of the most bytes at one time, `peak_tensor_bytes`, the same of tensors in no arena."""


class RandomRow(Row):
    """What frames of a model got that came at random times: a Poisson process.

    A frame takes the first turn of its model that begins after it came and that no earlier frame
    has. Turns are taken whether there is a frame for them or not.
    """

    rate_fps: float
    """Frames a second on average: as many as the plan gives."""
    seed: int
    """Of the times at which they came."""
    frames: int
    """Frames that came and had a turn."""
    utilisation: float
    """Share of the turns that they need at this rate; from 1 on, more and more wait."""
    predicted_utilisation: float
    """The same with turns as often as the plan can sustain."""
    predicted_p99_s: float | None
    """99 of 100 frames take at most this, as predicted with turns in equal steps and the latency
    that the plan has at the rates that are asked; null if more and more wait."""
    median_s: float | None
    """As observed, from when a frame came to its end; null without frames."""
    p95_s: float | None
    """95 of 100 frames took at most this."""
    p99_s: float | None
    """99 of 100 frames took at most this."""
    most_s: float | None
    """The longest."""


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
    p95_s: float
    """95 of 100 frames took at most this."""
    p99_s: float
    """99 of 100 frames took at most this."""
    most_s: float
    """The longest."""
    planned_fps: float
    """Frames a second that the plan gives."""
    observed_fps: float | None
    """Frames a second that came out; null of too few frames."""
    random: RandomRow | None = None
    """Frames that came at random times; null if that was not asked for."""


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
    """Names of the processors of each stage, of those that take turns on its frames the first."""
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
    arenas: ArenasRow | None = None
    """Of a run whose tensors lie in arenas, how much; null if none do."""
    providers: tuple[ProviderRow, ...] | None = None
    """Of a run, what ran each processor."""
    strays: tuple[StrayRow, ...] | None = None
    """Of a run, operators that ran elsewhere than planned; none if all ran as planned, null where
    that is not known."""
    split: tuple[str, ...] = ()
    """Rules by which the model's operators are split, as `parapipe split` takes them; empty if none
    are. Tasks name the operators of the split model."""
    replicas: tuple[tuple[str, ...], ...] = ()
    """Names of processors that take turns on the frames of a stage, those of each together."""
    strategy: str = "plan"
    """What decided who did what: a strategy by its name, or as MODULE:CLASS."""
