"""What `parapipe run --json` and `parapipe simulate --json` print; published as JSON Schema."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal["parapipe/run/1"] = "parapipe/run/1"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class LatencyRow(_Record):
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
    """Whether frames were let in as fast as they were taken, so that it holds the time for which
    they queued."""


class PeriodRow(_Record):
    """Seconds from frame to frame."""

    predicted_s: float
    """The longest stage."""
    sustained_s: float
    """What the plan says can be sustained, operator by operator."""
    limit_s: float
    """The same for the units and the queues of this run: exactly what waits in a circle, or the
    busiest lane, allow if every task takes what is predicted."""
    limited_by: tuple[str, ...]
    """The lanes of that circle; one if it is just the work of that lane."""
    observed_limit_s: float
    """As `limit_s`, if every task takes what was observed on average."""
    observed_limited_by: tuple[str, ...]
    """The lanes of that circle."""
    observed_s: float | None
    """Mean of the frames counted; of a simulation that recurs, the exact one. Null for a single
    frame."""


class LaneRow(_Record):
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


class TaskRow(_Record):
    """An operator, a segment, or a transfer that occupies a lane. Seconds are means per frame."""

    lane: str
    """Name of its lane."""
    name: str
    """Its name in the trace."""
    operators: tuple[str, ...]
    """Ids of the operators that it runs; none for a transfer."""
    predicted_s: float
    """As predicted."""
    observed_s: float
    """As observed."""
    for_input_s: float
    """Its lane waited for what it reads."""
    for_room_s: float
    """Its lane waited for room for what it makes."""
    handover_s: float
    """Its lane was idle for other reasons."""


class SteadyRow(_Record):
    """A simulation that has come to repeat itself."""

    period_s: float
    """Seconds between frames, for ever."""
    frames: int
    """After so many frames all starts recur."""
    since: int
    """Number of the first frame of which that is true, from 0."""


class SimulationRow(_Record):
    """How a plan was simulated."""

    unit: Literal["operator", "segment"]
    """What a processor runs at one go."""
    queue: int | None
    """Slots of every channel; null for those of the plan."""
    jitter: float
    """Standard deviation of times, as a share of them."""
    seed: int
    """Of the jitter."""
    contention: float | None
    """Lengthening of a task, as a share of its time, while others together move as many bytes as
    the memory can; null where processors don't slow each other down."""
    steady: SteadyRow | None
    """Null with chance, contention or paced frames, and where frames were too few to show it."""


class RunDocument(_Record):
    """A run of a plan, real or simulated, beside what was predicted."""

    schema_: Literal["parapipe/run/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that made it."""
    how: Literal["run", "simulation"]
    """Whether frames were executed or simulated."""
    model: str
    """The plan's model."""
    platform: str
    """The platform that the plan was made for."""
    stages: tuple[tuple[str, ...], ...]
    """Names of the processors of each stage."""
    frames: int
    """Frames that went through."""
    warm_up: int
    """The first so many, which count in no figure but these two."""
    saturated: bool
    """Whether frames were let in as fast as they were taken, not one at a time."""
    pace_s: float | None
    """Seconds from one frame's admission to the next one's; null if saturated."""
    latency: LatencyRow
    """From admission to end."""
    period: PeriodRow
    """From frame to frame; throughput is its reciprocal."""
    lanes: tuple[LaneRow, ...]
    """Processors as the plan lists them, then links."""
    tasks: tuple[TaskRow, ...]
    """Lane after lane, each in its order."""
    simulation: SimulationRow | None = None
    """Of a simulation, how it was made."""
